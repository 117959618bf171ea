"""Lesson 10: what is wrong with a break-even or a claim, and why where the mistake is typical."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from labkit.course import explain
from labkit.course.checks import Call
from labkit.course.compare import number
from labkit.course.lessons.l01_cases import claim_blank
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


def claim(answer: dict[str, Any]) -> Trouble:
    """The verdict, the factor that holds, and what the claim leaves out, in that order."""
    for key in ("verdict", "number", "unit", "left_out"):
        if claim_blank(answer.get(key)):
            return f"claim has nothing under '{key}' yet.", ""
    checks: tuple[Callable[[], Trouble], ...] = (
        lambda: _verdict(answer["verdict"]),
        lambda: _factor(answer["number"], answer["unit"]),
        lambda: _left_out(answer["left_out"]),
    )
    return next((trouble for check in checks if (trouble := check())), None)


def _verdict(given: Any) -> Trouble:
    verdict = str(given).strip().lower().replace("_", " ")
    if verdict == "misleading":
        return None
    if verdict not in ("true", "mostly true", "false", "unsourced"):
        options = "'true', 'mostly true', 'misleading', 'false' or 'unsourced'"
        return f"The verdict is {shown(given)}; it should be {options}.", ""
    why = (
        "there is a stage of which it is right; the trouble is what it is said of."
        if verdict in ("false", "unsourced")
        else "is it right for all steps of a training, and against what people send otherwise?"
    )
    return f"'{verdict}' is not the best verdict.", why


def _factor(value: Any, unit: Any) -> Trouble:
    if trouble := explain.not_a_number(value):
        return f"The number is {trouble}; it should be a plain number, with its unit under 'unit'.", ""
    if "time" not in str(unit).lower():
        return f"The unit is {shown(unit)}; a factor is in 'times'.", ""
    if 4.85 <= value <= 4.99:
        return None
    whys = (
        (15.5, 16.5, "the warm-up is forgotten: 15 % of the steps still send everything."),
        (31.5, 32.5, "that is the compressed stage alone, against fp32."),
        (
            5.6,
            5.75,
            "that is against fp32 counted as 32 bits in both stages: fp16 is what is sent otherwise.",
        ),
        (1.1, 1.2, "15 % of the steps are the warm-up, not 85 %."),
        (9.8, 10.0, "both directions are in both volumes: they cancel."),
    )
    why = next((why for low, high, why in whys if low <= value <= high), "")
    return f"The volume does not fall {shown(value)} times.", why


def _left_out(given: Any) -> Trouble:
    text = (" ".join(map(str, given)) if isinstance(given, (list, tuple)) else str(given)).lower()
    words = ("warm", "fp16", "half precision", "16 bit", "16-bit", "stage", "full precision", "uncompressed")
    if any(word in text for word in words):
        return None
    return "Under 'left_out', name what the 97 % hide.", "think of the first steps, and of the baseline."
