"""How busy the emulator has been: what the live plot draws as a series labelled *emulated*."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    busy_s: float

launches = 0
_finished_s = 0.0
_started_s: float | None = None


def begin() -> None:
    """A launch starts."""
    global launches, _started_s
    launches += 1
    _started_s = time.perf_counter()


def end() -> None:
    """The launch has ended, however it ended."""
    global _finished_s, _started_s
    if _started_s is not None:
        _finished_s += time.perf_counter() - _started_s
        _started_s = None


def __getattr__(name: str) -> Any:
    if name == "busy_s":
        started = _started_s
        return _finished_s + (time.perf_counter() - started if started is not None else 0.0)
    raise AttributeError(name)
