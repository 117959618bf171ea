"""Lesson 07: the same training on one rank, in NumPy, so that what ranks did is judged where none of them ran."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Weights = dict[str, Array]
WIDTH = 6
FROZEN = ("frozen.weight", "frozen.bias")


def tied_weights(seed: int) -> Weights:
    """Of a net whose first and last layer share their matrix, with a frozen layer between."""
    random = np.random.default_rng((707, seed))
    names = ("first.weight", "first.bias", "frozen.weight", "frozen.bias", "last.bias")
    shapes = [(WIDTH, WIDTH) if name.endswith("weight") else (WIDTH,) for name in names]
    return {name: random.normal(0, 0.5, shape) for name, shape in zip(names, shapes, strict=True)}


def tied_gradient(w: Weights, x: Array, y: Array) -> Weights:
    """Gradient of the mean squared error of last(frozen(tanh(first(x)))), for what is trained."""
    h = np.tanh(x @ w["first.weight"].T + w["first.bias"])
    g = h @ w["frozen.weight"].T + w["frozen.bias"]
    d = 2 * (g @ w["first.weight"].T + w["last.bias"] - y) / y.size
    da = ((d @ w["first.weight"]) @ w["frozen.weight"]) * (1 - h * h)
    return {
        "first.weight": d.T @ g + da.T @ x,  # used twice: both uses add up
        "first.bias": da.sum(0),
        "last.bias": d.sum(0),
    }


def chain_weights(widths: Sequence[int], seed: int) -> Weights:
    """Of linear layers with tanh between them; names as nn.Sequential gives them, tanh counted."""
    random = np.random.default_rng((708, seed))
    found: Weights = {}
    for layer, (one, other) in enumerate(pairwise(widths)):
        found[f"{2 * layer}.weight"] = random.normal(0, 0.6, (other, one))
        found[f"{2 * layer}.bias"] = random.normal(0, 0.6, other)
    return found


def chain_gradient(w: Weights, x: Array, y: Array) -> Weights:
    """Gradient of the mean squared error."""
    layers = len(w) // 2
    inputs = [x]
    for layer in range(layers):
        z = inputs[-1] @ w[f"{2 * layer}.weight"].T + w[f"{2 * layer}.bias"]
        inputs.append(z if layer == layers - 1 else np.tanh(z))
    d = 2 * (inputs[-1] - y) / y.size
    found: Weights = {}
    for layer in reversed(range(layers)):
        found[f"{2 * layer}.weight"], found[f"{2 * layer}.bias"] = d.T @ inputs[layer], d.sum(0)
        d = (d @ w[f"{2 * layer}.weight"]) * (1 - inputs[layer] ** 2)
    return {name: found[name] for name in w}


def batches(seed: int, steps: int, samples: int, features: int, targets: int) -> list[tuple[Array, Array]]:
    """A batch for each step: inputs and targets."""
    random = np.random.default_rng((709, seed))
    return [
        (random.normal(0, 1, (samples, features)), random.normal(0, 1, (samples, targets)))
        for _ in range(steps)
    ]


def descend(w: Weights, gradient: Any, parts: Sequence[tuple[Array, Array]], lr: float) -> Weights:
    """Plain gradient descent: a step for each batch."""
    w = dict(w)
    for x, y in parts:
        for name, slope in gradient(w, x, y).items():
            w[name] = w[name] - lr * slope
    return w
