"""The recordings that come with labkit: they say what is measured and what is modelled, and can be made again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labkit.errors import LabkitError
from labkit.telemetry import traces
from labkit.telemetry.traces import modelled, workloads
from labkit.widgets.monitor_figure import recording_figure


def test_every_recording_is_known_and_small() -> None:
    assert set(traces.names()) == {*modelled.TRACES, *workloads.RUNS}
    for name in traces.names():
        assert (traces.FOLDER / f"{name}.npz").stat().st_size < 100_000


@pytest.mark.parametrize("name", traces.names())
def test_provenance_is_in_the_file_and_on_the_plot(name: str) -> None:
    recording = traces.open(name)
    how = "modelled" if name in modelled.TRACES else "measured"
    assert {series.provenance for series in recording.series} == {how}
    assert recording.machine.startswith(how)
    figure = recording_figure(recording)
    assert figure.layout.title.subtitle.text == recording.machine
    assert all(trace.name.endswith(how) for trace in figure.data)
    assert {trace.line.dash for trace in figure.data} == {"dash" if how == "modelled" else "solid"}


@pytest.mark.parametrize("name", modelled.TRACES)
def test_modelled_recordings_are_what_the_model_gives(name: str) -> None:
    shipped, made = traces.open(name), modelled.computed(modelled.TRACES[name]())
    assert shipped.series == made.series
    assert shipped.spans == made.spans
    for one, other in zip(shipped.samples(), made.samples(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_a_busy_gpu_may_do_next_to_nothing() -> None:
    recording = traces.open("busy-not-full")
    times, _ = recording.samples()
    small, large = recording.spans
    for span in (small, large):
        inside = (times > span.start) & (times <= span.end)
        assert (recording.values("gpu.0.utilization")[inside] == 100).all()
    power, work = recording.values("gpu.0.power"), recording.values("own.TFLOPS")
    at = [int(np.searchsorted(times, (span.start + span.end) / 2)) for span in (small, large)]
    assert power[at[1]] > 3 * power[at[0]]
    assert work[at[1]] == pytest.approx(150 * work[at[0]])


@pytest.mark.parametrize("name", workloads.RUNS)
def test_measured_runs_have_rest_work_and_rest(name: str) -> None:
    recording = traces.open(name)
    (work,) = recording.spans
    times, _ = recording.samples()
    assert work.start > 2
    assert times[-1] > work.end + 2  # type: ignore[operator]
    assert np.nanmean(recording.values("own.images/s")) > 0


def test_names_come_before_files_and_unknown_ones_are_explained(tmp_path: Path) -> None:
    path = traces.open("run-4").save(tmp_path / "copy.npz")
    assert traces.open(path).spans == traces.open("run-4").spans
    with pytest.raises(LabkitError, match="busy-not-full, one-straggler"):
        traces.open("run-99")
