"""Lesson 10: what is wrong with a break-even or a claim, and why where the mistake is typical."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from labkit.course import claims, explain
from labkit.course.checks import Call
from labkit.course.compare import number
from labkit.course.messages import shown

Trouble = tuple[str, str] | None
_PARTS = ("times faster", "the rate now", "the break-even rate")
_UNITS = ("times", "bytes/s", "bytes/s")


def break_even(call: Call, returned: Any) -> Trouble:
    if not isinstance(returned, (tuple, list)) or len(returned) != 3:
        return (
            f"break_even returned {shown(returned)}.",
            "three numbers are asked for: times faster, rate now, break-even rate.",
        )
    for place, (value, wanted) in enumerate(zip(returned, call.expected, strict=True)):
        if trouble := explain.not_a_number(value):
            return f"break_even returned {trouble} for {_PARTS[place]}.", "three numbers are asked for."
        if not math.isclose(value, wanted, rel_tol=1e-6):
            found, right = (number(float(f"{one:.6g}")) for one in (value, wanted))
            message = f"{_PARTS[place]} is {found}, expected {right} {_UNITS[place]}."
            return message, next((why for guess, why in _guesses(call)[place] if _like(guess, value)), "")
    return None


def _like(guess: float, value: float) -> bool:
    return math.isfinite(guess) and math.isclose(guess, value, rel_tol=1e-6)


def _guesses(call: Call) -> tuple[list[tuple[float, str]], ...]:
    given = call.arguments
    rest = given["forward_ms"] + given["backward_ms"] + given["other_ms"]
    exchange, smaller, compress = given["allreduce_ms"], given["times_smaller"], given["compress_ms"]
    faster, rate, even = call.expected
    before = rest + exchange
    speed = [
        (before / (rest + exchange / smaller), "the time to compress is missing."),
        (exchange / (exchange / smaller + compress), "this is the exchange alone: a step also computes."),
        (float(smaller), "only the exchange gets smaller, not the step."),
        (before / (before / smaller + compress), "only the exchange gets smaller, not the step."),
        (1 / faster, "this is the new time over the old one: times faster is its inverse."),
        (before / (rest + exchange * (1 - 1 / smaller) + compress), "what stays is 1 / times_smaller."),
    ]
    now = [*_units(rate), *_directions(rate)]
    saved = 1 - 1 / smaller
    turn = [
        (
            even / saved,
            "compressed gradients still have to travel: what is saved is 1 - 1 / times_smaller of them.",
        ),
        (
            even / saved / smaller,
            "this is what is still sent; what counts is what is saved, 1 - 1 / times_smaller.",
        ),
        *_units(even),
        *_directions(even),
    ]
    return speed, now, turn


def _units(right: float) -> Iterator[tuple[float, str]]:
    yield 8 * right, "these are bits a second; bytes a second are asked for."
    yield right / 1e3, "this is bytes a millisecond: a second has 1,000 of them."
    yield right / 1e9, "this is in GB/s; bytes a second are asked for."


def _directions(right: float) -> Iterator[tuple[float, str]]:
    yield 2 * right, "both directions are counted: gradient_bytes are what each rank has to bring, once."


claim = claims.Judge(
    verdicts=("misleading",),
    reasons=dict.fromkeys(
        ("false", "unsourced"), "there is a stage of which it is right; the trouble is what it is said of."
    ),
    otherwise="is it right for all steps of a training, and against what people send otherwise?",
    number=claims.Figure(
        units={"time": 1},
        loosely=True,
        unit_hint="a factor is in 'times'.",
        right=((4.85, 4.99),),
        wrong="The volume does not fall {value} times.",
        whys=(
            (15.5, 16.5, "the warm-up is forgotten: 15 % of the steps still send everything."),
            (31.5, 32.5, "that is the compressed stage alone, against fp32."),
            (
                5.6,
                5.75,
                "that is against fp32 counted as 32 bits in both stages: fp16 is what is sent otherwise.",
            ),
            (1.1, 1.2, "15 % of the steps are the warm-up, not 85 %."),
            (9.8, 10.0, "both directions are in both volumes: they cancel."),
        ),
    ),
    left_out=(
        "warm",
        "fp16",
        "half precision",
        "16 bit",
        "16-bit",
        "stage",
        "full precision",
        "uncompressed",
    ),
    asked="what the 97 % hide.",
    hint="think of the first steps, and of the baseline.",
)
