"""A learner's own metrics: the unit that a name carries, and the last value of each."""

from __future__ import annotations

import math
import re
from typing import Any

from labkit.errors import LabkitError
from labkit.telemetry.series import PROVENANCES, Reading, Series

MAX_OWN = 32
_BRACKETS = re.compile(r"[(\[]\s*([^()\[\]]+?)\s*[)\]]\s*$")
_TIME = ("s", "ms", "us", "µs", "ns", "min", "h", "Hz", "kHz", "MHz", "GHz")
_DATA = ("B", "kB", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "bit", "kbit", "Mbit", "Gbit", "Gbps")
_OTHER = (
    "%",
    "W",
    "kW",
    "J",
    "kJ",
    "V",
    "A",
    "°C",
    "FLOP",
    "GFLOP",
    "TFLOP",
    "FLOPS",
    "GFLOPS",
    "TFLOPS",
    "fps",
)
_UNITS = frozenset(_TIME + _DATA + _OTHER)


def unit_of(name: str) -> str:
    """The unit in a metric's name.

    >>> unit_of("images/s"), unit_of("step time (ms)"), unit_of("copied GB/s"), unit_of("loss")
    ('images/s', 'ms', 'GB/s', '')
    """
    bracketed = _BRACKETS.search(name)
    if bracketed:
        return bracketed.group(1)
    last = name.split()[-1] if name.split() else ""
    return last if "/" in last.strip("/") or last in _UNITS else ""


class OwnMetrics:
    """Keeps the last value given for each name since the last sample."""

    def __init__(self) -> None:
        self._series: dict[str, Series] = {}
        self._last: dict[str, tuple[int, float]] = {}  # name -> (how many so far, last value)
        self._read: dict[str, int] = {}

    def set(self, name: str, value: Any, provenance: str) -> None:
        """Note a value; costs a microsecond, so a training loop may call it at every step."""
        number = _number(name, value)
        if name not in self._series:
            self._series[name] = self._new(name, provenance)
        self._last[name] = self._last.get(name, (0, 0.0))[0] + 1, number

    def readings(self) -> list[Reading]:
        """One reading for each name: the last value since the previous call, or a gap."""
        return [Reading(self._series[name], self._unread(name)) for name in list(self._last)]

    def _unread(self, name: str) -> float | None:
        count, value = self._last[name]
        before, self._read[name] = self._read.get(name, 0), count
        return value if count != before else None

    def _new(self, name: str, provenance: str) -> Series:
        if not isinstance(name, str) or not name.strip():
            raise LabkitError("metric() needs a name and a number, for example mon.metric('images/s', 120).")
        if provenance not in PROVENANCES:
            raise LabkitError(f"provenance must be one of {', '.join(PROVENANCES)}, not {provenance!r}.")
        if len(self._series) >= MAX_OWN:
            raise LabkitError(
                f"A monitor shows {MAX_OWN} own metrics at most; {name!r} is one too many. "
                "Keep the name the same at every call and put what changes into the value."
            )
        return Series(f"own.{name}", name, unit_of(name), provenance, "own")


def _number(name: Any, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise LabkitError(f"metric({name!r}, ...) needs one number, not {type(value).__name__}.") from None
    return number if math.isfinite(number) else math.nan
