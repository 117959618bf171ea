"""Recordings that come to life again: their time, their spans, and what is said of wrong files and speeds."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import labkit
from labkit.errors import LabkitError
from labkit.telemetry.recording import Recording
from labkit.telemetry.series import Series
from labkit.telemetry.sources.replay import ReplaySource
from labkit.widgets.replay import Replay

CPU = Series("cpu", "CPU", "%", "modelled", "cpu", device="CPU")
SPEED = Series("own.images/s", "images/s", "images/s", "measured", "own")


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.01)


@pytest.fixture
def recorded() -> Recording:
    recording = Recording(0.5, began=1000.0, machine="modelled: a processor")
    for number in range(1, 21):
        recording.append(number / 2, {CPU: 5.0 * number, SPEED: None if number % 2 else float(number)}, {})
    recording.end(recording.begin("work", 2.0), 6.0)
    recording.begin("open", 9.0)
    return recording


def test_a_replay_ends_as_a_copy(recorded: Recording) -> None:
    shown = labkit.replay(recorded, speed=20)
    assert isinstance(shown, Replay)
    wait_until(lambda: not shown.running)
    for one, other in zip(shown.recording.samples(), recorded.samples(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert shown.recording.spans == recorded.spans
    assert shown.recording.series == recorded.series
    assert shown.recording.machine == recorded.machine


def test_time_passes_at_the_speed_that_was_asked_for(recorded: Recording) -> None:
    began = time.monotonic()
    shown = labkit.replay(recorded, speed=5)
    wait_until(lambda: not shown.running)
    assert 1.8 < time.monotonic() - began < 4  # ten seconds at five times their speed


def test_a_file_is_replayed_and_a_stopped_one_stays(recorded: Recording, tmp_path: Path) -> None:
    shown = labkit.replay(recorded.save(tmp_path / "run"), speed=1)
    wait_until(lambda: len(shown.recording) >= 1)
    shown.stop()
    shown.stop()
    count = len(shown.recording)
    time.sleep(0.6)
    assert len(shown.recording) == count < 20
    assert len(shown.figure().data) == 2


def test_text_of_a_replay_says_what_is_modelled(recorded: Recording) -> None:
    shown = labkit.replay(recorded, speed=20)
    wait_until(lambda: not shown.running)
    assert repr(shown) == "labkit replay (a recording, shown again as it grew)"
    assert "modelled: a processor" in str(shown)
    assert "100 %, modelled" in str(shown)


def test_the_source_gives_each_sample_once_with_the_reasons_of_gaps(recorded: Recording) -> None:
    recorded.append(10.5, {CPU: None}, {CPU: "the GPU is lost"})
    source = ReplaySource(recorded, speed=1000)
    assert source.read() == []
    time.sleep(0.05)
    readings = {one.series.key: one for one in source.read()}
    assert (readings["cpu"].value, readings["cpu"].reason) == (None, "the GPU is lost")
    assert source.read() == []
    assert source.ended


@pytest.mark.parametrize("speed", [0, 0.5, 21, float("nan"), "fast", None])
def test_impossible_speeds_are_explained(recorded: Recording, speed: object) -> None:
    with pytest.raises(LabkitError, match="from 1 to 20"):
        labkit.replay(recorded, speed)  # type: ignore[arg-type]


def test_what_cannot_be_replayed_is_explained(tmp_path: Path) -> None:
    with pytest.raises(LabkitError, match="no sample"):
        labkit.replay(Recording(0.5))
    with pytest.raises(LabkitError, match="with labkit come: "):
        labkit.replay("no such recording")
    (tmp_path / "empty.npz").write_bytes(b"")
    with pytest.raises(LabkitError, match="not a labkit recording"):
        labkit.replay(tmp_path / "empty.npz")
