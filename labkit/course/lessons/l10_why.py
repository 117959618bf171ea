"""Lesson 10: what is wrong with a way to send less, and why where the mistake is typical."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from labkit.course.checks import Call
from labkit.course.compare import number
from labkit.course.lessons import l10_cases as cases
from labkit.course.lessons import l10_record as record
from labkit.course.lessons import l10_ways as ways
from labkit.course.messages import shown

Trouble = tuple[str, str] | None
_UNREADABLE = ("What the answer returned cannot be read.", "")
RELATIVE = 1e-4


def signs(call: Call, returned: Any) -> Trouble:
    """Averages, then remainders, step by step; then the size of the messages."""
    elements = call.arguments["elements"]
    given = _steps(returned)
    if given is None:
        return _UNREADABLE
    for pair in (one for rank in given for one in rank):
        if not record.pair_of(pair, (elements,)):
            return _no_pair(pair, elements)
    wanted = cases.played_signs(call.arguments)
    places = ("mean", "residual")
    found = _first_difference(given, wanted["returned"], places)
    if found is None:
        return _signs_sent(call, returned["sent"])
    return found[0], _named(found, given, ways.SIGNS, lambda way: cases.played_signs(call.arguments, way))


def _no_pair(value: Any, elements: int) -> Trouble:
    message = f"sign_mean returned {shown(value)}; two arrays of {elements} are asked for, mean and residual."
    filled = 8 * -(-elements // 8)
    if (
        isinstance(value, (tuple, list))
        and any(np.shape(one) == (filled,) for one in value)
        and filled != elements
    ):
        why = "np.packbits fills up the last byte: np.unpackbits(..., count=n) leaves that out again."
        return message, why
    return message, ""


def _signs_sent(call: Call, sent: Any) -> Trouble:
    steps, ranks, elements = (call.arguments[key] for key in ("steps", "ranks", "elements"))
    target = (ranks - 1) * (cases.messages(elements) + 4)  # a scale may be of 8 bytes
    most = max(map(int, sent)) / steps
    if most <= target:
        return None
    least = (ranks - 1) * cases.messages(elements)
    message = f"The values are right, but a rank sends {most:,.0f} bytes a step, target {least:,}."
    if most >= 4 * elements * (ranks - 1):
        return (
            message,
            "that is as much as the gradient itself: send the signs, and rebuild where they arrive.",
        )
    return message, "that is a byte or more for each sign: np.packbits puts eight into a byte."


def adam(call: Call, returned: Any) -> Trouble:
    """What was sent in which step, then the weights."""
    ranks, elements = call.arguments["ranks"], call.arguments["elements"]
    try:
        calls = [[str(one) for one in rank] for rank in returned["calls"]]
        weights = list(returned["weights"])
    except (TypeError, KeyError):
        return _UNREADABLE
    for one in weights:
        if not isinstance(one, np.ndarray) or one.shape != (elements,):
            return f"one_bit_adam returned {shown(one)}; the weights, {elements} elements, are asked for.", ""
    wanted = cases.played_adam(call.arguments)
    found = _first_difference([[(one,)] for one in weights], [[(one,)] for one in wanted["weights"]], ("w",))
    why = ""
    if found is not None:
        given = [[(one,)] for one in weights]
        why = _named(found, given, ways.ADAM, lambda way: _weights(cases.played_adam(call.arguments, way)))
    if why and why != ways.ADAM["one short"]:
        return _apart(weights, ranks) + found[0] if found else "", why
    return _order(call, calls) or (found and (_apart(weights, ranks) + found[0], why))


def _weights(played: dict[str, Any]) -> dict[str, Any]:
    return {"returned": [[(one,)] for one in played["weights"]]}


def _apart(weights: Sequence[np.ndarray], ranks: int) -> str:
    same = all(np.array_equal(weights[0], one) for one in weights[1:ranks])
    return "" if same else "The ranks end with different weights. "


def _order(call: Call, calls: Sequence[Sequence[str]]) -> Trouble:
    """Full precision in the warm-up, signs after it, once a step."""
    steps, warm_up = call.arguments["steps"], call.arguments["warm_up"]
    wanted = ["full"] * warm_up + ["signs"] * (steps - warm_up)
    names = {"full": "mean", "signs": "sign_mean"}
    for rank, given in enumerate(calls):
        if len(given) > steps:
            message = f"Rank {rank} exchanges {len(given)} times in {steps} steps; once a step is enough."
            return (
                message,
                "all can compute the moments from the averaged gradient, and only that is exchanged.",
            )
        for place, (one, right) in enumerate(zip(given, wanted, strict=False)):
            if one != right:
                message = f"Exchange {place} of rank {rank} is {names[one]}, expected {names[right]}."
                return message, f"the warm-up is gradients 0 to {warm_up - 1}, a mean each; then sign_mean."
        if len(given) < steps:
            return (
                f"Rank {rank} exchanges {len(given)} times in {steps} steps.",
                "every step has one exchange.",
            )
    return None


def low_rank(call: Call, returned: Any) -> Trouble:
    rows, columns, rank = (call.arguments[key] for key in ("rows", "columns", "rank"))
    given = _steps(returned)
    if given is None:
        return _UNREADABLE
    for three in (one for steps in given for one in steps):
        if not record.three_of(three, rows, columns, rank):
            message = f"power_sgd returned {shown(three)}; an approximation, a residual and Q are asked for."
            shapes = f"({rows}, {columns}), the same again, and ({columns}, {rank})"
            return message, f"their shapes are {shapes}."
    wanted = cases.played_low_rank(call.arguments)
    signed = [
        [_as_signed(*pair) for pair in zip(mine, right, strict=True)]
        for mine, right in zip(given, wanted["returned"], strict=True)
    ]
    found = _first_difference(signed, wanted["returned"], ("approximation", "residual", "Q"))
    if found is not None:
        return found[0], _named(
            found, given, ways.LOW_RANK, lambda way: cases.played_low_rank(call.arguments, way)
        )
    most, target = max(map(int, returned["sent"])), max(wanted["sent"])
    if most <= target:
        return None
    message = f"The values are right, but a rank sends {most:,} bytes, target {target:,}."
    return message, "P and Q are all that has to travel, and both in fp32."


def _as_signed(three: Any, wanted: Any) -> tuple[Any, ...]:
    """The same three with columns of Q as in ``wanted``: their signs are those of P's, which are anybody's choice."""
    approximation, residual, q = three
    with np.errstate(all="ignore"):
        signs = np.where((np.asarray(q, float) * wanted[2]).sum(0) < 0, -1, 1)
        return approximation, residual, q * signs


Found = tuple[str, int, int]  # the sentence; the step and the place in it of what is wrong


def _steps(returned: Any) -> list[list[Any]] | None:
    try:
        return [list(rank) for rank in returned["returned"]]
    except (TypeError, KeyError):
        return None


def _first_difference(given: Sequence[Any], wanted: Sequence[Any], names: Sequence[str]) -> Found | None:
    for step in range(len(wanted[0])):
        for place, name in enumerate(names):
            for rank, (mine, right) in enumerate(zip(given, wanted, strict=True)):
                got, expected = (np.asarray(one[step][place], float) for one in (mine, right))
                if not _close(got, expected):
                    where = f" in step {step}" if len(wanted[0]) > 1 else ""
                    return f"{_element(name, got, expected)} on rank {rank}{where}.", step, place
    return None


def _close(got: np.ndarray, expected: np.ndarray) -> bool:
    scale = float(np.abs(expected).max(initial=0)) or 1.0
    return bool(np.allclose(got, expected, rtol=RELATIVE, atol=RELATIVE * scale))


def _element(name: str, got: np.ndarray, expected: np.ndarray) -> str:
    off = np.abs(np.nan_to_num(got, nan=np.inf) - expected)
    index = np.unravel_index(int(np.argmax(off)), off.shape)
    place = ", ".join(map(str, index))
    return f"{name}[{place}] is {_short(got[index])}, expected {_short(expected[index])},"


def _short(value: float) -> str:
    return number(float(f"{value:.5g}"))


def _named(
    found: Found, given: Sequence[Any], mistakes: dict[str, str], played: Callable[[str], dict[str, Any]]
) -> str:
    """The mistake whose way gives the very same values up to, and at, what is wrong."""
    _, step, place = found
    for way, why in mistakes.items():
        theirs = played(way)["returned"]
        parts = [(s, p) for s in range(step + 1) for p in range(len(theirs[0][0])) if (s, p) <= (step, place)]
        pairs = [
            (mine[s][p], other[s][p]) for s, p in parts for mine, other in zip(given, theirs, strict=True)
        ]
        if all(_close(np.asarray(a, float), np.asarray(b, float)) for a, b in pairs):
            return why
    return ""
