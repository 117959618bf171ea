"""What the exercises of lesson 04 compare with is right, and no typical mistake looks like it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from labkit.course.lessons import l04_cases as cases
from labkit.course.lessons import l04_why as why
from labkit.course.lessons import l04_why_more as why_more
from labkit.hardware.catalog import claim


def test_the_gradient_of_the_big_batch_is_torchs(require):
    require("torch")
    import torch

    weights, bias, x, labels = cases.samples([5, 3], "float64")
    model = torch.nn.Linear(cases.FEATURES, cases.CLASSES, dtype=torch.float64)
    with torch.no_grad():
        model.weight.copy_(torch.from_numpy(weights))
        model.bias.copy_(torch.from_numpy(bias))
    whole, target = torch.from_numpy(np.concatenate(x)), torch.from_numpy(np.concatenate(labels))
    torch.nn.functional.cross_entropy(model(whole), target).backward()
    found = torch.cat([model.weight.grad.flatten(), model.bias.grad]).numpy()
    steps, parts = cases.stepped([5, 3], 2, "float64")
    assert np.allclose(steps[0], found, rtol=1e-12)
    assert np.allclose((5 * parts[0][0] + 3 * parts[0][1]) / 8, found, rtol=1e-12)


def test_scaled_gradients_underflow_and_overflow_as_torchs_do(require):
    require("torch")
    import torch

    for call in cases.scalings(None):
        size, special, scale = (call.arguments[key] for key in ("gradients", "special", "scale"))
        for step in range(cases.SCALING_STEPS):
            number, directions = cases.factors(size, special, step)
            pull = torch.tensor(scale * number).half()
            got = (torch.from_numpy(directions) * pull).numpy()
            wanted = cases.scaled_gradient(size, special, step, scale)
            assert np.array_equal(got, wanted, equal_nan=True)


def test_the_cases_of_loss_scaling_cover_what_can_happen():
    runs = [cases.scaling_run(**call.arguments) for call in cases.scalings(None)]
    starts = [call.arguments["scale"] for call in cases.scalings(None)]
    assert any(
        scales[0] < start for (_, scales, _), start in zip(runs, starts, strict=True)
    )  # overflow at once
    assert any(max(scales) > start for (_, scales, _), start in zip(runs, starts, strict=True))  # growth
    assert all(np.isfinite(weights).all() for weights, _, _ in runs)


@pytest.mark.parametrize("mistake", [*why._SCALING, *why._SCALES])
def test_no_mistake_in_scaling_looks_right(mistake):
    different = 0
    for call in cases.scalings(None):
        right, wrong = (cases.scaling_run(**call.arguments, mistake=one) for one in ("", mistake))
        different += not why._same_weights(wrong[0], right[0], right[0]) or right[1:] != wrong[1:]
    assert different


@pytest.mark.parametrize("mistake", why._MIXED)
def test_no_mistake_in_a_mixed_step_looks_right(mistake):
    start = np.array(cases.lines()[:2])
    right, wrong = (cases.mixed_run(30, 2.0**12, one) - start for one in ("", mistake))
    assert np.abs(right).max() > 1e-3
    assert not np.allclose(wrong, right, rtol=0.1, atol=0.05 * np.abs(right).max())


def test_a_mixed_step_goes_where_fp32_goes():
    """The reference in fp16 arithmetic, against the same descent in double precision."""
    slopes, offsets, x, y = (one.astype(np.float64) for one in cases.lines())
    a, b = slopes.copy(), offsets.copy()
    for _ in range(30):
        pull = 2 * (a * x + b - y) * cases.WEIGHT
        a, b = a - cases.MIXED_LR * pull * x, b - cases.MIXED_LR * pull
    moved = cases.mixed_run(30, 2.0**12) - np.array([slopes, offsets])
    assert np.allclose(moved, np.array([a - slopes, b - offsets]), rtol=0.02)


def test_the_figure_of_the_claim_is_the_catalogues():
    assert "24.7" in claim("mixed-precision-3x").figure
    kept = cases.kept(86_000_000, 11_656_000_000, "fp32", "adam", 0, 1)
    assert sum(kept.values()) / 1e9 == pytest.approx(48, abs=0.01)
    mixed = cases.kept(86_000_000, 11_656_000_000, "mixed", "adam", 0, 1)
    answer = {
        "verdict": "misleading",
        "number": sum(mixed.values()) / 1e9,
        "unit": "GB",
        "left_out": "activations",
    }
    assert why_more.claim(answer) is None


def test_tables_differ_from_learner_to_learner(monkeypatch):
    import labkit

    jobs = set()
    for who in ("ada", "grace", "alan"):
        monkeypatch.setenv("LABKIT_LEARNER", who)
        jobs.add(str(labkit.exercise("04.memory").data()))
    assert len(jobs) == 3


def test_exercises_are_listed_without_loading_torch():
    code = "import sys, labkit; labkit.exercises('04'); labkit.lesson('04'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_list_of_bounds_is_as_good_as_an_array():
    x, scales = np.array([1.0, -2.0], np.float32), np.array([0.5, 0.25], np.float32)
    assert why_more._bound(x, scales, [0.75, 0.375]) is None
    message, _ = why_more._bound(x, scales, [0.5, "far"])
    assert message.startswith("bound is [0.5, ")
