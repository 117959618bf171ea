"""Bytes that this process reads from files and from the disk, as the operating system counts them."""

from __future__ import annotations

import time
from typing import Any


class ReadMeter:
    """Rates since the last look. ``available`` is False where the operating system does not count (macOS)."""

    def __init__(self) -> None:
        self._process = _process()
        self._before = self._now()

    @property
    def available(self) -> bool:
        return self._process is not None

    def rates(self) -> dict[str, float]:
        """``"files (GB/s)"``, whatever they come from, and of these ``"disk (MB/s)"``; empty where nothing counts."""
        before, self._before = self._before, self._now()
        seconds = self._before[0] - before[0]
        if not self.available or seconds <= 0:
            return {}
        files, disk = ((new - old) / seconds for old, new in zip(before[1:], self._before[1:], strict=True))
        return {"files (GB/s)": files / 1e9, "disk (MB/s)": disk / 1e6}

    def _now(self) -> tuple[float, int, int]:
        counts = self._process.io_counters() if self._process is not None else None
        read = (counts.read_chars, counts.read_bytes) if counts else (0, 0)
        return time.monotonic(), *read


def _process() -> Any:
    """This process, where its reads are counted."""
    try:
        import psutil

        process = psutil.Process()
        return process if hasattr(process.io_counters(), "read_chars") else None
    except (ImportError, AttributeError, OSError):
        return None
