"""How busy a device read while a span was open: the number that a dashboard would have shown."""

from __future__ import annotations

import numpy as np

from labkit.errors import LabkitError
from labkit.telemetry.recording import Recording

GROUPS = ("gpu", "emulator")  # whose line is asked for: the first of these that the recording has


def busy(recording: Recording, span: str) -> float:
    """Mean utilisation, in per cent, of the GPU (without one: of the emulator) during the last span of that name.

    The sample that falls on the beginning is left out: its interval began before the span did.

    Raises
    ------
    LabkitError
        When there is no such span, or no sample in it.
    """
    spans = [one for one in recording.spans if one.name == span and one.end is not None]
    if not spans:
        raise LabkitError(f"The recording has no finished span {span!r}.")
    times, values = recording.samples()
    inside = (times > spans[-1].start + recording.interval) & (times <= float(spans[-1].end or 0))
    rows = [k for group in GROUPS for k, series in enumerate(recording.series) if series.group == group]
    if not rows or not np.isfinite(values[rows[0], inside]).any():
        raise LabkitError(f"The recording has no sample of a GPU or the emulator during {span!r}.")
    return float(np.nanmean(values[rows[0], inside]))
