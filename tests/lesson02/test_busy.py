"""The mean utilisation of a span, from a recording made by hand."""

from __future__ import annotations

import pytest

from labkit.errors import LabkitError
from labkit.telemetry.busy import busy
from labkit.telemetry.recording import Recording
from labkit.telemetry.series import Series

EMULATOR = Series("emulator", "Emulated GPU", "%", "emulated", "emulator")
GPU = Series("gpu.0", "GPU 0", "%", "measured", "gpu")


def recorded(*series: Series) -> Recording:
    recording = Recording(0.5)
    number = recording.begin("work", 0.4)
    for k, value in enumerate((3, 50, 90, 100, 7)):
        recording.append(0.5 * k, {one: value + n for n, one in enumerate(series)}, {})
    recording.end(number, 1.6)
    return recording


def test_only_samples_of_whole_intervals_inside_count():
    assert busy(recorded(EMULATOR), "work") == 95  # at 1.0 and 1.5 s; the one at 0.5 began before the span


def test_a_gpu_comes_before_the_emulator():
    assert busy(recorded(EMULATOR, GPU), "work") == 96


def test_what_is_not_there_is_a_sentence():
    with pytest.raises(LabkitError, match="no finished span 'play'"):
        busy(recorded(EMULATOR), "play")
    with pytest.raises(LabkitError, match="no sample of a GPU or the emulator"):
        busy(recorded(Series("cpu", "CPU", "%", "measured", "cpu")), "work")
