"""Lesson 05: the calls of every check, with what they should return, and the learner's own tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import Any

import numpy as np

from labkit.course import seeds
from labkit.course.checks import Call
from labkit.network.splitting import Split, simulate

Matrix = list[list[float]]
RACE = ("costs", "speeds")
WAY = ("environment", "size", "legs")
P2P_OFF, SHM_OFF = "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"


def splits(table: None) -> Iterator[Call]:
    """Shares that are whole, that are not, ties, workers that do not work, more workers than items, many items."""
    for items, speeds in (
        (12, [1, 1, 1]),
        (8, [1, 1, 1, 2]),
        (10, [1, 1, 1]),
        (7, [0, 1, 0, 2]),
        (17, [2.5, 1, 1.25]),
        (2, [1, 1, 1, 1, 1]),
        (0, [2, 1]),
        (5, [4]),
        (1000, [1980, 1980, 1395, 1980, 1755, 1980, 1980, 1980]),
        (31, [0.1, 0.2, 0.3, 0.05, 0.05]),
    ):
        yield Call({"items": items, "speeds": speeds}, None)


def plates(table: None) -> Iterator[Call]:
    """One rank, two alike, parts of different heights, a part of one row."""
    for heights, columns, steps in (((6,), 5, 3), ((4, 4), 7, 6), ((1, 5, 3), 6, 8), ((2, 3, 1, 2, 4), 9, 5)):
        yield Call({"heights": list(heights), "columns": columns, "steps": steps}, None)


def race_table(random: np.random.Generator) -> dict[str, list[float]]:
    """Twelve items and three workers, on which every short cut gives other figures."""
    while True:
        costs = [float(cost) for cost in random.integers(1, 20, 12)]
        speeds = [float(speed) for speed in random.permutation([1.0, 2.0, 0.5])]
        played = simulate(costs, speeds, "dynamic")
        others = (
            owners(simulate(costs, [1.0] * 3, "dynamic")),
            earliest_end(costs, speeds),
            [item % 3 for item in range(12)],
        )
        if owners(played) not in others and played.seconds < simulate(costs, speeds, "static").seconds:
            return {"costs": costs, "speeds": speeds}


def races(table: dict[str, list[float]]) -> Iterator[Call]:
    """A worked example, the learner's own, another one, ties, one worker, fewer items than workers, none."""
    tables = [
        {"costs": [4.0, 3.0, 2.0, 6.0, 1.0, 1.0, 5.0], "speeds": [1.0, 2.0]},
        table,
        race_table(seeds.generator("05.race", "another")),
        {"costs": [1.0] * 7, "speeds": [1.0, 1.0, 1.0]},
        {"costs": [3.0, 1.0, 2.0], "speeds": [0.5]},
        {"costs": [2.0], "speeds": [1.0, 4.0, 1.0]},
        {"costs": [], "speeds": [1.0, 1.0]},
    ]
    for one in tables:
        yield Call(dict(one), raced(**one))


def raced(costs: Sequence[float], speeds: Sequence[float]) -> tuple[float, float, list[int]]:
    """Seconds of equal parts and of the queue, and who takes each item from the queue."""
    played = simulate(costs, speeds, "dynamic")
    return simulate(costs, speeds, "static").seconds, played.seconds, owners(played)


def owners(split: Split) -> list[int]:
    """The worker of each item."""
    found = {item: piece.worker for piece in split.pieces for item in range(piece.first, piece.last)}
    return [found[item] for item in sorted(found)]


def earliest_end(costs: Sequence[float], speeds: Sequence[float]) -> list[int]:
    """Who gets each item when it goes to the worker that would be done with it first, free or not."""
    free, given = [0.0] * len(speeds), []
    for cost in costs:
        ends = [at + cost / speed for at, speed in zip(free, speeds, strict=True)]
        given.append(worker := ends.index(min(ends)))
        free[worker] = ends[worker]
    return given


def ring_table(random: np.random.Generator) -> dict[str, Matrix]:
    """Six GPUs, in GB/s, on which the order of numbers, the nearest neighbour, the best sum, and the best path whose
    ends do not meet all miss, and can be told from each other."""
    while True:
        matrix = _links(random, 6)
        best = worst_edge(matrix, best_ring(matrix))
        short_cuts = (tuple(range(6)), nearest(matrix), best_sum(matrix))
        differ = len({sum(edges(matrix, one)) for one in short_cuts}) == 3
        on_the_way = all(min(edges(matrix, one)[:-1]) < best for one in short_cuts)
        if on_the_way and worst_edge(matrix, best_path(matrix)) < best and differ:
            return {"matrix": matrix}


def _links(random: np.random.Generator, gpus: int) -> Matrix:
    matrix = np.zeros((gpus, gpus))
    for i in range(gpus):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = random.choice([10, 12, 20, 24, 48, 96])
    return [[float(rate) for rate in row] for row in matrix]


DGX1 = (
    (0, 1, 1, 2, 2, 0, 0, 0),
    (1, 0, 2, 1, 0, 2, 0, 0),
    (1, 2, 0, 2, 0, 0, 1, 0),
    (2, 1, 2, 0, 0, 0, 0, 1),
    (2, 0, 0, 0, 0, 1, 1, 2),
    (0, 2, 0, 0, 1, 0, 2, 1),
    (0, 0, 1, 0, 1, 2, 0, 2),
    (0, 0, 0, 1, 2, 1, 2, 0),
)


def rings(table: dict[str, Matrix]) -> Iterator[Call]:
    """The learner's own, another one, the lesson's eight V100, and two GPUs."""
    v100 = [[24.0 * links or 9.0 * (i != j) for j, links in enumerate(row)] for i, row in enumerate(DGX1)]
    another = ring_table(seeds.generator("05.ring", "another"))["matrix"]
    for matrix in (table["matrix"], another, v100, [[0.0, 30.0], [30.0, 0.0]]):
        yield Call({"matrix": matrix}, worst_edge(matrix, best_ring(matrix)))


def worst_edge(matrix: Matrix, ring: Sequence[int]) -> float:
    """The slowest edge of a ring, the one from its last GPU to its first included."""
    return min(matrix[one][ring[(place + 1) % len(ring)]] for place, one in enumerate(ring))


def best_ring(matrix: Matrix) -> tuple[int, ...]:
    """A ring with the best worst edge, by trying all."""
    return max(_rings(len(matrix)), key=lambda ring: worst_edge(matrix, ring))


def best_sum(matrix: Matrix) -> tuple[int, ...]:
    """A ring with the largest sum of its edges."""
    return max(_rings(len(matrix)), key=lambda ring: sum(edges(matrix, ring)))


def best_path(matrix: Matrix) -> tuple[int, ...]:
    """An order with the best worst edge when the one that closes it is forgotten."""
    return max(_rings(len(matrix)), key=lambda ring: min(edges(matrix, ring)[:-1], default=0.0))


def edges(matrix: Matrix, ring: Sequence[int]) -> list[float]:
    return [matrix[one][ring[(place + 1) % len(ring)]] for place, one in enumerate(ring)]


def _rings(gpus: int) -> Iterator[tuple[int, ...]]:
    return ((0, *rest) for rest in permutations(range(1, gpus)))


def nearest(matrix: Matrix) -> tuple[int, ...]:
    """From GPU 0 always on to the nearest one that is left."""
    ring = [0]
    while len(ring) < len(matrix):
        left = [one for one in range(len(matrix)) if one not in ring]
        ring.append(max(left, key=lambda one: matrix[ring[-1]][one]))
    return tuple(ring)


def spin_table(random: np.random.Generator) -> dict[str, int]:
    """The number of a recording."""
    return {"run": int(random.integers(1000, 1_000_000))}


def spins(table: dict[str, int]) -> Iterator[Call]:
    yield Call({"run": table["run"]}, None)


def legs_table(random: np.random.Generator) -> dict[str, Any]:
    """A server's ways between two GPUs, each as (alpha in seconds, bytes a second), and a message."""
    return {
        "size": int(random.integers(2, 64)) * 2**20,
        "legs": {
            "peer": (_rounded(random.uniform(2e-6, 3e-6)), _rounded(random.uniform(20e9, 260e9))),
            "to_host": (_rounded(random.uniform(7e-6, 9e-6)), _rounded(random.uniform(20e9, 26e9))),
            "socket": (_rounded(random.uniform(15e-6, 40e-6)), _rounded(random.uniform(2e9, 5e9))),
            "from_host": (_rounded(random.uniform(7e-6, 9e-6)), _rounded(random.uniform(18e9, 24e9))),
        },
    }


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def ways(table: dict[str, Any]) -> Iterator[Call]:
    """All settings, a switch that is set to 0, other variables, and an empty message."""
    tables = (table, legs_table(seeds.generator("05.no_peer", "another")))
    settings: tuple[dict[str, str], ...] = (
        {},
        {P2P_OFF: "1"},
        {P2P_OFF: "1", SHM_OFF: "1"},
        {SHM_OFF: "1"},
        {P2P_OFF: "0", SHM_OFF: "1"},
        {P2P_OFF: "1", SHM_OFF: "0", "NCCL_DEBUG": "INFO"},
    )
    empty = {"size": 0, "legs": table["legs"]}
    for environment, one in (*product(settings, tables), ({P2P_OFF: "1"}, empty)):
        yield Call({"environment": environment, **one}, way_left(environment, **one))


def way_left(
    environment: dict[str, str], size: int, legs: dict[str, Sequence[float]]
) -> tuple[list[str], int, float]:
    """The legs in order, the bytes that are copied in all, and the seconds."""
    if environment.get(P2P_OFF) != "1":
        used = ["peer"]
    elif environment.get(SHM_OFF) != "1":
        used = ["to_host", "from_host"]
    else:
        used = ["to_host", "socket", "from_host"]
    copies = len(used) + ("socket" in used)  # a socket copies into the kernel and out of it
    return used, copies * size, sum(legs[leg][0] + size / legs[leg][1] for leg in used)
