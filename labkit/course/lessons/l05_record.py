"""Lesson 05, in the answer's own process: the halo exchange played on ranks of threads, and the record of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from labkit.network.played import Deadlock
from labkit.network.stage import play

Answer = Callable[..., Any]


def halo(answer: Answer) -> Answer:
    """For ``answer(part, rank, ranks, steps)``."""
    _labkit_answer = answer

    def _labkit_recorded(heights, columns, steps):
        from labkit.course.lessons.l05_record import record_halo

        return record_halo(_labkit_answer, heights, columns, steps)

    return _labkit_recorded


def record_halo(answer: Answer, heights: Sequence[int], columns: int, steps: int) -> dict[str, Any]:
    """What each rank returned, and all messages; who waits for whom where nobody can go on."""
    parts = cut(whole(heights, columns), heights)
    arguments = [(part, rank, len(parts), steps) for rank, part in enumerate(parts)]
    try:
        played, stuck = play(answer, len(parts), arguments), ""
    except Deadlock as error:
        played, stuck = error.play, str(error)
    return {
        "returned": list(played.results),
        "deadlock": stuck,
        "messages": [[one.source, one.to, one.bytes, int(one.received)] for one in played.messages],
    }


def whole(heights: Sequence[int], columns: int) -> np.ndarray:
    """The plate of a check, float64 (sum of heights, columns); the same for everybody."""
    rows = sum(heights)
    return np.random.default_rng((505, rows, columns)).uniform(10, 100, (rows, columns))


def cut(plate: np.ndarray, heights: Sequence[int]) -> list[np.ndarray]:
    """Bands of rows, each with memory of its own."""
    return [band.copy() for band in np.split(plate, np.cumsum(heights)[:-1])]
