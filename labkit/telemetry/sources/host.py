"""The processor and the memory of this machine, through psutil."""

from __future__ import annotations

import os
from typing import Any

from labkit.telemetry.series import Reading, Series

MISSING = "psutil is not installed: pip install 'gpu-labkit[lab]'"
TOO_SOON = "the processor's clock has not moved since the last reading"
GIB = 1024**3


class HostSource:
    """Utilisation of every core this process may use, their mean, and the share of memory in use.

    Times come from the operating system's own counters, which tick 100 times a second on Linux: at a
    sampling interval of 0.1 s a core's utilisation has steps of 10 %.
    """

    def __init__(self) -> None:
        try:
            import psutil
        except ImportError:
            self._psutil: Any = None
            self._cores: list[int] = []
        else:
            self._psutil = psutil
            self._cores = _usable_cores(psutil)
            self._before = self._times()
        cores = _count(len(self._cores))
        self._cpu = Series("cpu", "CPU", "%", "measured", "cpu", of=cores, device="CPU")
        self._each = [
            Series(f"cpu.{core}", f"Core {core}", "%", "measured", "cores", device="CPU")
            for core in self._cores
        ]
        total = self._total()
        self._memory = Series(
            "memory", "Memory", "%", "measured", "memory", of=total, device="CPU", limit=100.0
        )

    def read(self) -> list[Reading]:
        if self._psutil is None:
            return [Reading(self._cpu, None, MISSING), Reading(self._memory, None, MISSING)]
        return [*self._read_cores(), self._read_memory()]

    def close(self) -> None:
        """Nothing is held open."""

    def _read_cores(self) -> list[Reading]:
        before, self._before = self._before, self._times()
        shares = [busy_percent(old, new) for old, new in zip(before, self._before, strict=True)]
        known = [share for share in shares if share is not None]
        mean = sum(known) / len(known) if known else None
        readings = [_reading(self._cpu, mean)]
        return readings + [_reading(*pair) for pair in zip(self._each, shares, strict=True)]

    def _read_memory(self) -> Reading:
        memory = self._psutil.virtual_memory()
        return Reading(self._memory, 100.0 * (memory.total - memory.available) / memory.total)

    def _times(self) -> list[tuple[float, float]]:
        """``(busy, total)`` seconds of each usable core since the machine started."""
        every = self._psutil.cpu_times(percpu=True)
        return [_busy_and_total(every[core]) for core in self._cores]

    def _total(self) -> str:
        return f"{self._psutil.virtual_memory().total / GIB:.1f} GiB" if self._psutil else ""


def busy_percent(old: tuple[float, float], new: tuple[float, float]) -> float | None:
    """Busy share, 0 to 100, between two ``(busy, total)`` pairs; None when no time has passed."""
    busy, total = new[0] - old[0], new[1] - old[1]
    if total <= 0:
        return None
    return min(100.0, max(0.0, 100.0 * busy / total))


def _busy_and_total(times: Any) -> tuple[float, float]:
    # Linux counts a guest's time in user and nice already, so it would be counted twice.
    guest = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    total = sum(times) - guest
    return total - times.idle - getattr(times, "iowait", 0.0), total


def _usable_cores(psutil: Any) -> list[int]:
    """Cores this process may run on, where the system tells; in a container often few of many."""
    count = len(psutil.cpu_times(percpu=True))
    affinity = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(count))
    return sorted(core for core in affinity if core < count) or list(range(count))


def _reading(series: Series, value: float | None) -> Reading:
    return Reading(series, value, "" if value is not None else TOO_SOON)


def _count(cores: int) -> str:
    return "" if not cores else "1 core" if cores == 1 else f"{cores} cores"
