"""Lesson 07, in the answer's own process: the torch models that answers train, from the weights of `l07_serial`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from labkit.course.lessons import l07_serial as serial
from labkit.network.training.rehearsed import RehearsedWorld


class Tied(nn.Module):
    """The last layer has the first one's matrix; the layer between is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.frozen, self.last = (nn.Linear(serial.WIDTH, serial.WIDTH) for _ in range(3))
        self.last.weight = self.first.weight
        self.frozen.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.frozen(torch.tanh(self.first(x))))


def tied(seed: int) -> nn.Module:
    return _filled(Tied(), serial.tied_weights(seed))


def chain(widths: Sequence[int], seed: int) -> nn.Module:
    layers: list[nn.Module] = []
    for one, other in pairwise(widths):
        layers += [nn.Linear(one, other), nn.Tanh()]
    return _filled(nn.Sequential(*layers[:-1]), serial.chain_weights(widths, seed))


def _filled(model: nn.Module, weights: serial.Weights) -> nn.Module:
    model.double()
    for name, parameter in model.named_parameters():
        parameter.data.copy_(torch.from_numpy(weights[name]))
    return model


def tensors(batches: Sequence[tuple[Any, Any]]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in batches]


def mean_square(prediction: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (prediction - y).square().mean()


def values(model: nn.Module) -> dict[str, Any]:
    return {name: one.detach().numpy().copy() for name, one in model.named_parameters()}


def gradients(model: nn.Module) -> dict[str, Any]:
    return {
        name: None if one.grad is None else one.grad.numpy().copy() for name, one in model.named_parameters()
    }


class Descent:
    """Plain gradient descent with the two methods that torch's optimizers have."""

    def __init__(self, model: nn.Module, lr: float, world: RehearsedWorld):
        self.parameters, self.lr, self.world = list(model.parameters()), lr, world

    def step(self) -> None:
        self.world.note("step")
        for one in self.parameters:
            if one.grad is not None:
                one.data -= self.lr * one.grad

    def zero_grad(self) -> None:
        for one in self.parameters:
            one.grad = None


class Branches(nn.Module):
    """Three layers, of which a forward pass may use some."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.left, self.right = (nn.Linear(4, 4) for _ in range(3))


def _left(net: Branches, x: torch.Tensor) -> torch.Tensor:
    return net.left(torch.relu(net.trunk(x)))


def _both(net: Branches, x: torch.Tensor) -> torch.Tensor:
    seen = net.trunk(x)
    return (net.left(seen) * net.right(seen)).sum(1)


def _detached(net: Branches, x: torch.Tensor) -> torch.Tensor:
    return net.left(net.trunk(x).detach()) + net.right(x)


def _weight_alone(net: Branches, x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x @ net.trunk.weight) + net.right(x) + 0 * net.left.bias


def _nothing(net: Branches, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return net.left(x)


def _wide(net: Branches, x: torch.Tensor) -> torch.Tensor:
    seen = net.trunk(x)
    for _ in range(60):
        seen = seen + torch.sin(seen)  # two ways through each level
    return seen


def _deep(net: Branches, x: torch.Tensor) -> torch.Tensor:
    seen = net.right(x)
    for _ in range(4000):
        seen = seen * 0.999
    return seen


NETS: dict[str, Callable[[Branches, torch.Tensor], torch.Tensor]] = {
    "left branch alone": _left,
    "both branches": _both,
    "trunk detached": _detached,
    "a weight without its bias": _weight_alone,
    "nothing asks for a gradient": _nothing,
    "60 levels with two ways each": _wide,
    "4000 operations in a row": _deep,
}


def record_unused(answer: Callable[..., Any], net: str) -> dict[str, Any]:
    model = Branches()
    output = NETS[net](model, torch.ones(2, 4))
    passes: list[str] = []
    if output.requires_grad:
        output.register_hook(lambda _: passes.append("backward"))
    returned = answer(output, dict(model.named_parameters()))
    names = sorted(map(str, returned)) if isinstance(returned, (list, tuple, set)) else returned
    return {
        "names": names,
        "passes": passes,
        "gradients": [name for name, one in model.named_parameters() if one.grad is not None],
    }
