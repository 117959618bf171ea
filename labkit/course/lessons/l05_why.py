"""Lesson 05: what is wrong with a split, a race or a ring, and why where the mistake is typical."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from labkit.course import explain
from labkit.course.checks import Call
from labkit.course.compare import number
from labkit.course.lessons import l05_cases as cases
from labkit.course.messages import shown
from labkit.network.splitting import simulate

Trouble = tuple[str, str] | None


def _counts_why(returned: Any, workers: int) -> str:
    if isinstance(returned, (list, tuple)) and any(isinstance(one, float) for one in returned):
        return f"{workers} counts are asked for, as whole numbers; these are floats: int(...) cuts off what is left."
    return f"{workers} counts are asked for, as whole numbers."


def split(call: Call, returned: Any) -> Trouble:
    """Whole numbers that add up, none where the speed is 0, and the largest remainders served first."""
    items, speeds = call.arguments["items"], call.arguments["speeds"]
    counts = whole_numbers(returned, len(speeds))
    if counts is None:
        return f"split returned {shown(returned)}.", _counts_why(returned, len(speeds))
    shares = [Fraction(items) * Fraction(speed) / sum(map(Fraction, speeds)) for speed in speeds]
    for worker, (count, speed) in enumerate(zip(counts, speeds, strict=True)):
        if count < 0 or (count and not speed):
            speed_said = "has speed 0" if not speed else "cannot have less than none"
            return f"Worker {worker} gets {count} items, and {speed_said}.", _ZERO
    if sum(counts) != items:
        many = sum(counts) - items
        what = f"{abs(many)} {'is' if abs(many) == 1 else 'are'} {'done twice' if many > 0 else 'lost'}"
        return f"The counts add up to {sum(counts)}, and there are {items} items: {what}.", _lost(
            counts, shares
        )
    return _remainders(counts, shares)


_ZERO = "a share of 0 has no remainder either: nothing of what is left over goes to that worker."


def whole_numbers(returned: Any, count: int) -> list[int] | None:
    """The list that was asked for, or None for anything else."""
    if isinstance(returned, np.ndarray) and returned.ndim == 1:
        returned = list(returned)
    if not isinstance(returned, (list, tuple)) or len(returned) != count:
        return None
    sound = all(isinstance(one, (int, np.integer)) and not isinstance(one, bool) for one in returned)
    return [int(one) for one in returned] if sound else None


def _lost(counts: Sequence[int], shares: Sequence[Fraction]) -> str:
    if counts == [math.floor(share) for share in shares]:
        return "int() and // cut the remainders off: give what is left over to somebody."
    if counts == [round(share) for share in shares]:
        return "rounding each share alone does not keep the sum: round down, then hand out what is left over."
    if counts == [math.ceil(share) for share in shares]:
        return "every share was rounded up: round down, then hand out what is left over."
    return "the counts have to add up to the items exactly."


def _remainders(counts: Sequence[int], shares: Sequence[Fraction]) -> Trouble:
    """Every count is its share rounded down or up, and up before all with a smaller remainder."""
    for worker, (count, share) in enumerate(zip(counts, shares, strict=True)):
        if abs(count - share) >= 1 and abs(float(count - share)) > 1 - 1e-9:
            message = (
                f"Worker {worker} gets {count} of {sum(counts)} items, and its share is {float(share):.4g}."
            )
            return message, _share_why(counts, shares)
    up = [float(s - math.floor(s)) for c, s in zip(counts, shares, strict=True) if c > s]
    down = [float(s - math.floor(s)) for c, s in zip(counts, shares, strict=True) if c < s]
    if up and down and max(down) > min(up) + 1e-9:
        message = f"A remainder of {min(up):.2f} was rounded up, and one of {max(down):.2f} was not."
        return (
            message,
            "what is left over goes to the largest remainders: sort the workers by share minus its whole part.",
        )
    return None


def _share_why(counts: Sequence[int], shares: Sequence[Fraction]) -> str:
    floors = [math.floor(share) for share in shares]
    extra = [count - floor for count, floor in zip(counts, floors, strict=True)]
    if [one for one in extra if one] and sum(1 for one in extra if one) == 1:
        return "all that was left over went to one worker: one item each, the largest remainders first."
    if max(counts) - min(counts) <= 1:
        return "these are equal parts: a share is items * speed / sum of speeds."
    return "a share is items * speed / sum of speeds, rounded down or up."


def race(call: Call, returned: Any) -> Trouble:
    if not isinstance(returned, (tuple, list)) or len(returned) != 3:
        return (
            f"race returned {shown(returned)}.",
            "three things are asked for: seconds, seconds, list of workers.",
        )
    costs, speeds = call.arguments["costs"], call.arguments["speeds"]
    for name, value in zip(("equal parts", "the queue"), returned, strict=False):
        if trouble := explain.not_a_number(value):
            return f"The seconds of {name} are {trouble}.", "a number is asked for."
    taken = whole_numbers(returned[2], len(costs))
    if taken is None:
        return (
            f"The owners are {shown(returned[2])}.",
            f"one worker for each of {len(costs)} items is asked for.",
        )
    equal_s, queue_s, owners = call.expected
    if not math.isclose(returned[0], equal_s, rel_tol=1e-9):
        return _seconds("Equal parts take", returned[0], equal_s), _equal_why(costs, speeds, returned[0])
    for item, (got, wanted) in enumerate(zip(taken, owners, strict=True)):
        if got != wanted:
            message = f"Item {item} is taken by worker {got}, expected worker {wanted}, who is free first."
            return message, _owner_why(costs, speeds, taken)
    if not math.isclose(returned[1], queue_s, rel_tol=1e-9):
        return _seconds("The queue takes", returned[1], queue_s), _total_why(costs, speeds, returned[1])
    return None


def _seconds(what: str, got: Any, wanted: float) -> str:
    return f"{what} {number(float(got))} s in your race, expected {number(wanted)} s."


def _equal_why(costs: Sequence[float], speeds: Sequence[float], got: float) -> str:
    workers = len(speeds)
    dealt = [sum(costs[worker::workers]) / speed for worker, speed in enumerate(speeds)]
    each = [simulate(costs, speeds, "static").busy(worker) for worker in range(workers)]
    short = len(costs) // workers
    last = [
        *(slice(w * short, (w + 1) * short) for w in range(workers - 1)),
        slice((workers - 1) * short, None),
    ]
    guesses = (
        (
            simulate(costs, [1.0] * workers, "static").seconds,
            "every worker runs at speed 1 here: divide by its speed.",
        ),
        (
            max(dealt),
            "items were dealt out in turn: equal parts are contiguous, the first worker has the first items.",
        ),
        (
            sum(each),
            "these are all workers' times added up; they work at the same time, and the last one decides.",
        ),
        (sum(each) / workers, "this is the mean; the last one decides."),
        (min(each), "this is the first one who is done; the last one decides."),
        (max(sum(costs[part]) / s for part, s in zip(last, speeds, strict=True)), _FIRST_LONGER),
        (sum(costs) / sum(speeds), "this is what a perfect division would take."),
    )
    return next((why for guess, why in guesses if math.isclose(guess, got, rel_tol=1e-9)), "")


_FIRST_LONGER = (
    "where it does not divide, the first parts are one longer: 7 items for 3 workers are 3, 2 and 2."
)


def _owner_why(costs: Sequence[float], speeds: Sequence[float], taken: list[int]) -> str:
    workers = len(speeds)
    same = cases.owners(simulate(costs, [1.0] * workers, "dynamic"))
    parts = cases.owners(simulate(costs, speeds, "static"))
    guesses: tuple[tuple[list[int], str], ...] = (
        (same, "the speeds are missing: a worker is free again after cost / speed seconds."),
        ([item % workers for item in range(len(costs))], "items were dealt out in turn, whoever was free."),
        (
            cases.earliest_end(costs, speeds),
            "the queue does not look ahead: whoever is free takes the next item.",
        ),
        (parts, "these are the equal parts; from a queue each takes one item at a time."),
        (_slower(costs, speeds), "a worker's speed divides the cost: speed 2 needs half the time."),
        (
            _last_of_ties(costs, speeds),
            "where several are free at the same moment, the lowest number is first.",
        ),
    )
    return next((why for guess, why in guesses if guess == taken), "")


def _slower(costs: Sequence[float], speeds: Sequence[float]) -> list[int]:
    return cases.owners(simulate(costs, [1 / speed for speed in speeds], "dynamic"))


def _last_of_ties(costs: Sequence[float], speeds: Sequence[float]) -> list[int]:
    last = len(speeds) - 1
    return [last - owner for owner in cases.owners(simulate(costs, list(speeds)[::-1], "dynamic"))]


def _total_why(costs: Sequence[float], speeds: Sequence[float], got: float) -> str:
    played = simulate(costs, speeds, "dynamic")
    each = [played.busy(worker) for worker in range(len(speeds))]
    guesses = (
        (min(each), "this is the first one who is done; the race is over with the last."),
        (sum(each), "these are all workers' times added up; they work at the same time."),
        (
            sum(costs) / sum(speeds),
            "this is what a perfect division would take; the last item makes somebody late.",
        ),
        (
            played.pieces[-1].start if played.pieces else 0.0,
            "this is when the last item begins; it has to be done.",
        ),
    )
    return next((why for guess, why in guesses if math.isclose(guess, got, rel_tol=1e-9)), "")


def ring(call: Call, returned: Any) -> Trouble:
    matrix = call.arguments["matrix"]
    order = whole_numbers(returned, len(matrix))
    if order is None:
        if isinstance(returned, (list, tuple)) and len(returned) == len(matrix) + 1:
            return (
                f"ring returned {shown(returned)}.",
                "the first GPU stands once: from the last it goes back by itself.",
            )
        return (
            f"ring returned {shown(returned)}.",
            f"the numbers 0 to {len(matrix) - 1} are asked for, each once.",
        )
    if sorted(order) != list(range(len(matrix))):
        missing = next(one for one in range(len(matrix)) if one not in order)
        return f"{shown(order)} is no ring: GPU {missing} is not in it.", "every GPU has its place, once."
    worst = cases.worst_edge(matrix, order)
    if worst >= call.expected:
        return None
    place = cases.edges(matrix, order).index(worst)
    one, other = order[place], order[(place + 1) % len(order)]
    found = f"The worst edge of {order} is {one} to {other} with {worst:g} GB/s"
    message = f"{found}; there is a ring with {call.expected:g}."
    return message, _ring_why(matrix, order, call.expected)


def _ring_why(matrix: cases.Matrix, order: list[int], best: float) -> str:
    along = cases.edges(matrix, order)
    if min(along[:-1]) >= best:
        return "the way back, from the last to the first, is an edge too."
    if order == list(range(len(matrix))):
        return "this is the order of the numbers, which says nothing about the wires."
    if math.isclose(sum(along), sum(cases.edges(matrix, cases.best_sum(matrix)))):
        return "this ring has the largest sum; but all edges are used at once, and the slowest decides."
    if tuple(order) == cases.nearest(matrix):
        return (
            "going to the nearest one that is left uses up the good links, and a bad one remains for the end."
        )
    return "look at the slowest edge of each whole ring, and take the ring in which it is fastest."
