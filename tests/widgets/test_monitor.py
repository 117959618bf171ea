"""``labkit.monitor()`` outside Jupyter: recording, spans, metrics, figure, file, and nothing left behind."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import labkit
from labkit.errors import LabkitError
from labkit.telemetry import sampler
from labkit.telemetry.recording import Recording
from labkit.telemetry.recording_file import load
from labkit.telemetry.series import Series
from labkit.widgets.monitor import Monitor, monitor
from labkit.widgets.monitor_figure import MAX_DRAWN_SPANS, recording_figure
from labkit.widgets.monitor_text import recording_text


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.01)


@pytest.fixture
def mon() -> Iterator[Monitor]:
    made = monitor(0.1)
    yield made
    made.stop()


def sampler_threads() -> int:
    return sum(thread.name == "labkit-sampler" for thread in threading.enumerate())


def test_it_is_the_learners_name() -> None:
    assert labkit.monitor is monitor


def test_records_the_machine_and_own_metrics(mon: Monitor) -> None:
    wait_until(lambda: len(mon.recording) >= 2)
    mon.metric("images/s", 120)
    wait_until(lambda: any(series.key == "own.images/s" for series in mon.recording.series))
    assert {"cpu", "memory"} <= {series.key for series in mon.recording.series}
    assert np.nanmax(mon.recording.values("own.images/s")) == 120
    times, _ = mon.recording.samples()
    assert (np.diff(times) > 0.05).all()


def test_text_is_one_deterministic_line(mon: Monitor) -> None:
    assert repr(mon) == "labkit monitor (live plot of this machine and of your own metrics)"
    assert mon._repr_mimebundle_() == {"text/plain": repr(mon)}


def test_twenty_monitors_share_one_thread() -> None:
    many = [monitor(0.1) for _ in range(20)]
    assert sampler_threads() == 1
    for one in many:
        one.stop()
    wait_until(lambda: sampler_threads() == 0)


def test_forgotten_monitor_ends_the_thread_at_once(mon: Monitor) -> None:
    mon.stop()
    wait_until(lambda: sampler_threads() == 0)
    other = monitor(0.1)
    assert sampler_threads() == 1
    del other
    gc.collect()
    wait_until(lambda: sampler_threads() == 0, 1.0)


def test_stop_keeps_the_last_metric_and_ends_sampling(mon: Monitor) -> None:
    wait_until(lambda: len(mon.recording) >= 1)
    mon.metric("loss", 0.25)
    mon.stop()
    mon.stop()
    assert mon.recording.values("own.loss")[-1] == 0.25
    assert not mon.running
    count = len(mon.recording)
    time.sleep(0.3)
    assert len(mon.recording) == count


def test_span_is_recorded_also_when_its_body_fails(mon: Monitor) -> None:
    with mon.span("fine"):
        time.sleep(0.05)
    with pytest.raises(ZeroDivisionError), mon.span("broken"):
        _ = 1 / 0
    fine, broken = mon.recording.spans
    assert fine.end is not None
    assert 0.04 < fine.end - fine.start < 1
    assert broken.end is not None


def test_metric_and_span_cost_microseconds(mon: Monitor) -> None:
    started = time.process_time()
    for number in range(10_000):
        mon.metric("loss", number)
        with mon.span("step"):
            pass
    assert (time.process_time() - started) / 10_000 < 1e-4


@pytest.mark.parametrize("interval", [0, 0.05, -1, 1e9, float("nan"), "fast", None])
def test_impossible_intervals_are_explained(interval: object) -> None:
    with pytest.raises(LabkitError, match="in seconds, from"):
        monitor(interval)  # type: ignore[arg-type]


def test_figure_before_the_first_sample_is_explained() -> None:
    new = monitor(60)
    with pytest.raises(LabkitError, match="first sample comes after"):
        new.figure()
    new.stop()


def test_save_and_load_through_the_monitor(mon: Monitor, tmp_path: Path) -> None:
    with mon.span("work"):
        wait_until(lambda: len(mon.recording) >= 2)
    mon.stop()
    back = load(mon.save(tmp_path / "run"))
    assert back.spans == mon.recording.spans
    np.testing.assert_array_equal(back.samples()[1], mon.recording.samples()[1])


def test_record_keeps_what_happened_meanwhile_and_nothing_else(mon: Monitor, tmp_path: Path) -> None:
    wait_until(lambda: len(mon.recording) >= 3)
    with mon.record(tmp_path / "part"), mon.span("work"):
        mon.metric("loss", 1.0)
        time.sleep(0.35)
    time.sleep(0.25)
    part = load(tmp_path / "part.npz")
    assert 2 <= len(part) < len(mon.recording) - 2
    assert part.samples()[0][0] < 0.2
    (work,) = part.spans
    assert (work.name, work.start < 0.1) == ("work", True)
    assert part.machine.startswith("measured on ")


def test_print_tells_the_state_in_words(mon: Monitor) -> None:
    assert str(mon) == "labkit monitor, running: no sample yet"
    wait_until(lambda: len(mon.recording) >= 2)
    mon.metric("loss", 0.25)
    mon.stop()
    told = str(mon)
    assert told.startswith("labkit monitor, stopped at ")
    assert "measured on " in told
    assert any(line.split()[0] == "CPU" and line.endswith(" %") for line in told.splitlines()[2:])
    assert any(line.split()[0] == "loss" and line.split()[-1] == "0.25" for line in told.splitlines())
    assert "Disk" not in told  # the live plot hides it as well


def test_text_sums_up_families_and_ends_with_the_warnings() -> None:
    recording = Recording(0.5)
    gpus = [Series(f"gpu.{i}.power", f"GPU {i} power", "W", "modelled", "gpu power") for i in range(8)]
    cores = [Series(f"cpu.{i}", f"Core {i}", "%", "measured", "cores") for i in range(4)]
    for number in range(1, 121):
        values: dict[Series, float | None] = dict.fromkeys(cores, 100.0 * (number > 60))
        recording.append(number / 2, {**values, **{one: float(i) for i, one in enumerate(gpus)}}, {})
    told = recording_text(recording, "title", ["GPU 0: hot"]).splitlines()
    assert told[0] == "title at 60 s: the last 60 s, and now"
    assert told[1].split() == ["4", "cores,", "mean", "▁" * 15 + "█" * 15, "100", "%"]
    assert told[2].startswith("  8 GPUs power, mean")
    assert told[2].endswith("3.5 W, modelled")
    assert told[3] == "  ! GPU 0: hot"


def recorded() -> Recording:
    cpu = Series("cpu", "CPU", "%", "measured", "cpu")
    emulated = Series("emulator", "Emulated GPU", "%", "emulated", "emulator")
    hot = Series("gpu.0.temperature", "GPU 0 temperature", "°C", "measured", "gpu temperature", hidden=True)
    speed = Series("own.images/s", "images/s", "images/s", "measured", "own")
    accuracy = Series("own.accuracy %", "accuracy %", "%", "modelled", "own")
    recording = Recording(0.5)
    for number in range(10):
        values = {cpu: 10.0 * number, emulated: 50.0, hot: 40.0, accuracy: 1.0}
        recording.append(number / 2, {**values, speed: 100.0 if number % 3 == 0 else None}, {})
    recording.end(recording.begin("training", 1.0), 3.0)
    recording.end(recording.begin("launch", 3.5), 3.6)
    return recording


def test_figure_has_a_panel_for_shares_and_one_for_each_other_unit() -> None:
    figure = recording_figure(recorded(), everything=True)
    panels = {trace.name: trace.yaxis for trace in figure.data}
    assert panels["CPU (%), measured"] == panels["Emulated GPU (%), emulated"]
    assert len(set(panels.values())) == 4
    assert panels["accuracy %, modelled"] != panels["CPU (%), measured"]
    titles = [figure.layout[axis].title.text for axis in ("yaxis", "yaxis2", "yaxis3", "yaxis4")]
    assert titles == ["%", "°C", "%", "images/s"]


def test_figure_dashes_what_is_not_measured() -> None:
    traces = {trace.name: trace for trace in recording_figure(recorded()).data}
    assert traces["Emulated GPU (%), emulated"].line.dash == "dash"
    assert traces["CPU (%), measured"].line.dash == "solid"


def test_own_metrics_are_joined_in_their_rhythm_and_break_where_they_were_silent() -> None:
    speed = Series("own.steps", "steps", "", "measured", "own")
    recording = Recording(0.5)
    for number in (0, 3, 6, 9, 30, 33):  # every 1.5 s, then nothing for ten
        recording.append(number / 2, {speed: float(number)}, {})
    (trace,) = recording_figure(recording).data
    assert list(trace.x) == [0, 1.5, 3, 4.5, 4.5, 15, 16.5]
    assert list(trace.y) == [0, 3, 6, 9, None, 30, 33]


def test_figure_says_where_its_numbers_come_from_and_hides_what_the_plot_hides() -> None:
    recording = recorded()
    recording.machine = "modelled: <two> cards"
    figure = recording_figure(recording)
    assert figure.layout.title.subtitle.text == "modelled: &lt;two&gt; cards"
    hot = "GPU 0 temperature (°C), measured"
    assert hot not in {trace.name for trace in figure.data}
    assert hot in {trace.name for trace in recording_figure(recording, everything=True).data}


def test_names_of_spans_do_not_lie_over_each_other() -> None:
    recording = recorded()
    for number in range(6):
        recording.end(recording.begin(f"a long name {number}", number / 2), number / 2 + 0.4)
    labels = recording_figure(recording).layout.annotations
    rows: dict[float, float] = {}
    for label in sorted(labels, key=lambda one: (one.yshift, one.x)):
        assert label.x >= rows.get(label.yshift, 0)
        rows[label.yshift] = label.x + 0.012 * 4.5 * len(label.text)
    assert len(labels) > 3


def test_figure_of_a_large_machine_keeps_a_short_legend() -> None:
    cores = [Series(f"cpu.{i}", f"Core {i}", "%", "measured", "cores") for i in range(64)]
    gpus = [Series(f"gpu.{i}.utilization", f"GPU {i}", "%", "measured", "gpu") for i in range(2)]
    recording = Recording(0.5)
    recording.append(0.5, dict.fromkeys(cores + gpus, 50.0), {})
    traces = recording_figure(recording).data
    assert len(traces) == 66
    assert sum(trace.showlegend for trace in traces) == 3
    first, second = traces[-2:]
    assert first.line.color != second.line.color


def test_figure_shades_spans_and_marks_brief_ones() -> None:
    figure = recording_figure(recorded())
    shapes = [(shape.type, shape.x0, shape.x1) for shape in figure.layout.shapes]
    assert ("rect", 1.0, 3.0) in shapes
    assert ("line", 3.5, 3.5) in shapes
    assert {"training", "launch"} <= {note.text for note in figure.layout.annotations}


def test_figure_of_very_many_spans_stays_small_and_says_so() -> None:
    recording = recorded()
    for number in range(1000):
        recording.end(recording.begin("step", number / 300), number / 300 + 0.001)
    figure = recording_figure(recording)
    assert len({(shape.x0, shape.x1) for shape in figure.layout.shapes}) <= MAX_DRAWN_SPANS
    assert "last 200 of 1002 spans" in figure.layout.title.text


def test_plain_script_needs_neither_widgets_nor_plotly_until_asked() -> None:
    script = (
        "import sys, time, labkit\n"
        "mon = labkit.monitor(0.1)\n"
        "with mon.span('work'): time.sleep(0.35)\n"
        "mon.metric('images/s', 3)\n"
        "mon.stop()\n"
        "assert not {'anywidget', 'ipywidgets', 'plotly', 'IPython'} & set(sys.modules)\n"
        "print(len(mon.figure().data) >= 3)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


@pytest.mark.skipif(not hasattr(sys.modules["os"], "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_child_of_a_fork_can_use_the_monitor_it_inherited_and_a_new_one(mon: Monitor) -> None:
    import os

    wait_until(lambda: len(mon.recording) >= 1)
    child = os.fork()
    if child == 0:
        mon.metric("loss", 1)
        with mon.span("in the child"):
            pass
        before = len(mon.recording)
        new = monitor(0.1)
        limit = time.monotonic() + 5
        while not len(new.recording) and time.monotonic() < limit:
            time.sleep(0.01)
        os._exit(0 if len(new.recording) and len(mon.recording) == before else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_shared_sampler_is_what_monitors_use(mon: Monitor) -> None:
    wait_until(lambda: sampler.shared().running)
