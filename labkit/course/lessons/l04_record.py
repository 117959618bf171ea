"""Lesson 04, in the answer's own process: what answers are handed, and the record of what they did with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from labkit.course.lessons import l04_cases as cases
from labkit.errors import LabkitError

Answer = Callable[..., Any]


class Recorded(torch.optim.SGD):
    """SGD that keeps the gradients of every step it takes."""

    def __init__(self, parameters: Any, lr: float) -> None:
        super().__init__(parameters, lr=lr)
        self.seen: list[torch.Tensor] = []

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        mine = self.param_groups[0]["params"]
        self.seen.append(torch.cat([_gradient(one).flatten() for one in mine]))
        super().step(closure)


def _gradient(parameter: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.detach().clone()


def accumulate(answer: Answer, sizes: list[int], group: int, dtype: str) -> dict[str, Any]:
    weights, bias, x, labels = cases.samples(sizes, dtype)
    model = torch.nn.Linear(cases.FEATURES, cases.CLASSES, dtype=getattr(torch, dtype))
    with torch.no_grad():
        model.weight.copy_(torch.from_numpy(weights))
        model.bias.copy_(torch.from_numpy(bias))
    batches: list[int] = []
    model.register_forward_pre_hook(lambda _, inputs: batches.append(len(inputs[0])))
    optimizer = Recorded(model.parameters(), lr=cases.RATE)
    pairs = [(torch.from_numpy(a), torch.from_numpy(b)) for a, b in zip(x, labels, strict=True)]
    answer(model, torch.nn.functional.cross_entropy, optimizer, pairs, group)
    return {"gradients": optimizer.seen, "batches": batches}


def scaling(answer: Answer, scale: float, patience: int, gradients: float, special: str) -> dict[str, Any]:
    weights = torch.zeros(cases.SIZE)
    scaler = {"scale": scale, "good": 0, "patience": patience}
    asked: list[tuple[int, float, float]] = []
    history, scales, goods = [], [], []
    for step in range(cases.SCALING_STEPS):

        def backward(factor: float, step: int = step) -> torch.Tensor:
            asked.append((step, float(factor), float(scaler["scale"])))
            return torch.from_numpy(cases.scaled_gradient(gradients, special, step, float(factor)))

        answer(weights, backward, scaler, cases.SCALING_LR, cases.MAX_NORM)
        history.append(weights.detach().clone())
        scales.append(scaler["scale"])
        goods.append(scaler["good"])
    return {"weights": torch.stack(history), "scales": scales, "goods": goods, "asked": asked}


def mixed(answer: Answer, steps: int, scale: float) -> dict[str, Any]:
    slopes, offsets, *points = cases.lines()
    master = [torch.from_numpy(slopes), torch.from_numpy(offsets)]
    seen: list[list[str]] = []
    factors: list[float] = []  # by what the loss was multiplied before it went backward
    x, y = map(torch.from_numpy, points)

    def forward(copies: Any) -> torch.Tensor:
        a, b = copies
        seen.append([str(one.dtype).removeprefix("torch.") for one in (a, b)])
        off = a * x.to(a.dtype) + b - y.to(a.dtype)
        loss = (off.float() ** 2).sum() * cases.WEIGHT
        if loss.requires_grad:
            loss.register_hook(lambda pull: factors.append(float(pull)))
        return loss

    for _ in range(steps):
        answer(master, forward, cases.MIXED_LR, scale)
    if not all(isinstance(one, torch.Tensor) for one in master):
        raise LabkitError("After mixed_step the list master holds something other than tensors.")
    return {
        "master": [one.detach().float() for one in master],
        "dtypes": [str(one.dtype).removeprefix("torch.") for one in master],
        "seen": seen,
        "factors": factors,
    }
