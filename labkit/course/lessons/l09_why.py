"""Lesson 09: what is wrong with a way through a torus, and why, where the mistake is a typical one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from labkit.course.checks import Call
from labkit.course.lessons import l09_cases as cases
from labkit.course.messages import shown

Trouble = tuple[str, str] | None


def route(call: Call, returned: Any) -> Trouble:
    dims, source, target = (call.arguments[key] for key in ("dims", "source", "target"))
    stops = _stops(returned, len(dims))
    if stops is None:
        return (
            f"route returned {shown(returned)}.",
            "a list of coordinates, each as long as dims, is asked for.",
        )
    if stops == call.expected:
        return None
    place = next(
        (n for n, pair in enumerate(zip(stops, call.expected, strict=False)) if pair[0] != pair[1]), None
    )
    if place is None:
        message = f"The way from {source} to {target} has {len(stops)} stops, expected {len(call.expected)}."
    else:
        message = (
            f"Stop {place} from {source} to {target} is {stops[place]}, expected {call.expected[place]}."
        )
    return message, _route_why(dims, source, target, stops)


def _stops(returned: Any, dimensions: int) -> list[tuple[int, ...]] | None:
    """The stops as tuples of plain integers; None when they are something else."""
    if not isinstance(returned, (list, tuple, np.ndarray)):
        return None
    found = []
    for stop in returned:
        if not isinstance(stop, (list, tuple, np.ndarray)) or len(stop) != dimensions:
            return None
        if any(isinstance(x, (bool, np.bool_)) or not isinstance(x, (int, np.integer)) for x in stop):
            return None
        found.append(tuple(int(x) for x in stop))
    return found


def _route_why(dims: cases.Place, source: cases.Place, target: cases.Place, stops: list[cases.Place]) -> str:
    right = cases.way(dims, source, target)
    backwards = list(reversed(range(len(dims))))
    guesses = (
        (right[1:], "the first stop is the source itself."),
        (right[:-1], "the last stop is the target itself."),
        (right[::-1], "this is the way back: begin at the source."),
        (
            cases.way(dims, source, target, backwards),
            "the last dimension came first: dimension 0 is to be settled first.",
        ),
        (
            cases.way(dims, source, target, tie=-1),
            "both ways round are equally long here: upwards is asked for then.",
        ),
        (_without_wrap(source, target), "it never wraps around: from the last place to place 0 is one hop."),
        (_always_up(dims, source, target), "it always goes upwards: downwards is shorter here."),
    )
    if why := next((why for guess, why in guesses if stops == guess), ""):
        return why
    if any(not 0 <= x < side for stop in stops for x, side in zip(stop, dims, strict=True)):
        return "a stop lies outside the torus: take coordinates modulo the side."
    return _first_bad_hop(dims, stops)


def _without_wrap(source: cases.Place, target: cases.Place) -> list[cases.Place]:
    """The way on a mesh: no cable from one end to the other."""
    at, stops = list(source), [tuple(source)]
    for dimension, goal in enumerate(target):
        while at[dimension] != goal:
            at[dimension] += 1 if goal > at[dimension] else -1
            stops.append(tuple(at))
    return stops


def _always_up(dims: cases.Place, source: cases.Place, target: cases.Place) -> list[cases.Place]:
    at, stops = list(source), [tuple(source)]
    for dimension, goal in enumerate(target):
        while at[dimension] != goal:
            at[dimension] = (at[dimension] + 1) % dims[dimension]
            stops.append(tuple(at))
    return stops


def _first_bad_hop(dims: cases.Place, stops: Sequence[cases.Place]) -> str:
    for one, other in itertools.pairwise(stops):
        hops = distance(dims, one, other)
        if hops != 1:
            return f"from {one} to {other} is {hops} hops: name every GPU on the way."
    return ""


def distance(dims: cases.Place, one: Sequence[int], other: Sequence[int]) -> int:
    """Hops between two GPUs of a torus."""
    return sum(min((b - a) % side, (a - b) % side) for a, b, side in zip(one, other, dims, strict=True))


def ring(call: Call, returned: Any) -> Trouble:
    rows, columns = call.arguments["rows"], call.arguments["columns"]
    stops = _stops(returned, 2)
    if stops is None:
        return f"ring returned {shown(returned)}.", "a list of (row, column) is asked for."
    if outside := [stop for stop in stops if not (0 <= stop[0] < rows and 0 <= stop[1] < columns)]:
        return f"{outside[0]} is no GPU of a {rows} x {columns} torus.", "rows and columns start at 0."
    if len(set(stops)) < len(stops) or len(stops) != call.expected:
        message = f"The ring has {len(set(stops))} different GPUs in {len(stops)} stops."
        return message, f"each of the {call.expected} GPUs comes once; the way home is implied."
    for one, other in zip(stops, [*stops[1:], stops[0]], strict=True):
        hops = distance((rows, columns), one, other)
        if hops > 1:
            message = f"From {one} to {other} is {hops} hops: a message there is carried by {hops} links."
            return message, _ring_why(rows, columns, stops)
    return None


def _ring_why(rows: int, columns: int, stops: list[cases.Place]) -> str:
    in_order = [(row, column) for row in range(rows) for column in range(columns)]
    snake = [(row, column if row % 2 == 0 else columns - 1 - column) for row, column in in_order]
    if stops == in_order:
        return "row by row, each from the left: the way to the next row is two hops. Turn round at each row's end."
    if stops == snake:
        return "a snake with an odd number of rows ends on the wrong side: go along the columns then."
    return ""
