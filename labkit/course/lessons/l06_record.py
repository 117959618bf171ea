"""Lesson 06, in the answer's own process: the answer played on a world of ranks, and the record of what they did.

Rank r of a reduction brings (1 + i mod 5) * 10**r in element i: the sum over four ranks reads 1111, 2222, and so on,
so that a digit of 0 is a rank whose share is missing, and a digit that is too large one whose share came twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.network.collectives import chunks
from labkit.network.played import Deadlock, Play
from labkit.network.stage import play

Answer = Callable[..., Any]
CYCLE = 5


def share(elements: int, rank: int, dtype: str = "float64") -> np.ndarray:
    """What a rank brings to a reduction."""
    return ((1 + np.arange(elements) % CYCLE) * 10**rank).astype(dtype)


def whole(elements: int, dtype: str = "float64") -> np.ndarray:
    """What everybody should end up with where data are only moved: element i holds i."""
    return np.arange(elements).astype(dtype)


def blank(elements: int, dtype: str) -> np.ndarray:
    """Data that say nothing: NaN, or -1 among whole numbers."""
    return np.full(elements, -1 if np.dtype(dtype).kind == "i" else np.nan, dtype)


def reduction(answer: Answer) -> Answer:
    """For ``answer(data, rank, ranks)`` that adds up what all bring."""
    _labkit_answer = answer

    def _labkit_recorded(elements, ranks, dtype):
        from labkit.course.lessons.l06_record import record, share

        return record(_labkit_answer, [(share(elements, r, dtype), r, ranks) for r in range(ranks)])

    return _labkit_recorded


def all_gather(answer: Answer) -> Answer:
    """For ``answer(data, rank, ranks)`` where each rank brings its own chunk."""
    _labkit_answer = answer

    def _labkit_recorded(elements, ranks, dtype):
        from labkit.course.lessons.l06_record import own_chunk, record

        return record(
            _labkit_answer, [(own_chunk(elements, r, ranks, dtype), r, ranks) for r in range(ranks)]
        )

    return _labkit_recorded


def own_chunk(elements: int, rank: int, ranks: int, dtype: str) -> np.ndarray:
    data = blank(elements, dtype)
    mine = chunks(elements, ranks)[rank]
    data[mine] = whole(elements, dtype)[mine]
    return data


def broadcast(answer: Answer) -> Answer:
    """For ``answer(data, root, rank, ranks)``."""
    _labkit_answer = answer

    def _labkit_recorded(elements, ranks, root, dtype):
        from labkit.course.lessons.l06_record import blank, record, whole

        data = [whole(elements, dtype) if r == root else blank(elements, dtype) for r in range(ranks)]
        return record(_labkit_answer, [(data[r], root, r, ranks) for r in range(ranks)])

    return _labkit_recorded


def shift(answer: Answer) -> Answer:
    """For ``answer(data, rank, ranks)`` that returns what the left neighbour brought."""
    _labkit_answer = answer

    def _labkit_recorded(elements, ranks):
        from labkit.course.lessons.l06_record import record, share

        return record(_labkit_answer, [(share(elements, r), r, ranks) for r in range(ranks)])

    return _labkit_recorded


def record(answer: Answer, arguments: list[tuple[Any, ...]]) -> dict[str, Any]:
    """Each rank's data afterwards, what it returned, and all messages; who waits for whom where nobody can go on."""
    try:
        played, stuck = play(answer, len(arguments), arguments), ""
    except Deadlock as error:
        played, stuck = error.play, str(error)
    return {
        "data": [given[0] for given in arguments],
        "returned": list(played.results),
        "deadlock": stuck,
        "messages": _messages(played),
        "ready_made": sorted({one.kind for one in played.messages} - {"send"}),
        "same_array": [
            isinstance(got, np.ndarray) and np.shares_memory(got, given[0])
            for got, given in zip(played.results, arguments, strict=True)
        ],
    }


def _messages(played: Play) -> list[list[int]]:
    """Step, source, to, elements, and whether somebody took it."""
    return [[one.step, one.source, one.to, one.elements, int(one.received)] for one in played.messages]
