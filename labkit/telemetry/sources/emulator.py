"""How much of the time went into kernels run by the emulator: the emulated device's utilisation."""

from __future__ import annotations

import sys
import time

from labkit.telemetry.series import Reading, Series

ACTIVITY = "labkit.compute.emulator.activity"


class EmulatorSource:
    """Share of each interval that the emulator spent inside kernels, in percent.

    The emulator is looked for, never imported: a process that runs no kernel pays nothing and sees no series.
    """

    SERIES = Series("emulator", "Emulated GPU", "%", "emulated", "emulator", device="Emulated GPU")

    def __init__(self) -> None:
        self._at = time.perf_counter()
        self._busy = _busy_seconds() or 0.0

    def read(self) -> list[Reading]:
        now, busy = time.perf_counter(), _busy_seconds()
        if busy is None:
            self._at = now
            return []
        elapsed, spent = now - self._at, busy - self._busy
        self._at, self._busy = now, busy
        if elapsed <= 0:
            return [Reading(self.SERIES, None, "no time has passed since the last reading")]
        return [Reading(self.SERIES, min(100.0, max(0.0, 100.0 * spent / elapsed)))]

    def close(self) -> None:
        """Nothing is held open."""


def _busy_seconds() -> float | None:
    module = sys.modules.get(ACTIVITY)
    return None if module is None else float(module.busy_s)
