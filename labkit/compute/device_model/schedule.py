"""When operations run: each engine does one thing at a time, and takes what is ready first.

Kernels do not share the card (each is taken to fill it), copies in and out do not slow each other, and the host
submits in no time. Where two operations are ready at the same moment, the one that was submitted first goes first.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from labkit.compute.device_model.operations import Operation

Span = tuple[float, float]


def schedule(operations: Sequence[Operation]) -> tuple[Span, ...]:
    """``(start, end)`` in seconds for every operation."""
    spans: list[Span | None] = [None] * len(operations)
    missing = [len(one.waits) for one in operations]
    followers: list[list[int]] = [[] for _ in operations]
    for one in operations:
        for wait in one.waits:
            followers[wait.on].append(one.number)
    free: dict[str, float] = {}
    waiting: dict[str, list[tuple[float, int]]] = {}
    for one in operations:
        if not one.waits:
            _make_ready(one, 0.0, waiting)
    while waiting:
        number, start = _next(waiting, free)
        one = operations[number]
        end = start + one.seconds
        spans[number], free[one.engine] = (start, end), end
        for follower in followers[number]:
            missing[follower] -= 1
            if not missing[follower]:
                ends = [spans[wait.on] for wait in operations[follower].waits]
                _make_ready(operations[follower], max(span[1] for span in ends if span), waiting)
    return tuple(span for span in spans if span is not None)


def _make_ready(one: Operation, at: float, waiting: dict[str, list[tuple[float, int]]]) -> None:
    heapq.heappush(waiting.setdefault(one.engine, []), (at, one.number))


def _next(waiting: dict[str, list[tuple[float, int]]], free: dict[str, float]) -> tuple[int, float]:
    """Take the operation that starts first of all engines' next ones; returns its number and start."""
    starts = {engine: max(queue[0][0], free.get(engine, 0.0)) for engine, queue in waiting.items()}
    engine = min(starts, key=lambda name: (starts[name], waiting[name][0][1]))
    _, number = heapq.heappop(waiting[engine])
    if not waiting[engine]:
        del waiting[engine]
    return number, starts[engine]
