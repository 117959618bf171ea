"""The training step adds up, overlap hides what it can, and goodput agrees with a simulation of failures."""

from __future__ import annotations

import random

import pytest

import labkit
from labkit import LabkitError
from labkit.compute.model import modelled_time
from labkit.network.fabric.goodput import best_interval, goodput, useful
from labkit.network.fabric.training_step import Layout, Transformer, training_step

MODEL = Transformer(parameters=7e9, layers=32, hidden=4096)


@pytest.fixture(scope="module")
def made():
    return labkit.fabric("dgx-h100", nodes=4)


def parts(step) -> float:
    return step.compute_s + step.tensor_s + step.bubble_s + step.exposed_s


@pytest.mark.parametrize(
    "layout", [Layout(32), Layout(4, 8), Layout(4, 2, 4), Layout(1, 8, 4), Layout(2, 1, 1)]
)
def test_parts_add_up(made, layout):
    step = training_step(made, MODEL, 128, layout)
    assert step.seconds == pytest.approx(parts(step))
    assert 0 < step.efficiency <= 1
    assert (step.tensor_s > 0, step.bubble_s > 0, step.reduce_s > 0) == (
        layout.tensor > 1,
        layout.pipeline > 1,
        layout.data > 1,
    )
    assert "modelled" in repr(step)


def test_compute_is_the_roofline_s(made):
    """6 FLOP a parameter and token, at the share of the peak asked for."""
    step = training_step(made, MODEL, 32, Layout(32), of_peak=0.4)
    peak = modelled_time(2 * 7e9 * 2048, gpu="H100", precision="fp16_tensor", launch_s=0).seconds
    assert step.compute_s == pytest.approx(3 * peak / 0.4)


def test_the_bubble_is_that_of_1f1b(made):
    """(p - 1)/m of the work, hand-overs apart."""
    step = training_step(made, MODEL, 64, Layout(1, 1, 4))
    assert step.bubble_s == pytest.approx(3 / 64 * step.compute_s, rel=0.02)


def test_overlap_hides_gradients_behind_the_backward_pass(made):
    hidden, shown = (training_step(made, MODEL, 32, overlap=word) for word in (True, False))
    assert shown.exposed_s == pytest.approx(shown.reduce_s)
    assert hidden.exposed_s < 0.9 * shown.exposed_s
    assert hidden.exposed_s >= hidden.reduce_s / hidden.buckets * (
        1 - 1e-9
    )  # the last bucket has nothing to hide behind


def test_a_good_all_reduce_raises_efficiency(made):
    flat, knowing = (training_step(made, MODEL, 32, algorithm=word) for word in ("ring", "hierarchical"))
    assert knowing.efficiency > flat.efficiency


def test_tensor_parallelism_belongs_inside_a_server():
    made = labkit.fabric("dgx-h100", nodes=2)
    inside = training_step(made, MODEL, 16, Layout(2, 8))
    across = training_step(made, MODEL, 16, Layout(1, 16))
    assert across.tensor_s > 3 * inside.tensor_s


@pytest.mark.parametrize(
    ("layout", "batch", "says"),
    [
        (Layout(64), 64, "64 ranks"),
        (Layout(3), 64, "does not divide"),
        (Layout(1, 1, 3), 8, "pipeline stages"),
    ],
)
def test_layouts_that_do_not_fit(made, layout, batch, says):
    with pytest.raises(LabkitError, match=says):
        training_step(made, MODEL, batch, layout)


def failing(interval: float, mean: float, checkpoint: float, restart: float, segments: int) -> float:
    """Useful share of the time, by living through random failures."""
    rng, clock = random.Random(1), 0.0
    for _ in range(segments):
        need = interval + checkpoint
        while (lived := rng.expovariate(1 / mean)) < need:
            clock += lived
            while (again := rng.expovariate(1 / mean)) < restart:
                clock += again
            clock += restart
        clock += need
    return segments * interval / clock


@pytest.mark.parametrize(("interval", "restart"), [(200.0, 60.0), (1000.0, 60.0), (50.0, 600.0)])
def test_goodput_agrees_with_living_through_failures(interval, restart):
    expected = useful(interval, 1000.0, 20.0, restart)
    assert failing(interval, 1000.0, 20.0, restart, 20_000) == pytest.approx(expected, rel=0.05)


def test_the_best_interval_is_best_and_near_young_s():
    best = best_interval(1e5, 10.0)
    assert best == pytest.approx((2 * 10 * 1e5) ** 0.5, rel=0.02)
    assert useful(best, 1e5, 10.0, 5.0) > max(
        useful(best * 1.2, 1e5, 10.0, 5.0), useful(best / 1.2, 1e5, 10.0, 5.0)
    )


def test_more_nodes_fail_more_often():
    few, many = (goodput(nodes, "50000h", "2min", "10min") for nodes in (16, 4096))
    assert many.share < few.share
    assert many.interval_s < few.interval_s
    assert repr(few).endswith("modelled)")
    assert goodput(4, "1s", "10h", interval="10h").share == 0.0
    with pytest.raises(LabkitError, match="longer than nothing"):
        goodput(4, 0, 1)
