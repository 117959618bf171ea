"""The lesson's figures show what they are given."""

from __future__ import annotations

from support import needs

from labkit.network.memory_model import training_memory
from labkit.network.timeline import Event, Stretch, Timeline


def test_curves_and_buckets() -> None:
    needs.require("lab")
    from labkit.widgets import training_figures

    figure = training_figures.curves({"a": [3.0, 1.0], "b": [2.0, 2.0]}, "Loss", "loss", dashed="b")
    assert [list(one.y) for one in figure.data] == [[3, 1], [2, 2]]
    assert [one.line.dash for one in figure.data] == ["solid", "dot"]
    figure = training_figures.over_bucket([1024, 2048], {"ours": [0.5, 0.25]}, "A step")
    assert list(figure.data[0].y) == [500, 250]
    assert list(figure.layout.xaxis.ticktext) == ["1 KiB", "2 KiB"]


def test_memory_adds_up_to_the_model() -> None:
    needs.require("lab")
    from labkit.widgets import training_figures

    rows = {f"ZeRO {s}": training_memory(1e9, zero_stage=s, ranks=4, activations=1e9) for s in (0, 3)}
    figure = training_figures.memory(rows, "Memory", capacity=10e9)
    assert [sum(part.x[n] for part in figure.data) for n in range(2)] == [17, 5]
    assert figure.layout.shapes[0].x0 == 10


def test_a_timeline_is_cut() -> None:
    line = Timeline(
        1,
        "gloo",
        (Stretch(0, "compute", "", 0.0, 2.0), Stretch(0, "wait", "recv", 2.0, 3.0)),
        (Event(0, "call", "recv", 2.0, 3.0), Event(0, "op", "aten::mm", 0.0, 1.0)),
    )
    cut = line.between(1.5, 2.5)
    assert cut.stretches == (Stretch(0, "compute", "", 0.0, 0.5), Stretch(0, "wait", "recv", 0.5, 1.0))
    assert cut.events == (Event(0, "call", "recv", 0.5, 1.0),)
    assert cut.seconds == 1.0
