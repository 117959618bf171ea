"""The ranks of the run that is going on: what each does, and the bytes it moves."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from labkit.telemetry.series import Reading, Series

LIVE = "labkit.network.live"
_TOO_SOON = "the rank has just started"
# field of a rank's state, key and name of the series, unit, what a second of it is in that unit
_RATES = (
    ("compute_s", "compute", "computes", "%", 100.0),
    ("wait_s", "wait", "waits", "% of time", 100.0),  # in a panel of its own
    ("bytes_sent", "sent", "sent", "MB/s", 1e-6),
    ("bytes_received", "received", "received", "MB/s", 1e-6),
    ("cpu_s", "cpu", "CPU", "%", 100.0),
)
_HIDDEN = ("cpu", "received")
_SHORTEST_S = 0.05  # of computing, on average, before imbalance means something
_IMBALANCE = Series(
    "ranks.imbalance",
    "Imbalance",
    "max/mean",
    "measured",
    "rank imbalance",
    of="1 is even, the number of ranks is the worst",
    device="Ranks",
)


class RanksSource:
    """For each rank: the share of each interval that it computed and waited (the rest it communicated), the
    bytes that its connections delivered and received, and its processor time (100 % is one core). Of ranks that
    report their work (`labkit.network.work_done`, as `run_split` does), each one's share of it that is done; and how
    uneven the load was so far: the longest time that a rank computed over the mean.

    Waiting is told from communicating every 10 ms, with more than 4 ranks less often. The module that knows
    the ranks is looked for, never imported: a process that has run none pays nothing, and between runs there
    are no readings.
    """

    def __init__(self) -> None:
        self._before: dict[int, tuple[float, Any]] = {}  # process -> when, and what it was

    def read(self) -> list[Reading]:
        module = sys.modules.get(LIVE)
        states = module.active() if module is not None else ()
        now = time.monotonic()
        before, self._before = self._before, {state.process: (now, state) for state in states}
        found = [reading for state in states for reading in _readings(state, now, before.get(state.process))]
        return found + _balance(states)

    def close(self) -> None:
        """Nothing is held open."""


def _balance(states: Sequence[Any]) -> list[Reading]:
    """Who has done how much, and how unevenly the time to do it was spread."""
    found = [
        Reading(_share(state.rank), 100.0 * state.done / state.whole) for state in states if state.whole > 0
    ]
    mean = sum(state.busy_s for state in states) / max(1, len(states))
    if len(states) > 1 and mean >= _SHORTEST_S:
        found.append(Reading(_IMBALANCE, max(state.busy_s for state in states) / mean))
    return found


def _share(rank: int) -> Series:
    name, key = f"Rank {rank}", f"rank.{rank}.done"
    return Series(key, f"{name} has done", "% of the work", "measured", "rank done", device=name)


def _readings(state: Any, now: float, before: tuple[float, Any] | None) -> list[Reading]:
    found = []
    for field, key, name, unit, scale in _RATES:
        series = Series(
            f"rank.{state.rank}.{key}",
            f"Rank {state.rank} {name}",
            unit,
            "measured",
            f"rank {key}",
            hidden=key in _HIDDEN,
            device=f"Rank {state.rank}",
        )
        if before is None or now <= before[0]:
            found.append(Reading(series, None, _TOO_SOON))
        else:
            moved = getattr(state, field) - getattr(before[1], field)
            rate = scale * moved / (now - before[0])
            shown = min(100.0, rate) if field in ("compute_s", "wait_s") else rate
            found.append(Reading(series, max(0.0, shown)))
    return found
