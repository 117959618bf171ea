"""Lesson 08: the calls of every check, with what they should return, and the learner's own tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from labkit.course import seeds
from labkit.course.checks import Call
from labkit.course.lessons.l03_cases import fitted

SIZES = (64, 512, 4096, 16 * 1024, 64 * 1024, 256 * 1024, 2**20, 2**22)
HOUR = 3600.0
_COPY = 7e9  # bytes/s at which UCX takes a core to copy (bcopy_bandwidth_default_MBps of data/protocols.yaml)


def message_table(random: np.random.Generator) -> dict[str, Any]:
    """Seconds of one message of each size by either protocol, which scatter by about 1 %.

    Eager pays a copy on either side for every byte; rendezvous pays a round trip first, and copies nothing.
    """
    start, trip = random.uniform(1.5e-6, 4e-6), random.uniform(4e-6, 15e-6)
    wire = 1 / random.uniform(11e9, 46e9)
    copies = random.choice([1, 2]) / _COPY
    return {
        "sizes": list(SIZES),
        "eager_s": _noisy(random, start, wire + copies),
        "rendezvous_s": _noisy(random, start + trip, wire),
    }


def _noisy(random: np.random.Generator, start: float, a_byte: float) -> list[float]:
    scatter = random.normal(1, 0.01, len(SIZES))
    return [float(f"{(start + n * a_byte) * s:.5g}") for n, s in zip(SIZES, scatter, strict=True)]


def crossover(table: dict[str, Any]) -> Iterator[Call]:
    """The learner's table, others, one in which rendezvous always wins, and one in which it never does."""
    tables = [table, *(message_table(seeds.generator("08.crossover", who)) for who in ("first", "second"))]
    sizes = [1000, 2000, 10_000]
    lines = [
        ((2e-6, 2e-9), (1e-6, 1e-9)),  # rendezvous is faster from the first byte on
        ((1e-6, 1e-9), (2e-6, 2e-9)),  # and here never
        ((1e-6, 3e-9), (4e-6, 1e-9)),
    ]
    for eager, rendezvous in lines:
        times = [[start + n * slope for n in sizes] for start, slope in (eager, rendezvous)]
        tables.append({"sizes": sizes, "eager_s": times[0], "rendezvous_s": times[1]})
    for one in tables:
        yield Call(dict(one), crossing(**one))


def crossing(sizes: Sequence[float], eager_s: Sequence[float], rendezvous_s: Sequence[float]) -> float:
    """The size from which rendezvous is faster; 0 where it always is, infinity where it never is."""
    lines = [fitted(sizes, seconds, 0) for seconds in (eager_s, rendezvous_s)]
    return meeting([(alpha, 1 / beta) for alpha, beta, _ in lines])


def meeting(lines: Sequence[tuple[float, float]]) -> float:
    """Where the second line (start, slope) comes to lie below the first."""
    (start, slope), (later, flatter) = lines
    if flatter >= slope:
        return 0.0 if later < start and flatter == slope else math.inf
    return max(0.0, (later - start) / (slope - flatter))


def hierarchies(table: None) -> Iterator[Call]:
    """Two and three nodes, nodes of one rank, more ranks than nodes and the other way round."""
    for nodes, per_node, elements in ((2, 2, 48), (2, 4, 80), (3, 2, 36), (4, 1, 16), (1, 3, 9), (2, 3, 600)):
        yield Call({"nodes": nodes, "per_node": per_node, "elements": elements}, None)


def launches(table: None) -> Iterator[Call]:
    """Two nodes with two ranks each, where no two names of a rank mean the same, and one rank alone."""
    for nodes, per_node in ((2, 2), (1, 1)):
        yield Call({"nodes": nodes, "per_node": per_node}, None)


def interruptions(table: None) -> Iterator[Call]:
    """No kill; kills between steps and in the middle of writing; worlds that shrink and grow."""
    plans: tuple[list[list[Any]], ...] = (
        [[2, "", 0]],
        [[4, "update", 8], [4, "", 0]],
        [[4, "update", 8], [3, "save", 2], [2, "update", 4], [4, "", 0]],
        [[2, "save", 1], [1, "update", 6], [3, "save", 3], [2, "", 0]],
        _drawn(),
    )
    for number, plan in enumerate(plans):
        job = {
            "samples": 48,
            "batch": 12,
            "epochs": (3, 4, 4, 4, 5)[number],
            "every": (3, 3, 3, 2, 3)[number],
        }
        yield Call({**job, "plan": plan}, None)


def _drawn() -> list[list[Any]]:
    """Five lives that end at seeded points, and a last one."""
    random = seeds.generator("08.resume", "kills")
    lives: list[list[Any]] = []
    for _ in range(5):
        kind = str(random.choice(["update", "save"]))
        last = 4 if kind == "update" else 1
        lives.append([int(random.integers(1, 5)), kind, int(random.integers(1, last + 1))])
    return [*lives, [2, "", 0]]


def failure_table(random: np.random.Generator) -> dict[str, float]:
    """A job on some hundreds of nodes, each of which fails once in some years."""
    return {
        "nodes": int(random.integers(4, 60)) * 16,
        "node_mtbf_s": float(random.integers(3, 12) * 5000) * HOUR,
        "checkpoint_s": float(random.integers(30, 400)),
        "restart_s": float(random.integers(2, 12)) * 60,
    }


def failures(table: dict[str, float]) -> Iterator[Call]:
    tables = [table, *(failure_table(seeds.generator("08.goodput", who)) for who in ("first", "second"))]
    hand = (
        {"nodes": 1, "node_mtbf_s": 50_000 * HOUR, "checkpoint_s": 60.0, "restart_s": 300.0},
        {"nodes": 2048, "node_mtbf_s": 40_000 * HOUR, "checkpoint_s": 120.0, "restart_s": 600.0},
        {"nodes": 16, "node_mtbf_s": 2000 * HOUR, "checkpoint_s": 20.0, "restart_s": 900.0},
    )
    for one in (*tables, *hand):
        yield Call(dict(one), None)
