"""Lesson 06: what is wrong with a collective that was played, and why where the mistake is typical."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from labkit.course.checks import Call
from labkit.course.compare import number
from labkit.course.lessons.l06_played import Played, Trouble, differs, read
from labkit.course.lessons.l06_record import CYCLE, share, whole
from labkit.network.collectives import chunks

SUM_WHY = "each rank's share belongs into the sum once."


def _played(judge: Callable[[Call, Played], Trouble]) -> Callable[[Call, Any], Trouble]:
    """A judge of what came back: one of a play, once its record could be read."""

    @functools.wraps(judge)
    def of_returned(call: Call, returned: Any) -> Trouble:
        played = read(returned, call)
        return judge(call, played) if isinstance(played, Played) else played

    return of_returned


@_played
def reduce_scatter(call: Call, played: Played) -> Trouble:
    """Own chunks complete; p - 1 steps, to the right, every chunk but one's own once."""
    return (
        played.went_on()
        or _sums(call, played, _own)
        or played.neighbours()
        or played.sent(_all_but(0), "every chunk but its own, once")
        or played.steps_at_most(
            played.ranks - 1, "every rank sends one chunk a step, while it receives another."
        )
        or played.left_over()
    )


@_played
def all_gather(call: Call, played: Played) -> Trouble:
    """All chunks everywhere; p - 1 steps, to the right, every chunk but the right neighbour's own once."""
    return (
        played.went_on()
        or _moved(call, played, _gather_why)
        or played.neighbours()
        or played.sent(_all_but(1), "every chunk but the one its right neighbour began with, once")
        or played.steps_at_most(
            played.ranks - 1, "every rank sends one chunk a step, while it receives another."
        )
        or played.left_over()
    )


@_played
def broadcast(call: Call, played: Played) -> Trouble:
    """The root's data everywhere; p - 1 messages in ceil(log2 p) steps."""
    return played.went_on() or _moved(call, played, _broadcast_why) or _tree(played) or played.left_over()


@_played
def shift(call: Call, played: Played) -> Trouble:
    """What the left neighbour brought is returned; one's own data are as before; not one rank after another."""
    return (
        played.went_on()
        or _shifted(call, played)
        or played.messages_at_least(played.ranks if played.ranks > 1 else 0)
        or _side_by_side(played)
        or played.left_over()
    )


@_played
def all_reduce(call: Call, played: Played) -> Trouble:
    """Everything complete everywhere; about 2 log2 p steps, and no more bytes than halves and quarters need."""
    return (
        played.went_on()
        or _sums(call, played, _everything)
        or played.messages_at_least(2 * (played.ranks - 1))
        or _halving(played)
        or played.left_over()
    )


def _own(played: Played, rank: int) -> slice:
    return chunks(played.elements, played.ranks)[rank]


def _everything(played: Played, rank: int) -> slice:
    return slice(0, played.elements)


def _all_but(further: int) -> Callable[[Played, int], int]:
    """Elements of all chunks but the one that belongs so many ranks further right."""

    def count(played: Played, rank: int) -> int:
        left_out = chunks(played.elements, played.ranks)[(rank + further) % played.ranks]
        return played.elements - (left_out.stop - left_out.start)

    return count


def _sums(call: Call, played: Played, part: Callable[[Played, int], slice]) -> Trouble:
    """The first element of a rank's part that is not everybody's sum."""
    dtype = call.arguments["dtype"]
    wanted = np.sum([share(played.elements, r, "float64") for r in range(played.ranks)], axis=0).astype(dtype)
    for rank, data in enumerate(played.data):
        where = part(played, rank)
        if (element := differs(data[where], wanted[where])) is not None:
            place = where.start + element
            message = played.sentence(rank, place, data[place], wanted[place])
            return message, _sum_why(played, rank, place, wanted)
    return None


def _sum_why(played: Played, rank: int, place: int, wanted: np.ndarray) -> str:
    parts = chunks(played.elements, played.ranks)
    if not played.messages:
        return "no rank has sent anything."
    if _complete_elsewhere(played, parts, wanted):
        return (
            "every rank ends with its right neighbour's chunk complete: start one chunk earlier, so that the "
            "last one to arrive is your own."
        )
    counts = _shares(float(played.data[rank][place]), place, played.ranks)
    if counts is None:
        return "these are shares of another element: data went into a chunk that they do not belong to."
    return " and ".join(_said(counts, played)) or SUM_WHY


def _complete_elsewhere(played: Played, parts: Sequence[slice], wanted: np.ndarray) -> bool:
    if played.ranks < 3:
        return False
    next_ones = [parts[(rank + 1) % played.ranks] for rank in range(played.ranks)]
    filled = any(one.stop > one.start for one in next_ones)
    return filled and all(
        differs(data[part], wanted[part]) is None for data, part in zip(played.data, next_ones, strict=True)
    )


def _shares(value: float, place: int, ranks: int) -> list[int] | None:
    """How often each rank's share is in a sum; None where it is no sum of shares of this element."""
    scale = 1 + place % CYCLE
    if not np.isfinite(value) or value < 0 or value % scale:
        return None
    digits, rest = [], int(value) // scale
    for _ in range(ranks):
        rest, digit = divmod(rest, 10)
        digits.append(digit)
    return None if rest else digits


def _said(counts: Sequence[int], played: Played) -> Iterator[str]:
    missing = [rank for rank, count in enumerate(counts) if count == 0]
    twice = [rank for rank, count in enumerate(counts) if count > 1]
    if missing:
        yield f"{_whose(missing)} missing ({played.steps} steps were taken)"
    if twice:
        yield f"{_whose(twice)} in it more than once"


def _whose(ranks: Sequence[int]) -> str:
    *most, last = map(str, ranks)
    return f"the shares of ranks {', '.join(most)} and {last} are" if most else f"the share of rank {last} is"


def _moved(call: Call, played: Played, why: Callable[[Call, Played, int, int], str]) -> Trouble:
    """The first element of any rank that is not what its owner had."""
    wanted = whole(played.elements, call.arguments["dtype"])
    for rank, data in enumerate(played.data):
        if (place := differs(data, wanted)) is not None:
            return played.sentence(rank, place, data[place], wanted[place]), why(call, played, rank, place)
    return None


def _gather_why(call: Call, played: Played, rank: int, place: int) -> str:
    parts = chunks(played.elements, played.ranks)
    owner = next(number for number, part in enumerate(parts) if part.start <= place < part.stop)
    value = float(played.data[rank][place])
    if not played.messages:
        return "no rank has sent anything."
    if np.isnan(value) or value < 0:
        return (
            f"chunk {owner} has not come to rank {rank} ({played.steps} steps were taken): in every step, pass on the "
            "chunk that came in the step before, p - 1 times."
        )
    return f"element {number(value)} was put where element {place} belongs: chunk {owner} lies at {parts[owner].start}."


def _broadcast_why(call: Call, played: Played, rank: int, place: int) -> str:
    root = call.arguments["root"]
    if rank == root:
        return f"rank {root} is the root: its own data should stay as they are."
    if not any(to == rank for _, _, to, _ in played.messages):
        return f"nobody has sent anything to rank {rank}: count ranks from the root, (rank - root) % ranks."
    return f"rank {rank} received from a rank that did not have the root's data yet."


def _tree(played: Played) -> Trouble:
    if not played.elements or played.ranks == 1:
        return None
    target, steps = (played.ranks - 1).bit_length(), played.steps
    sent = len(played.messages)
    if sent > played.ranks - 1:
        return f"{sent} messages, target {played.ranks - 1}.", "every rank but the root needs the data once."
    if trouble := played.messages_at_least(played.ranks - 1):
        return trouble
    if steps > target:
        busiest = max(range(played.ranks), key=lambda rank: played.messages_of(rank))
        most = played.messages_of(busiest)
        why = (
            f"rank {busiest} sends all {most} messages itself, one a step: let whoever has the data pass them on."
            if most == sent
            else "those who have the data have to double in every step: everybody who has them sends."
        )
        return f"The values are right, but it takes {steps} steps, target {target}.", why
    return None


def _shifted(call: Call, played: Played) -> Trouble:
    for rank in range(played.ranks):
        got, own = played.returned[rank], played.data[rank]
        wanted = share(played.elements, (rank - 1) % played.ranks)
        if not isinstance(got, np.ndarray) or got.shape != wanted.shape:
            return (
                f"Rank {rank} does not return an array of {played.elements} elements.",
                "return what came from the left.",
            )
        if (place := differs(got, wanted)) is not None:
            message = f"Rank {rank} returns {number(got[place])} as element {place}, expected {number(wanted[place])}."
            return message, _shift_why(played, rank, got)
        if (place := differs(own, share(played.elements, rank))) is not None:
            before = share(played.elements, rank)[place]
            message = f"Rank {rank} has changed its own data: element {place} is {number(own[place])}"
            return f"{message}, and was {number(before)}.", "receive into an array of its own."
        if played.elements and played.same_array[rank]:
            return (
                f"Rank {rank} returns data itself.",
                "a new array is asked for, in a world of one rank too.",
            )
    return None


def _shift_why(played: Played, rank: int, got: np.ndarray) -> str:
    if np.array_equal(got, share(played.elements, (rank + 1) % played.ranks)):
        return "that is the right neighbour's: send to the right, receive from the left."
    if np.array_equal(got, share(played.elements, rank)):
        return "that is its own: return what was received."
    return ""


def _side_by_side(played: Played) -> Trouble:
    target = 3
    if played.steps <= target:
        return None
    return (
        f"The values are right, but it takes {played.steps} steps, target {target}.",
        "one rank after another gets its turn: the whole ring waits for a chain of messages. Let pairs of "
        "neighbours go at the same time, or use exchange.",
    )


def _halving(played: Played) -> Trouble:
    ranks, elements = played.ranks, played.elements
    levels = ranks.bit_length() - 1
    core = 1 << levels
    outside = core < ranks
    target = 2 * levels + 2 * outside
    if played.steps > target:
        return (
            f"The values are right, but it takes {played.steps} steps, target {target}.",
            "halve the distance (and what is exchanged) in every step, then double it again.",
        )
    # on the way down all but the own piece; back, every piece once more; uneven pieces are an element longer
    most = elements - elements // core + (core - 1) * -(-elements // core) + outside * elements
    return played.sent_at_most(
        most, "send half of what you still share, then a quarter, and so on: never all of it."
    )
