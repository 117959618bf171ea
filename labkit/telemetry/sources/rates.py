"""Rates from counters that only grow: what disks, networks and links have moved since the last reading."""

from __future__ import annotations

import time
from collections.abc import Mapping

from labkit.telemetry.series import Reading, Series

TOO_SOON = "a rate needs two readings"
AGAIN = "the counter has started anew"


class Rates:
    """Turns counters of bytes into MB/s (10^6 bytes a second) between one reading and the next."""

    def __init__(self) -> None:
        self._before: dict[str, int] = {}
        self._at = 0.0

    def readings(self, counted: Mapping[Series, int], now: float | None = None) -> list[Reading]:
        """``counted`` maps each series to the bytes that have passed so far; ``now`` is a monotonic time."""
        now = time.monotonic() if now is None else now
        seconds, self._at = now - self._at, now
        before, self._before = self._before, {series.key: count for series, count in counted.items()}
        return [_rate(series, before.get(series.key), count, seconds) for series, count in counted.items()]


def _rate(series: Series, before: int | None, count: int, seconds: float) -> Reading:
    if before is None or seconds <= 0:
        return Reading(series, None, TOO_SOON)
    if count < before:
        return Reading(series, None, AGAIN)
    return Reading(series, (count - before) / seconds / 1e6)
