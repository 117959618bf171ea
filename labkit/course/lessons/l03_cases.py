"""Lesson 03: the calls of every check, with what they should return, and the learner's own tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from labkit.course import seeds
from labkit.course.checks import Call

MIB = 2**20
OFFLOAD = ("cpu_s", "gpu_s", "bytes_between", "alpha_s", "bytes_per_s")
SIZES = (4, 64, 1024, 16 * 1024, 256 * 1024, 4 * MIB, 64 * MIB)


def link_table(random: np.random.Generator) -> dict[str, Any]:
    """A link's seconds for 4 bytes to 64 MiB, which scatter by about 2 %, and a size to predict."""
    alpha, rate = random.uniform(5e-6, 40e-6), random.uniform(6e9, 50e9)
    scatter = random.normal(1, 0.02, len(SIZES))
    seconds = [float(f"{(alpha + n / rate) * s:.4g}") for n, s in zip(SIZES, scatter, strict=True)]
    return {"sizes": list(SIZES), "seconds": seconds, "size": int(random.integers(2, 60)) * 100_000}


def alpha_beta(table: dict[str, Any]) -> Iterator[Call]:
    tables = [table, *(link_table(seeds.generator("03.alpha_beta", who)) for who in ("first", "second"))]
    tables.append({"sizes": [1000, 2000, 5000], "seconds": [3e-6, 3.5e-6, 5.2e-6], "size": 0})
    for one in tables:
        yield Call(dict(one), fitted(**one))


def fitted(sizes: Sequence[float], seconds: Sequence[float], size: float) -> tuple[float, float, float]:
    """alpha, beta by least squares of relative errors, and the prediction for ``size``."""
    n, t = np.asarray(sizes, float), np.asarray(seconds, float)
    (alpha, slope), *_ = np.linalg.lstsq(np.column_stack([1 / t, n / t]), np.ones(len(n)), rcond=None)
    return float(alpha), float(1 / slope), float(alpha + slope * size)


def programs(table: None) -> Iterator[Call]:
    """Arrays that chunks divide evenly and ones that they do not, two chunks, and many."""
    for size, chunks, chunk_s in (
        (64 * MIB, 4, 1e-3),
        (10 * MIB, 7, 2e-4),
        (8 * MIB, 2, 4e-4),
        (33 * MIB, 12, 1e-4),
    ):
        yield Call({"size": size, "chunks": chunks, "chunk_s": chunk_s}, None)


def trainings(table: None) -> Iterator[Call]:
    for size, steps, step_s in ((64 * MIB, 8, 1e-3), (9 * MIB, 3, 5e-4), (48 * MIB, 24, 2e-4)):
        yield Call({"size": size, "steps": steps, "step_s": step_s}, None)


def feeds(table: None) -> Iterator[Call]:
    """Shards that divide evenly among workers and ones that do not, a short last shard, more workers than shards."""
    for samples, per_shard, workers in ((600, 100, 3), (450, 60, 4), (210, 210, 1), (130, 60, 5)):
        yield Call({"samples": samples, "per_shard": per_shard, "workers": workers}, None)


def stages_table(random: np.random.Generator) -> dict[str, Any]:
    """Six stages of some milliseconds, of which the GPU is good at some, and moves that cost about as much.

    Drawn until the best plan uses both and is not simply the faster side of every stage.
    """
    while True:
        table = _stages(random)
        plan = best(table)
        if len(set(plan)) == 2 and plan != faster_sides(table):
            return table


def _stages(random: np.random.Generator, stages: int = 6) -> dict[str, Any]:
    cpu = random.uniform(1e-3, 12e-3, stages)
    faster = random.choice([0.3, 0.7, 1.5, 6.0, 12.0, 25.0], stages)
    megabytes = random.integers(4, 60, stages + 1)
    return {
        "cpu_s": [float(f"{s:.4g}") for s in cpu],
        "gpu_s": [float(f"{s / f:.4g}") for s, f in zip(cpu, faster, strict=True)],
        "bytes_between": [int(m) * 1_000_000 for m in megabytes],
        "alpha_s": 1e-5,
        "bytes_per_s": 12e9,
    }


def faster_sides(table: dict[str, Any]) -> tuple[str, ...]:
    """The side that does each stage faster, moves left aside."""
    return tuple("gpu" if g < c else "cpu" for c, g in zip(table["cpu_s"], table["gpu_s"], strict=True))


def offload(table: dict[str, Any]) -> Iterator[Call]:
    """A chain on which every short cut gives another plan, the learner's own, others, one stage, a pair that only pays
    together, and one that never does."""
    tables = [
        table,
        *(stages_table(seeds.generator("03.offload", who)) for who in ("first", "second", "third")),
    ]
    hand = (
        ([4e-3], [1e-3], [6_000_000, 6_000_000], 1e-5, 12e9),
        ([3e-3, 3e-3], [1e-3, 1e-3], [20_000_000, 60_000_000, 20_000_000], 1e-5, 12e9),
        ([2e-3, 5e-3, 2e-3], [1e-4, 6e-3, 1e-4], [10_000_000, 40_000_000, 40_000_000, 1_000_000], 1e-5, 12e9),
        ([5e-4, 5e-4], [4e-4, 4e-4], [8_000_000, 8_000_000, 8_000_000], 1e-5, 12e9),
        ([1e-3, 1e-3, 4e-3], [1e-4, 1e-4, 1e-4], [1_000_000, 1_000_000, 1_000_000, 90_000_000], 1e-5, 12e9),
    )
    telling = {
        "cpu_s": [6e-3, 6e-3, 9e-3, 11e-3, 1e-3],
        "gpu_s": [2e-3, 7e-3, 8e-3, 2e-3, 3e-3],
        "bytes_between": [60_000_000, 36_000_000, 24_000_000, 60_000_000, 24_000_000, 36_000_000],
        "alpha_s": 1e-5,
        "bytes_per_s": 12e9,
    }
    for one in (telling, *tables, *(dict(zip(OFFLOAD, figures, strict=True)) for figures in hand)):
        yield Call(dict(one), best(one))


def best(table: dict[str, Any]) -> tuple[str, ...]:
    """The plan that takes the least time, by trying all of them."""
    plans = itertools.product(("cpu", "gpu"), repeat=len(table["cpu_s"]))
    return min(plans, key=lambda plan: duration(plan, **table))


def duration(
    plan: Sequence[str],
    cpu_s: Sequence[float],
    gpu_s: Sequence[float],
    bytes_between: Sequence[float],
    alpha_s: float,
    bytes_per_s: float,
) -> float:
    """Seconds of a plan: stages where they run, and a move wherever the data change sides; they start and end on the
    CPU."""
    places = ("cpu", *plan, "cpu")
    moves = sum(
        alpha_s + bytes_between[n] / bytes_per_s for n in range(len(places) - 1) if places[n] != places[n + 1]
    )
    return moves + sum(gpu_s[n] if where == "gpu" else cpu_s[n] for n, where in enumerate(plan))
