"""Lesson 06: what is wrong with a predicted time, a choice between algorithms, or a claim about bus bandwidth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labkit.course import claims, explain
from labkit.course.checks import Call
from labkit.course.lessons.l06_cases import CLOSE
from labkit.course.lessons.l06_played import Trouble
from labkit.course.messages import shown
from labkit.hardware.units import show_bytes, show_time

VERDICTS = "'true', 'mostly true', 'misleading', 'false' or 'unsourced'"


def choose(call: Call, returned: Any) -> Trouble:
    """The faster of the tables at a size that was held out, and its time within a fifth."""
    tables, size = call.arguments["tables"], call.arguments["size"]
    wanted, every = call.expected
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        return (
            f"choose returned {shown(returned)}.",
            "two things are asked for: a name and the seconds it will take.",
        )
    name, predicted = returned
    if not isinstance(name, str) or name not in tables:
        return (
            f"choose returned the name {shown(name)}.",
            f"it should be one of {', '.join(map(repr, tables))}.",
        )
    if trouble := explain.not_a_number(predicted):
        return f"choose returned {trouble} for the seconds.", "seconds are a plain number."
    took = " and ".join(f"{one} {show_time(t)}" for one, t in every.items())
    off, seconds = abs(predicted / every[name] - 1), every[name]
    if off <= CLOSE and name != wanted:
        return f"For {show_bytes(size)} you choose {name}; the rows held out say {took}.", _choice_why(
            call, name
        )
    if off <= CLOSE:
        return None
    message = (
        f"For {show_bytes(size)} by {name} you predict {_time(predicted)}, and the row held out says "
        f"{show_time(seconds)}: {_off(predicted / seconds)}, where {CLOSE:.0%} is allowed."
    )
    return message, _prediction_why(tables[name], size, float(predicted))


def _off(ratio: float) -> str:
    if ratio > 10:
        return f"{ratio:,.0f} times as much"
    return f"{abs(ratio - 1):.0%} too {'much' if ratio > 1 else 'little'}"


def _time(seconds: float) -> str:
    return show_time(seconds) if seconds > 0 else f"{seconds:g} s"


def _choice_why(call: Call, name: str) -> str:
    tables, size = call.arguments["tables"], call.arguments["size"]
    largest = {one: columns[1][-1] for one, columns in tables.items()}
    smallest = {one: columns[1][0] for one, columns in tables.items()}
    if name == min(largest, key=lambda one: largest[one]) != min(smallest, key=lambda one: smallest[one]):
        return f"it wins with the largest messages of the table, and {show_bytes(size)} is not one of those."
    return "it wins with the smallest messages of the table: what do the two predictions say for this size?"


def _prediction_why(table: list[list[float]], size: float, value: float) -> str:
    n, t = (np.asarray(column, float) for column in table)
    powers = [0.0, 0.5, 1.0]
    middle = (
        "alpha + n / beta misses the middle sizes, where an algorithm cuts the message into ever more pieces: "
        "add a term that grows with the square root of n."
    )
    guesses = (
        (_fitted(n, t, [0.0, 1.0], size), middle),
        (
            _fitted(n, t, powers, size, relative=False),
            "this minimises errors in seconds: divide each by its time.",
        ),
        (
            _fitted(n, t, [0.0, 1.0], size, relative=False),
            "this minimises errors in seconds: divide each by its time.",
        ),
        (size * t[-1] / n[-1], "this is the rate of the largest message: small ones are ruled by alpha."),
        (
            float(np.interp(size, n, t)),
            "between two rows of the table a straight line is no good guide; fit a law.",
        ),
        (
            float(np.exp(np.interp(np.log(size), np.log(n), np.log(t)))),
            "the curve bends between two rows of the table, and a line on logarithmic axes cuts the bend; fit a law.",
        ),
    )
    found = [why for guess, why in guesses if math.isclose(guess, value, rel_tol=1e-6)]
    if not found and (math.isclose(value, size / n[-1]) or value > 1e3 * t[-1]):
        return "seconds are asked for."
    return found[0] if found else ""


def _fitted(n: np.ndarray, t: np.ndarray, powers: list[float], size: float, relative: bool = True) -> float:
    terms = np.column_stack([n**power for power in powers])
    weight = 1 / t if relative else np.ones(len(t))
    found, *_ = np.linalg.lstsq(terms * weight[:, None], t * weight, rcond=None)
    return float(found @ [size**power for power in powers])


claim = claims.Judge(
    verdicts=("misleading", "false"),
    reasons={
        "unsourced": "the 480 GB/s stand in a published table; the question is what they count.",
    },
    otherwise="18 links of 25 GB/s are 450 GB/s one way: can more than that pass?",
    number=claims.Figure(
        units=dict.fromkeys(("gb/s", "gbps", "gbyte/s", "gigabytes/s"), 1),
        unit_hint="the rate is asked for in 'GB/s'.",
        # the message once; with the store that the switch spreads, one part in eight more
        right=((265, 312),),
        wrong="A GPU does not have to send {value} GB/s.",
        whys=(
            (
                470,
                490,
                "that is the bus bandwidth itself: the time's rate multiplied by 2 (n - 1) / n = 1.75.",
            ),
            (
                440,
                460,
                "that is what the links could carry one way; what do the 17 GB in 62.6 ms come to?",
            ),
            (890, 910, "that adds up both directions of what the links could carry."),
            (58, 64, "that is a time or another unit: bytes over seconds, in GB/s."),
            (-math.inf, 1, "that is a time or another unit: bytes over seconds, in GB/s."),
        ),
    ),
    left_out=(
        "ring",
        "switch",
        "nvls",
        "sharp",
        "factor",
        "1.75",
        "2(n",
        "2 (n",
        "algorithm",
        "not measured",
        "calculated",
    ),
    asked="what the bus bandwidth takes for granted.",
    hint="think of the algorithm that its factor belongs to, and of who does the adding on this machine.",
)
