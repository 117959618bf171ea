"""Lesson 07: the calls of every check, with what they should return, and the learner's own tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from labkit.course import seeds
from labkit.course.checks import Call
from labkit.course.lessons import l07_serial as serial
from labkit.course.lessons.l07_record import BUCKET_STEPS, CHAIN, embedding, layers, rank_batches

TRAIN = ("world", "model", "loss", "batches", "lr")
OVERLAP = ("world", "parameters", "bucket_bytes")
ACCUMULATE = ("ddp", "loss", "micro_batches", "optimizer")
TWO_LAYERS = ("world", "x", "up", "up_bias", "down", "down_bias", "dy")
LOOKUP = ("world", "block", "ids", "gradient")
ZERO = ("parameters", "ranks", "memory", "activations")
GB = 1e9
_TRUNK, _LEFT, _RIGHT = ([f"{name}.bias", f"{name}.weight"] for name in ("trunk", "left", "right"))
UNUSED = {
    "left branch alone": _RIGHT,
    "both branches": [],
    "trunk detached": _TRUNK,
    "a weight without its bias": ["left.weight", "trunk.bias"],
    "nothing asks for a gradient": sorted(_TRUNK + _LEFT + _RIGHT),
    "60 levels with two ways each": _LEFT + _RIGHT,
    "4000 operations in a row": _LEFT + _TRUNK,
}


def train(_: None) -> Iterator[Call]:
    """Two ranks, three, and one."""
    for ranks, samples, steps, lr, seed in ((2, 8, 3, 0.2, 1), (3, 6, 2, 0.1, 2), (1, 4, 2, 0.1, 3)):
        start = serial.tied_weights(seed)
        data = serial.batches(seed, steps, samples, serial.WIDTH, serial.WIDTH)
        arguments = {"ranks": ranks, "samples": samples, "steps": steps, "lr": lr, "seed": seed}
        yield Call(arguments, serial.descend(start, serial.tied_gradient, data, lr))


def overlapped(_: None) -> Iterator[Call]:
    """Several buckets; parameters larger than a bucket; one bucket for all."""
    for ranks, bucket_bytes, seed in ((2, 700, 1), (3, 256, 2), (2, 100_000, 3)):
        weights = serial.chain_weights(CHAIN, seed)
        data = [rank_batches(rank, seed, BUCKET_STEPS) for rank in range(ranks)]
        expected = [
            _mean([serial.chain_gradient(weights, *data[rank][step]) for rank in range(ranks)])
            for step in range(BUCKET_STEPS)
        ]
        yield Call({"ranks": ranks, "bucket_bytes": bucket_bytes, "seed": seed}, expected)


def packed(sizes: list[int], limit: int) -> list[int]:
    """Bytes of each bucket, filled in the order of ``sizes``."""
    found: list[int] = []
    for size in sizes:
        if found and found[-1] + size <= limit:
            found[-1] += size
        else:
            found.append(size)
    return found


def chain_sizes() -> list[int]:
    """Bytes of each parameter of the chain, in the model's order."""
    return [one.nbytes for one in serial.chain_weights(CHAIN, 0).values()]


def accumulate(_: None) -> Iterator[Call]:
    for ranks, micro_batches, lr, seed in ((2, 3, 0.2, 1), (3, 4, 0.1, 2), (2, 1, 0.2, 3)):
        arguments = {"ranks": ranks, "micro_batches": micro_batches, "lr": lr, "seed": seed}
        yield Call(arguments, accumulated(ranks, micro_batches, lr, seed))


def accumulated(
    ranks: int, micro_batches: int, lr: float, seed: int, scale: float = 1.0, keep: bool = False
) -> serial.Weights:
    """Weights after two steps, each with the mean over all micro-batches of all ranks; variants for mistakes."""
    weights = serial.chain_weights(CHAIN, seed)
    data = [rank_batches(rank, seed, 2 * micro_batches) for rank in range(ranks)]
    held = {name: np.zeros_like(one) for name, one in weights.items()}
    for step in range(2):
        parts = [one for rank in data for one in rank[step * micro_batches : (step + 1) * micro_batches]]
        slope = _mean([serial.chain_gradient(weights, *part) for part in parts])
        held = {name: scale * slope[name] + (held[name] if keep else 0) for name in weights}
        weights = {name: one - lr * held[name] for name, one in weights.items()}
    return weights


def unused(_: None) -> Iterator[Call]:
    for net, names in UNUSED.items():
        yield Call({"net": net}, names)


def two_layers(_: None) -> Iterator[Call]:
    for ranks, samples, features, hidden, seed in ((2, 3, 4, 6, 1), (4, 2, 5, 8, 2), (1, 2, 3, 4, 3)):
        w = layers(samples, features, hidden, seed)
        seen = w["x"] @ w["up"].T + w["up_bias"]
        y = np.maximum(seen, 0) @ w["down"].T + w["down_bias"]
        dx = ((w["dy"] @ w["down"]) * (seen > 0)) @ w["up"]
        arguments = {
            "ranks": ranks,
            "samples": samples,
            "features": features,
            "hidden": hidden,
            "seed": seed,
        }
        yield Call(arguments, (y, dx))


def pipelines(_: None) -> Iterator[Call]:
    """Many micro-batches, few, as many as stages, and a pipeline of one stage."""
    for stages, micro_batches in ((4, 8), (2, 3), (4, 2), (1, 3), (3, 3)):
        yield Call({"stages": stages, "micro_batches": micro_batches}, None)


def lookups(_: None) -> Iterator[Call]:
    """Uneven batches, an empty one, ids asked for more than once."""
    for rows, features, counts, seed in ((12, 3, [5, 2, 7], 1), (8, 2, [6, 0], 2), (4, 2, [3], 3)):
        table, ids, gradients = embedding(rows, features, counts, seed)
        total = np.zeros_like(table)
        for one, slope in zip(ids, gradients, strict=True):
            np.add.at(total, one, slope)
        arguments = {"rows": rows, "features": features, "counts": counts, "seed": seed}
        yield Call(arguments, ([table[one] for one in ids], np.split(total, len(counts))))


def zero_table(random: np.random.Generator) -> dict[str, Any]:
    """A model, a number of cards, and cards on which some stage other than 0 is the first that fits."""
    parameters = float(random.choice([1.3e9, 2.7e9, 6.7e9, 13e9, 30e9]))
    ranks = int(random.choice([4, 8, 16, 32]))
    activations = float(random.choice([4, 8, 12])) * GB
    stage = int(random.integers(1, 4))
    need, more = (bytes_a_rank(parameters, ranks, one) + activations for one in (stage, stage - 1))
    memory = need + (more - need) * random.uniform(0.2, 0.8)
    return {
        "parameters": parameters,
        "ranks": ranks,
        "memory": round(memory / GB, 1) * GB,
        "activations": activations,
    }


def bytes_a_rank(parameters: float, ranks: int, stage: int) -> float:
    """State of mixed-precision Adam on one rank: 2 + 2 + 12 bytes a parameter, less what the stage divides."""
    weights, gradients, optimizer = 2.0, 2.0, 12.0
    optimizer /= ranks if stage >= 1 else 1
    gradients /= ranks if stage >= 2 else 1
    weights /= ranks if stage >= 3 else 1
    return parameters * (weights + gradients + optimizer)


def fitting(parameters: float, ranks: int, memory: float, activations: float) -> int | None:
    """The lowest ZeRO stage whose memory fits."""
    needs = (bytes_a_rank(parameters, ranks, stage) + activations for stage in range(4))
    return next((stage for stage, need in enumerate(needs) if need <= memory), None)


def zero(table: dict[str, Any]) -> Iterator[Call]:
    """Three on which every typical mistake gives a stage of its own, one for each stage, one that fits exactly, the
    learner's own, and others."""
    hand = (
        (8e9, 2, 80 * GB, 19 * GB),
        (7e9, 8, 80 * GB, 38 * GB),
        (30e9, 16, 80 * GB, 21 * GB),
        (1e9, 8, 20 * GB, 4 * GB),
        (7e9, 8, 40 * GB, 10 * GB),
        (7e9, 8, 24 * GB, 8 * GB),
        (175e9, 8, 80 * GB, 10 * GB),
        (1e9, 2, 16 * GB, 0.0),
    )
    tables = [table, *(zero_table(seeds.generator("07.zero", who)) for who in ("first", "second", "third"))]
    for one in (*(dict(zip(ZERO, figures, strict=True)) for figures in hand), *tables):
        yield Call(dict(one), fitting(**one))


def _mean(gradients: list[serial.Weights]) -> serial.Weights:
    return {name: np.mean([one[name] for one in gradients], axis=0) for name in gradients[0]}
