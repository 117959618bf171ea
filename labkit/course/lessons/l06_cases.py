"""Lesson 06: the worlds that every check plays, and the tables of times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from labkit.course import seeds
from labkit.course.checks import Call
from labkit.hardware import published
from labkit.network import collectives_cost as cost

# ranks and elements: one that divides evenly first, then every world from 1 to 8, uneven, few, one and none
WORLDS = ((4, 8), (4, 10), (1, 5), (2, 7), (3, 10), (5, 3), (7, 23), (8, 64), (8, 1), (4, 0), (3, 1001))
SIZES = tuple(8 * 4**k for k in range(13))  # 8 B to 128 MiB; every other one is held out, none at the ends
APART = 1.3  # the choice is asked for where one algorithm takes at least so many times as long as the other
CLOSE = 0.2  # how far a predicted time may be off
_PUBLISHED = {"H100x8_1node_NVLS": "8 x H100", "A100_40x16_2node_OCI_RoCE16x100G": "16 x A100"}

Table = dict[str, list[list[float]]]


def ring(table: None) -> Iterator[Call]:
    """Floats, and at the end whole numbers, which need a scratch buffer of their own type."""
    for ranks, elements in WORLDS:
        yield Call({"elements": elements, "ranks": ranks, "dtype": "float64"}, None)
    yield Call({"elements": 9, "ranks": 4, "dtype": "int64"}, None)


def broadcasts(table: None) -> Iterator[Call]:
    """Rank 0 as the root first, then others."""
    for ranks, elements in WORLDS:
        for root in sorted({0, ranks - 1, ranks // 2}):
            yield Call({"elements": elements, "ranks": ranks, "root": root, "dtype": "float64"}, None)
    yield Call({"elements": 9, "ranks": 6, "root": 4, "dtype": "int64"}, None)


def shifts(table: None) -> Iterator[Call]:
    for ranks, elements in WORLDS:
        yield Call({"elements": elements, "ranks": ranks}, None)


def drawn(random: np.random.Generator) -> dict[str, Any]:
    """Modelled seconds of two all-reduces, with 2 % of scatter; half of the sizes are held out.

    Drawn until the choice depends on the size.
    """
    while True:
        every = _times(random)
        if len({faster(every, size) for size in decided(every)}) == 2:
            return {"tables": _rows(every, 0), "held out": _rows(every, 1)}


def _times(random: np.random.Generator) -> Table:
    ranks = int(random.choice([16, 32, 64]))
    alpha, rate = random.uniform(2e-6, 20e-6), random.uniform(5e9, 40e9)
    models = {
        "ring": lambda n: cost.ring(n, ranks, alpha, rate),
        "tree": lambda n: 2 * cost.binomial(n, ranks, alpha, rate),
    }
    scatter = {name: random.normal(1, 0.02, len(SIZES)) for name in models}
    return {
        name: [list(SIZES), [float(f"{model(n) * s:.4g}") for n, s in zip(SIZES, scatter[name], strict=True)]]
        for name, model in models.items()
    }


def _rows(every: Table, first: int) -> Table:
    """Every other size, from the first or the second on."""
    return {name: [column[first::2] for column in columns] for name, columns in every.items()}


def published_tables() -> Table:
    """All-reduces as they were published: bytes and seconds of two systems."""
    rows = published("nccl_allreduce")
    return {
        name: [
            [int(row["size_bytes"]) for row in rows if row["config"] == config],
            [round(float(row["time_us"]) * 1e-6, 10) for row in rows if row["config"] == config],
        ]
        for config, name in _PUBLISHED.items()
    }


def faster(table: Table, size: float) -> str:
    """The algorithm with the least time at a size that the table holds."""
    return min(table, key=lambda name: seconds(table, name, size))


def seconds(table: Table, name: str, size: float) -> float:
    sizes, times = table[name]
    return times[sizes.index(size)]


def decided(table: Table) -> list[float]:
    """The sizes of a table at which one algorithm is clearly faster."""
    sizes = next(iter(table.values()))[0]
    shared = [size for size in sizes if all(size in columns[0] for columns in table.values())]
    spread = {size: sorted(seconds(table, name, size) for name in table) for size in shared}
    return [size for size, times in spread.items() if len(times) == 1 or times[1] > APART * times[0]]


def given(random: np.random.Generator) -> Table:
    """What the learner sees of their own table."""
    rows: Table = drawn(random)["tables"]
    return rows


def choices(table: Table) -> Iterator[Call]:
    """The learner's own table, others', and the published ones: always sizes that the answer is not given.

    Of the published ones each is also asked for alone, where nothing is to be chosen.
    """
    tables = [drawn(seeds.generator("06.choose", who)) for who in (None, "first", "second")]
    drawn_ones, public = len(tables), published_tables()
    tables += [
        {"tables": _rows(one, 0), "held out": _rows(one, 1)}
        for one in (public, *({name: columns} for name, columns in public.items()))
    ]
    for number, one in enumerate(tables):
        held = one["held out"]
        sizes = decided(held)
        if number < drawn_ones:  # near the crossing a size may be undecided: equally many for every learner
            sizes = [*sizes[:2], *sizes[-3:]]
        for size in sizes:
            every = {each: seconds(held, each, size) for each in held}
            yield Call({"tables": one["tables"], "size": size}, (faster(held, size), every))
