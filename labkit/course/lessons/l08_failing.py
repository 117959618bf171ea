"""Lesson 08: a job that fails at seeded times, played through: how long it takes with a checkpoint every so often."""

from __future__ import annotations

import functools
import math

import numpy as np

_MEANS = 150  # work, in mean times between failures: enough of them that luck matters little
_TRIED = 61


def seconds(interval: float, mean: float, checkpoint: float, restart: float, seed: int = 8) -> float:
    """From the first to the last second of a job with `_MEANS` times ``mean`` seconds of work.

    Failures come at random with that mean between them, also while a checkpoint is written or the job starts again;
    what was done since the last checkpoint is done again. Infinity where no interval is ever survived.
    """
    work, gap = _MEANS * mean, _Gaps(mean, seed)
    left, clock, done = gap.next(), 0.0, 0.0
    while done < work:
        piece = min(interval, work - done)
        if left >= piece + checkpoint:
            whole = int(min(left // (piece + checkpoint), (work - done) // piece)) or 1
            clock, left, done = (
                clock + whole * (piece + checkpoint),
                left - whole * (piece + checkpoint),
                done + whole * piece,
            )
            continue
        clock += left
        left = gap.next()
        while left < restart:
            clock += left
            left = gap.next()
        clock, left = clock + restart, left - restart
        if gap.count > 200 * _MEANS:
            return math.inf
    return clock


class _Gaps:
    """Seconds between failures, the same for every interval that is tried."""

    def __init__(self, mean: float, seed: int):
        self.random, self.mean, self.count = np.random.default_rng(seed), mean, 0

    def next(self) -> float:
        self.count += 1
        return float(self.random.exponential(self.mean))


@functools.cache
def best(mean: float, checkpoint: float, restart: float, seed: int = 8) -> tuple[float, float]:
    """The interval that ends the job first, of many tried, and the seconds that it takes then."""
    middle = math.sqrt(2 * checkpoint * mean)
    tried = [middle * 2 ** (step / 10) for step in range(-_TRIED // 2, _TRIED // 2 + 1)]
    return min(
        ((one, seconds(one, mean, checkpoint, restart, seed)) for one in tried), key=lambda pair: pair[1]
    )
