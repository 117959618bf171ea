"""Recordings of four ranks on four GPUs that all read 100 % while one holds up the rest: modelled, one for each number.

By the rules of `modelled`, and these: a rank that waits in NCCL asks again and again, which counts as 100 % and draws
little; what a rank reports of itself, computing or waiting, adds up to its time. In each recording

* once, for a while, one rank takes twice as long for its part of each step, and the other three wait for it: because
  it has twice the work, or because it got too hot and its clocks were lowered;
* once all ranks wait alike, for the network, which is nobody's fault;
* one card draws less than the others all the time, which means nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.telemetry.recording import Recording
from labkit.telemetry.series import Series
from labkit.telemetry.traces import modelled

RANKS = 4
CAUSES = ("work", "heat")
HOT = 87.0  # degrees at which the modelled card lowers its clocks
_REST, _CALM = 4.0, (8.0, 14.0)  # seconds before and after; between two happenings
_FULL, _SPIN = modelled.TRAINING.share, modelled.SPINNING.share
_WAITS = 0.06  # of the time, when all is well


@dataclass(frozen=True)
class Truth:
    """What happens in a recording; seconds on its clock.

    Attributes
    ----------
    rank : int
        The one that the others wait for.
    cause : str
        ``"work"`` (it has twice as much) or ``"heat"`` (its clocks are lowered).
    start, end : float
    network : tuple of two floats
        From when to when all ranks wait for the network.
    frugal : int
        The card that draws less than the others all the time.
    seconds : float
        How long the recording is.
    """

    rank: int
    cause: str
    start: float
    end: float
    network: tuple[float, float]
    frugal: int
    seconds: float


def truth(number: int) -> Truth:
    """What happens in recording ``number``."""
    random = np.random.default_rng((505, number))
    rank, frugal = (int(one) for one in random.permutation(RANKS)[:2])
    calm = random.uniform(*_CALM, 3)
    slow, net = random.uniform(11, 17), random.uniform(6, 9)
    first, second = (slow, net) if (slow_first := random.random() < 0.5) else (net, slow)
    begin = _REST + calm[0]
    later = begin + first + calm[1]
    end = later + second + calm[2]
    places = ((begin, begin + first), (later, later + second))
    (start, stop), network = places if slow_first else places[::-1]
    stop, start = _half(stop), _half(start)
    return Truth(
        rank,
        CAUSES[int(random.integers(2))],
        start,
        stop,
        (_half(network[0]), _half(network[1])),
        frugal,
        _half(end + _REST),
    )


def recorded(number: int) -> Recording:
    """Recording ``number``: series ``gpu.0.utilization``, ``.power`` and ``.temperature``, ``rank.0.compute`` and
    ``.wait`` (per cent of the time) and so on to 3, and the span ``training``."""
    told = truth(number)
    random = np.random.default_rng((506, number))
    recording = Recording(modelled.INTERVAL, began=0.0, machine=modelled.MACHINE.format(RANKS))
    degrees = [modelled.COOLEST + modelled.WARMER * 0.1] * RANKS
    for place in range(1, round(told.seconds / modelled.INTERVAL) + 1):
        at = place * modelled.INTERVAL
        values: dict[Series, float | None] = {}
        for rank in range(RANKS):
            computes, share = _doing(told, rank, at)
            jitter = random.normal(0, 0.015, 2) if computes else (0.0, 0.0)
            values |= _sample(told, rank, degrees, computes + jitter[0], share * (1 + jitter[1]))
        recording.append(at, values, {})
    recording.end(recording.begin("training", _REST), told.seconds - _REST)
    return recording


def _doing(told: Truth, rank: int, at: float) -> tuple[float, float]:
    """The share of the time that a rank computes at a moment, and the share of the peak that it reaches then."""
    if not _REST < at <= told.seconds - _REST:
        return 0.0, 0.0
    if told.network[0] < at <= told.network[1]:
        return 0.38, _FULL
    if not told.start < at <= told.end:
        return 1 - _WAITS, _FULL
    if rank != told.rank:
        return (1 - _WAITS) / 2, _FULL  # half of each step is over, and they wait for the other half
    return (0.985, _FULL) if told.cause == "work" else (0.985, _FULL / 2)


def _sample(
    told: Truth, rank: int, degrees: list[float], computes: float, share: float
) -> dict[Series, float | None]:
    works, computes = computes > 0, min(1.0, computes)
    mean = computes * share + (1 - computes) * _SPIN if works else 0.0
    state = modelled.State(works, mean * (0.9 if rank == told.frugal else 1.0), 70.0 if works else 5.0)
    degrees[rank] = _warmed(degrees[rank], state, throttled=works and share < 0.75 * _FULL)
    found = (100.0 * works, state.watts, degrees[rank])
    values: dict[Series, Any] = dict(zip(_gpu_series(rank), found, strict=True))
    if works:
        values |= dict(zip(_rank_series(rank), (100 * computes, 100 * (1 - computes)), strict=True))
    return values


def _warmed(degrees: float, state: modelled.State, throttled: bool) -> float:
    """A card whose cooling fails sits at the temperature at which it slows down."""
    return degrees + (HOT - degrees) * 0.4 if throttled else modelled.warmed(degrees, state)


def _gpu_series(rank: int) -> tuple[Series, ...]:
    return tuple(one for one in modelled.gpu_series(rank) if not one.key.endswith("memory"))


def _rank_series(rank: int) -> tuple[Series, ...]:
    name = f"Rank {rank}"
    return (
        Series(
            f"rank.{rank}.compute", f"{name} computes", "% of time", "modelled", "rank compute", device=name
        ),
        Series(
            f"rank.{rank}.wait",
            f"{name} waits",
            "% of time",
            "modelled",
            "rank wait",
            hidden=True,
            device=name,
        ),
    )


def _half(seconds: float) -> float:
    return round(2 * seconds) / 2
