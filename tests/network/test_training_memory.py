"""The memory model against published figures, and against what torch really allocates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from labkit.errors import LabkitError
from labkit.network.memory_model import (
    least_stage,
    measured_memory,
    training_memory,
    transformer_activations,
)


@pytest.mark.parametrize(("stage", "gigabytes"), [(0, 120), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_the_figures_of_the_zero_paper(stage: int, gigabytes: float) -> None:
    """7.5 billion parameters on 64 GPUs, mixed precision, Adam (figure 1 there)."""
    total = training_memory(7.5e9, zero_stage=stage, ranks=64).total
    assert total / 1e9 == pytest.approx(gigabytes, rel=0.02)


def test_the_lowest_stage_that_fits() -> None:
    whole = training_memory(7.5e9, ranks=64, activations=4e9)
    assert [least_stage(whole, gb * 1e9).zero_stage for gb in (124, 123, 30, 10)] == [0, 1, 2, 3]  # type: ignore[union-attr]
    assert least_stage(whole, 5e9) is None
    third = least_stage(whole, 10e9)
    assert third == training_memory(7.5e9, ranks=64, zero_stage=3, activations=4e9)
    with pytest.raises(LabkitError, match="stage 0"):
        least_stage(training_memory(1, zero_stage=1), 1)


def test_activations_of_a_transformer() -> None:
    """GPT-3's layer at batch 1: 34 s b h + 5 a s^2 b bytes."""
    s, h, a = 2048, 12288, 96
    assert transformer_activations(96, h, a, s, 1) == 96 * (34 * s * h + 5 * a * s * s)
    assert transformer_activations(1, h, a, s, 1, tensor_parallel=8) == s * h * 13 + 5 * a * s * s / 8
    assert transformer_activations(2, h, a, s, 3, checkpointed=True) == 2 * 2 * s * 3 * h


@pytest.mark.parametrize(
    "words", [{"precision": "fp3"}, {"optimizer": "lion"}, {"zero_stage": 4}, {"ranks": 0}]
)
def test_what_is_not_modelled(words: dict[str, Any]) -> None:
    with pytest.raises(LabkitError):
        training_memory(1, **words)


@pytest.mark.parametrize(
    ("precision", "optimizer"),
    [("fp32", "sgd"), ("fp32", "momentum"), ("fp32", "adam"), ("fp64", "adam"), ("bf16", "adam")],
)
def test_against_what_torch_allocates(precision: str, optimizer: str, require: Callable[..., None]) -> None:
    require("torch")
    import torch
    from torch import nn

    kind = {"fp32": torch.float32, "fp64": torch.float64, "bf16": torch.bfloat16}[precision]
    makers: dict[str, Callable[[Any], Any]] = {
        "sgd": lambda ps: torch.optim.SGD(ps, lr=0.1),
        "momentum": lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9),
        "adam": lambda ps: torch.optim.Adam(ps, lr=0.1),
    }

    def model() -> nn.Module:
        return nn.Sequential(
            nn.Linear(128, 512, dtype=kind), nn.Tanh(), nn.Linear(512, 64, dtype=kind), nn.Tanh()
        )

    x = torch.ones(32, 128, dtype=kind)
    found = measured_memory(model, lambda made: made(x).sum(), makers[optimizer])
    count = 128 * 512 + 512 + 512 * 64 + 64
    activations = 32 * (512 + 64) * kind.itemsize  # Tanh keeps its result; the next layer's input is the same
    wanted = training_memory(count, precision, optimizer, activations=activations)
    for part in ("weights", "gradients", "optimizer"):
        assert getattr(found, part) == pytest.approx(getattr(wanted, part), rel=0.01, abs=100)
    assert activations <= found.activations <= 1.05 * activations + 64
    assert found.peak >= wanted.weights + wanted.gradients + wanted.optimizer
    assert "measured on cpu" in repr(found)


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    import torch
    from torch import nn

    x = torch.ones(32, 128, device="cuda")
    found = measured_memory(
        lambda: nn.Linear(128, 1024, device="cuda"), lambda m: m(x).sum(), torch.optim.Adam, "cuda"
    )
    wanted = training_memory(128 * 1024 + 1024, "fp32", "adam")
    assert found.weights == pytest.approx(wanted.weights, rel=0.01)
    assert found.optimizer == pytest.approx(wanted.optimizer, rel=0.05)
