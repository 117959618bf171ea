"""A recording as a source: its samples come again, in their own time or faster."""

from __future__ import annotations

import time

import numpy as np

from labkit.telemetry.recording import Recording
from labkit.telemetry.series import Reading, Series

Sample = tuple[float, dict[Series, float | None]]


class ReplaySource:
    """Gives the readings of a recording as its time comes; after its end there are none.

    Parameters
    ----------
    recording : Recording
        What to replay; it is not changed.
    speed : float
        Seconds of the recording for each second that passes.
    """

    def __init__(self, recording: Recording, speed: float = 1.0):
        self.recording = recording
        self.speed = speed
        self._times, self._values = recording.samples()
        self._series = recording.series
        self._reasons = recording.reasons
        self._next = 0
        self._began: float | None = None

    @property
    def position(self) -> float:
        """Seconds of the recording that have passed."""
        if self._began is None:
            return 0.0
        return (time.monotonic() - self._began) * self.speed

    @property
    def ended(self) -> bool:
        """Whether all samples have come."""
        return self._next >= len(self._times)

    def due(self) -> list[Sample]:
        """The samples whose time has come since the last call, oldest first."""
        if self._began is None:
            self._began = time.monotonic()
        until = int(np.searchsorted(self._times, self.position, side="right"))
        first, self._next = self._next, max(self._next, until)
        return [self._sample(number) for number in range(first, self._next)]

    def read(self) -> list[Reading]:
        """The newest sample that is due, with the reasons of its gaps."""
        samples = self.due()
        if not samples:
            return []
        reasons = dict(zip(self._series, self._reasons, strict=True))
        newest = samples[-1][1]
        return [
            Reading(series, value, "" if value is not None else reasons[series] or "not recorded")
            for series, value in newest.items()
        ]

    def close(self) -> None:
        """Nothing is held open."""

    def _sample(self, number: int) -> Sample:
        column = self._values[:, number]
        values = {
            one: None if np.isnan(value) else float(value)
            for one, value in zip(self._series, column, strict=True)
        }
        return float(self._times[number]), values
