"""Lesson 04: the calls of every check, what they should give, and the same with a typical mistake in it.

Everything here is NumPy. Its float16 rounds as torch's does, element by element, so what an answer should reach can be
worked out where torch has not been loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.compute import convolving
from labkit.course import seeds
from labkit.course.checks import Call
from labkit.network.memory_model import training_memory

Array = NDArray[Any]
FEATURES, CLASSES = 6, 4
RATE = 0.5  # learning rate of 04.accumulate
MEMORY = ("parameters", "activation_values", "precision", "optimizer", "zero_stage", "ranks")
PARTS = ("weights", "gradients", "optimizer", "activations")


# 04.accumulate


def accumulations(table: None) -> Iterator[Call]:
    """Groups that come out even and groups that do not, batches of one size and of several."""
    for sizes, group, dtype in (
        ((4, 4, 4, 4), 2, "float32"),
        ((4, 4, 4, 4, 4), 2, "float32"),
        ((8, 8, 8, 3), 4, "float32"),
        ((5, 5, 5, 5, 2), 3, "float64"),
        ((6,), 3, "float32"),
    ):
        yield Call({"sizes": list(sizes), "group": group, "dtype": dtype}, None)


def samples(sizes: list[int], dtype: str) -> tuple[Array, Array, list[Array], list[Array]]:
    """Weights (CLASSES, FEATURES), bias (CLASSES,), and for each batch x (size, FEATURES) and labels (size,)."""
    random = np.random.default_rng((404, *sizes))
    weights, bias = random.normal(0, 0.5, (CLASSES, FEATURES)), random.normal(0, 0.5, CLASSES)
    x = [random.normal(0, 1, (size, FEATURES)).astype(dtype) for size in sizes]
    labels = [random.integers(0, CLASSES, size) for size in sizes]
    return weights.astype(dtype), bias.astype(dtype), x, labels


def gradient(weights: Array, bias: Array, x: Array, labels: Array) -> Array:
    """Of the mean cross-entropy: for the matrix and then the bias, flat, float64."""
    scores = x.astype(np.float64) @ weights.T.astype(np.float64) + bias
    share = np.exp(scores - scores.max(1, keepdims=True))
    share /= share.sum(1, keepdims=True)
    share[np.arange(len(labels)), labels] -= 1
    share /= len(labels)
    return np.concatenate([(share.T @ x).ravel(), share.sum(0)])


def stepped(sizes: list[int], group: int, dtype: str) -> tuple[list[Array], list[list[Array]]]:
    """The gradient of each step, and those of the batches it is made of, at the weights of that step."""
    weights, bias, x, labels = samples(sizes, dtype)
    weights, bias = weights.astype(np.float64), bias.astype(np.float64)
    steps, parts = [], []
    for first in range(0, len(sizes), group):
        own = slice(first, first + group)
        whole = gradient(weights, bias, np.concatenate(x[own]), np.concatenate(labels[own]))
        parts.append([gradient(weights, bias, *one) for one in zip(x[own], labels[own], strict=True)])
        steps.append(whole)
        weights -= RATE * whole[: weights.size].reshape(weights.shape)
        bias -= RATE * whole[weights.size :]
    return steps, parts


# 04.loss_scaling

SCALING_LR, MAX_NORM, SIZE = 2.0e4, 1.0e-6, 6


def scalings(table: None) -> Iterator[Call]:
    """Gradients that fp16 cannot hold, a scale that is far too large, NaN on the way, and gradients to be clipped."""
    for scale, patience, size, special in (
        (2.0**12, 4, 5e-8, "none"),
        (2.0**16, 3, 5e-8, "nan"),
        (2.0**40, 3, 1e-7, "none"),
        (2.0**14, 100, 3e-5, "none"),
    ):
        yield Call({"scale": scale, "patience": patience, "gradients": size, "special": special}, None)


SCALING_STEPS = 12


def factors(size: float, special: str, step: int) -> tuple[float, Array]:
    """The two factors of which one step's gradient is the product: a number, and an array (SIZE,) float16."""
    random = np.random.default_rng((405, step, int(-np.log10(size) * 100)))
    directions = (random.uniform(0.3, 1.5, SIZE) * random.choice([-1, 1], SIZE)).astype(np.float16)
    if special == "nan" and step in (1, 5):
        directions[2] = np.nan
    return size * float(random.uniform(0.7, 1.3)), directions


def scaled_gradient(size: float, special: str, step: int, scale: float) -> Array:
    """What backward gives for ``scale`` times the loss: (SIZE,) float16, with its underflow and overflow."""
    number, directions = factors(size, special, step)
    with np.errstate(all="ignore"):
        return np.float16(scale * number) * directions


def scaling_run(
    scale: float, patience: int, gradients: float, special: str, mistake: str = ""
) -> tuple[Array, list[float], list[int]]:
    """Weights after each step (steps, SIZE) float32, the scales and the counts of good steps."""
    weights: Array = np.zeros(SIZE, np.float32)
    good = 0
    history, scales, goods = [], [], []
    for step in range(SCALING_STEPS):
        raw = scaled_gradient(gradients, special, step, scale)
        finite = bool(np.isfinite(raw).all())
        if finite or mistake == "steps on infinity":
            with np.errstate(all="ignore"):
                weights = weights - np.float32(SCALING_LR) * _unscaled(raw, scale, mistake)
        if finite:
            good += 1
            if mistake == "doubled at once" or (good == patience and mistake != "never doubled"):
                scale, good = scale * 2, 0
        else:
            scale = scale if mistake == "never halved" else scale / 2
            good = good if mistake == "count kept" else 0
        history.append(weights)
        scales.append(scale)
        goods.append(good)
    return np.array(history), scales, goods


def _unscaled(raw: Array, scale: float, mistake: str) -> Array:
    found = raw.astype(np.float32)
    if mistake == "unscaled in fp16":
        return _clipped((raw / np.float16(min(scale, 65504.0))).astype(np.float32), mistake)
    if mistake == "not unscaled":
        return _clipped(found, mistake)
    if mistake == "clipped before unscaling":
        return _clipped(found, mistake) / np.float32(scale)
    return _clipped(found / np.float32(scale), mistake)


def _clipped(found: Array, mistake: str) -> Array:
    norm = float(np.linalg.norm(found))
    if mistake == "clipped by torch":
        return found * np.float32(min(1.0, MAX_NORM / (norm + 1e-6)))
    if mistake == "not clipped" or not norm > MAX_NORM:
        return found
    return found * np.float32(MAX_NORM / norm)


# 04.mixed_step

MIXED_LR, WEIGHT, LINES = 1.0e4, 1.0e-8, 5


def mixed_steps(table: None) -> Iterator[Call]:
    for steps, scale in ((1, 2.0**12), (30, 2.0**12), (10, 2.0**14)):
        yield Call({"steps": steps, "scale": scale}, None)


def lines() -> tuple[Array, Array, Array, Array]:
    """Slopes and offsets (LINES,) float32 to start from, and x and y (LINES,) float16 they should lead through."""
    random = np.random.default_rng(406)
    slopes, offsets = random.uniform(0.6, 1.4, (2, LINES)).astype(np.float32)
    x, y = random.uniform(0.5, 1.5, LINES), random.uniform(-1.5, 0.5, LINES)
    return slopes, offsets, x.astype(np.float16), y.astype(np.float16)


def mixed_run(steps: int, scale: float, mistake: str = "") -> Array:
    """Slopes and offsets after so many steps, (2, LINES) float32, perhaps with a mistake."""
    slopes, offsets, x, y = lines()
    masters = [slopes, offsets]
    for _ in range(steps):
        a, b = (one.astype(np.float16) for one in masters)
        off = a * x + b - y
        pull = (2 * off.astype(np.float32) * np.float32(WEIGHT * scale)).astype(np.float16)
        found = [_mixed_gradient(one, scale, mistake) for one in (pull * x, pull)]
        masters = [_mixed_update(w, g, mistake) for w, g in zip(masters, found, strict=True)]
    return np.array(masters)


def _mixed_gradient(found: Array, scale: float, mistake: str) -> Array:
    if mistake == "unscaled in fp16":
        return (found / np.float16(scale)).astype(np.float32)
    if mistake == "not unscaled":
        return found.astype(np.float32)
    return found.astype(np.float32) / np.float32(scale)


def _mixed_update(weights: Array, found: Array, mistake: str) -> Array:
    if mistake == "weights in fp16":
        return (weights.astype(np.float16) - (np.float32(MIXED_LR) * found).astype(np.float16)).astype(
            np.float32
        )
    if mistake == "uphill":
        return weights + np.float32(MIXED_LR) * found
    return weights - np.float32(MIXED_LR) * found


# 04.memory


def memory_table(random: np.random.Generator) -> dict[str, Any]:
    """A training job of one's own."""
    return {
        "parameters": int(random.integers(5, 700)) * 10_000_000,
        "activation_values": int(random.integers(1, 90)) * 100_000_000,
        "precision": "mixed",
        "optimizer": "adam",
        "zero_stage": int(random.integers(1, 4)),
        "ranks": int(random.choice([4, 8, 16, 64])),
    }


def memories(table: dict[str, Any]) -> Iterator[Call]:
    jobs = [
        table,
        memory_table(seeds.generator("04.memory", "another")),
        dict(zip(MEMORY, (1_000_000, 0, "fp32", "sgd", 0, 1), strict=True)),
        dict(zip(MEMORY, (86_000_000, 11_650_000_000, "fp32", "adam", 0, 1), strict=True)),
        dict(zip(MEMORY, (86_000_000, 11_650_000_000, "mixed", "adam", 0, 1), strict=True)),
        dict(zip(MEMORY, (7_000_000_000, 10_000_000, "mixed", "momentum", 1, 8), strict=True)),
        dict(zip(MEMORY, (7_000_000_000, 10_000_000, "fp32", "adam", 2, 8), strict=True)),
        dict(zip(MEMORY, (7_000_000_000, 10_000_000, "mixed", "adam", 3, 8), strict=True)),
        dict(zip(MEMORY, (3_000_000, 5, "mixed", "sgd", 3, 2), strict=True)),
    ]
    for one in jobs:
        yield Call(dict(one), kept(**one))


def kept(
    parameters: int, activation_values: int, precision: str, optimizer: str, zero_stage: int, ranks: int
) -> dict[str, float]:
    """Bytes on one rank, part by part."""
    found = training_memory(parameters, precision, optimizer, zero_stage, ranks)
    bytes_each = 4 if precision == "fp32" else 2
    return {
        "weights": found.weights,
        "gradients": found.gradients,
        "optimizer": found.optimizer,
        "activations": float(bytes_each * activation_values),
    }


# 04.int8


def layers(table: None) -> Iterator[Call]:
    """An ordinary layer, one with an outlier and a row of zeros, one whose largest values are negative."""
    random = np.random.default_rng(408)
    plain = random.normal(0, 0.1, (8, 32)).astype(np.float32)
    odd = random.normal(0, 0.1, (6, 20)).astype(np.float32)
    odd[2] = 0
    odd[4, 7] = 40
    negative = random.normal(-0.2, 0.1, (5, 48)).astype(np.float32)
    negative[:, 3] = -1.5
    for weights in (plain, odd, negative):
        yield Call(
            {"weights": weights, "x": random.normal(0, 1, (weights.shape[1],)).astype(np.float32)}, None
        )


# 04.fft


def crossings(table: None) -> Iterator[Call]:
    for n in (30_000, 1000, 100_000, 4096, 16):
        yield Call({"n": n}, convolving.crossover(n))
