"""Lesson 10: the calls of every check, with what they should give, and the learner's own tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from labkit.course import seeds
from labkit.course.checks import Call
from labkit.course.lessons import l10_record as record
from labkit.course.lessons import l10_ways as ways
from labkit.hardware import files

BREAK_EVEN = (
    "forward_ms",
    "allreduce_ms",
    "backward_ms",
    "other_ms",
    "gradient_bytes",
    "times_smaller",
    "compress_ms",
)
BERT_LARGE = 340_000_000  # parameters; their gradients travel in fp16 in the published table


def signs(table: None) -> Iterator[Call]:
    """Two ranks and three; elements that fill their bytes and ones that do not; one element alone."""
    for ranks, steps, elements, seed in ((2, 5, 16, 1), (3, 5, 21, 2), (2, 3, 1, 3), (4, 4, 100, 4)):
        yield Call({"ranks": ranks, "steps": steps, "elements": elements, "seed": seed}, None)


def adam(table: None) -> Iterator[Call]:
    for ranks, steps, warm_up, elements, seed in ((2, 8, 3, 12, 1), (3, 9, 4, 10, 2), (2, 4, 1, 5, 3)):
        yield Call(
            {"ranks": ranks, "steps": steps, "warm_up": warm_up, "elements": elements, "seed": seed}, None
        )


def low_rank(table: None) -> Iterator[Call]:
    for ranks, steps, rows, columns, rank, seed in (
        (2, 4, 9, 7, 2, 1),
        (3, 3, 6, 10, 1, 2),
        (2, 3, 8, 8, 3, 3),
    ):
        sizes = {"rows": rows, "columns": columns, "rank": rank}
        yield Call({"ranks": ranks, "steps": steps, **sizes, "seed": seed}, None)


def played_signs(arguments: dict[str, Any], way: str = "") -> dict[str, Any]:
    """The record of the right answer, or of one that makes a mistake of `l10_ways`."""
    return record.record_signs(partial(ways.sign_mean, way=way), **arguments)


def played_adam(arguments: dict[str, Any], way: str = "") -> dict[str, Any]:
    return record.record_adam(partial(ways.one_bit_adam, way=way), **arguments)


def played_low_rank(arguments: dict[str, Any], way: str = "") -> dict[str, Any]:
    return record.record_low_rank(partial(ways.power_sgd, way=way), **arguments)


def profile() -> tuple[dict[str, Any], ...]:
    """The published table: parts of a training step of BERT-Large, milliseconds, as measured by its authors."""
    return files.rows("onebit_adam_profile")


def step_table(random: np.random.Generator) -> dict[str, Any]:
    """A row of the published table with several nodes, a way to compress, and what compressing costs."""
    several = [one for one in profile() if one["nodes"] > 1]
    row = several[int(random.integers(len(several)))]
    parts = {name: row[name] for name in BREAK_EVEN[:4]}
    return parts | {
        "gradient_bytes": 2 * BERT_LARGE,
        "times_smaller": int(random.choice([8, 16, 50, 100])),
        "compress_ms": float(random.integers(8, 60)),
    }


def break_even(table: dict[str, Any]) -> Iterator[Call]:
    """The learner's own row, others, and one node whose fast links make compression lose."""
    inside = next(one for one in profile() if one["network"] == "ib_edr" and one["nodes"] == 1)
    loses = {name: inside[name] for name in BREAK_EVEN[:4]} | {
        "gradient_bytes": 2 * BERT_LARGE,
        "times_smaller": 2,
        "compress_ms": 40.0,
    }
    others = [step_table(seeds.generator("10.break_even", who)) for who in ("first", "second")]
    for one in (table, *others, loses):
        yield Call(dict(one), worked_out(**one))


def worked_out(
    forward_ms: float,
    allreduce_ms: float,
    backward_ms: float,
    other_ms: float,
    gradient_bytes: float,
    times_smaller: float,
    compress_ms: float,
) -> tuple[float, float, float]:
    """How many times faster a step gets, bytes/s of the exchange now, and bytes/s at which nothing is gained."""
    rest = forward_ms + backward_ms + other_ms
    before, after = rest + allreduce_ms, rest + allreduce_ms / times_smaller + compress_ms
    rate = gradient_bytes / (allreduce_ms / 1e3)
    even = gradient_bytes * (1 - 1 / times_smaller) / (compress_ms / 1e3)
    return before / after, rate, even


def messages(elements: int) -> int:
    """Bytes of the smallest message with a bit an element and a scale of 4 bytes."""
    return math.ceil(elements / 8) + 4
