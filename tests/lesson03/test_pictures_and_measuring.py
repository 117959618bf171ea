"""Gantt charts and figures hold what they are given; the measured path runs where kernels can be launched at all."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from lesson03.stages import three_stages
from support.needs import require

import labkit
from labkit.compute import cuda
from labkit.compute.device_model import measured, moves, replay, spin, unified
from labkit.compute.feeding import Counts
from labkit.compute.pipeline import Fed
from labkit.errors import LabkitError
from labkit.widgets import moving_figures


def plain(figure) -> dict:
    return json.loads(figure.to_json())


def test_a_bar_for_every_operation_at_its_time():
    timeline = three_stages(3, events=True)
    drawn = plain(labkit.gantt(timeline, "three <streams>"))
    bars = [
        (base, length, row)
        for trace in drawn["data"]
        for base, length, row in zip(trace["base"], trace["x"], trace["y"], strict=True)
    ]
    wanted = [
        (1e3 * start, 1e3 * (end - start), one.engine)
        for one, (start, end) in zip(timeline.operations, timeline.spans, strict=True)
    ]
    assert sorted(bars) == sorted(wanted)
    title = drawn["layout"]["title"]["text"]
    assert title.startswith("three &lt;streams&gt;<br>")
    assert "modelled on A100 SXM4 80 GB" in title
    assert len(drawn["layout"]["annotations"]) == 6  # an arrow for each event
    assert "annotations" not in plain(labkit.gantt(timeline, arrows=False))["layout"]


def test_hazards_are_marked_and_counted():
    timeline = three_stages(4, events=False)
    drawn = plain(labkit.gantt(timeline))
    marks = drawn["data"][-1]
    assert (marks["name"], len(marks["x"])) == ("hazard", 8)
    assert marks["text"][0] == timeline.hazards[0].message
    assert drawn["layout"]["title"]["text"].endswith("8 hazards")
    assert drawn["layout"].get("annotations", []) == []


def test_many_streams_are_not_listed():
    with labkit.device_timeline() as d:
        a = d.buffer("a", "9MiB")
        for part in a.split(9):
            d.kernel("f", writes=part, stream=d.stream())
    assert plain(labkit.gantt(d.timeline()))["layout"]["showlegend"] is False


def test_figures_hold_their_numbers():
    move = moves.host_copy("A100")
    curve, ring = plain(moving_figures.rates([move], "t"))["data"]
    assert curve["y"][40] == pytest.approx(move.rate(curve["x"][40]))
    assert (ring["x"], ring["y"]) == ([move.half_size], [move.bytes_per_s / 2])
    touch = unified.managed("64MiB").touch("device")
    moved, waited = plain(moving_figures.touches({"t": touch}, "t"))["data"]
    assert moved["x"][0] + waited["x"][0] == pytest.approx(1e3 * touch.seconds)
    fed = Fed("loose", "thread", 10, 2.0, 0.5, Counts(1, 2, 3))
    works, waits = plain(moving_figures.fed([fed], "t"))["data"]
    assert (works["x"], waits["x"]) == ([1500], [500])


def test_a_replay_tells_the_rates_of_the_simulated_clock():
    timeline, told = three_stages(2, events=True), []
    replay.replay(timeline, lambda name, value, provenance: told.append((name, value, provenance)), slower=60)
    assert {(name, how) for name, _, how in told} == {
        ("copy in (GB/s)", "modelled"),
        ("copy out (GB/s)", "modelled"),
    }
    assert 20 < max(value for _, value, _ in told) <= 24.01
    assert [value for _, value, _ in told[-2:]] == [0, 0]


def program():
    with labkit.device_timeline() as d:
        x, a = d.host("x", "1MiB"), d.buffer("a", "1MiB")
        y, copies, compute = d.host("y", "1MiB", pinned=False, filled=False), d.stream(), d.stream()
        for p, q, t in zip(x.split(2), a.split(2), y.split(2), strict=True):
            event = d.event()
            d.copy_in(p, q, copies)
            event.record(copies)
            event.wait(compute)
            d.kernel("f", reads=q, writes=q, takes="0.2ms", stream=compute)
            d.copy_out(q, t, compute)
        d.host_work("look", "0.1ms", reads=y)
    return d


def test_without_a_gpu_nothing_is_measured():
    if cuda.BACKEND == "gpu":
        pytest.skip("there is a GPU here")
    with pytest.raises(LabkitError, match="Nothing can be measured"):
        measured.measure(program())


def test_the_measured_path_makes_the_calls_of_the_program(monkeypatch):
    """On the emulator: the same calls as on a GPU, though its times are no measurement."""
    if cuda.BACKEND == "gpu":
        pytest.skip("there is a GPU here")
    monkeypatch.setattr(measured, "_ROUNDS", 200)  # enough for the emulator, whose times are modelled
    found = measured._Run(program().operations).timeline("the emulator")
    assert [one.kind for one in found.operations] == ["copy in", "kernel", "copy out"] * 2
    assert not found.hazards
    for one in found.operations:
        assert all(found.spans[wait.on][1] <= found.spans[one.number][0] + 1e-9 for wait in one.waits)


def test_the_stand_in_does_its_rounds():
    out = np.empty(100, np.float32)
    spin.spin[1, 128](50, out)
    assert np.allclose(out, spin.spin_reference(50, 100))


_COMPILE = """
import importlib
from labkit.compute.kernel_compiler import use_numba
for cc in ((7, 5), (8, 0), (9, 0), (10, 0)):
    cuda = use_numba(cc)
    kernel = importlib.import_module("labkit.compute.device_model.spin").spin.py_func
    text, _ = cuda.compile(kernel, "void(int64, float32[::1])", device=False, abi="numba", cc=cc, output="ptx")
    print(".target sm_%d%d" % cc in text)
"""


def test_the_stand_in_compiles_for_real_cards():
    require("compiler")
    done = subprocess.run([sys.executable, "-c", _COMPILE], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["True"] * 4, done.stderr


@pytest.mark.gpu
def test_on_a_gpu_the_order_holds_and_the_times_are_of_the_device():
    require("gpu")
    found = measured.measure(program())
    assert found.how == "measured"
    for one in found.operations:
        assert all(found.spans[wait.on][1] <= found.spans[one.number][0] + 1e-5 for wait in one.waits)
