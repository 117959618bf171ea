"""Who does which part of the work: cut beforehand, cut by speed, or taken from a shared queue as one goes.

A static cut costs nothing and waits for the slowest; a cut by speed needs to know the speeds, and that they
stay; a queue needs neither, and pays an access for every chunk. `simulate` plays all three on a virtual clock;
`run_split` does them on real ranks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.units import show_time
from labkit.network.live import work_done

POLICIES = ("static", "proportional", "dynamic")


@dataclass(frozen=True)
class Piece:
    """Items ``first`` to ``last`` (not included) on a worker, from ``start`` to ``end``, seconds."""

    worker: int
    first: int
    last: int
    start: float
    end: float


@dataclass(frozen=True)
class Split:
    """How work was divided, and how long each worker was at it.

    Attributes
    ----------
    policy, how : str
        ``how`` is ``"modelled"`` (virtual clock) or ``"measured"``.
    workers : int
    pieces : tuple of Piece
        In order of their start.
    """

    policy: str
    how: str
    workers: int
    pieces: tuple[Piece, ...]

    def busy(self, worker: int) -> float:
        """Seconds that a worker worked."""
        return sum(one.end - one.start for one in self.pieces if one.worker == worker)

    def items(self, worker: int) -> int:
        """How many items a worker did."""
        return sum(one.last - one.first for one in self.pieces if one.worker == worker)

    @property
    def seconds(self) -> float:
        """Until the last worker was done."""
        return max((one.end for one in self.pieces), default=0.0)

    @property
    def imbalance(self) -> float:
        """The busiest worker's time over the mean: 1 is perfect, 2 means that half of the time was waited."""
        times = [self.busy(worker) for worker in range(self.workers)]
        mean = sum(times) / len(times)
        return max(times) / mean if mean else 1.0

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": self.seconds, "imbalance": self.imbalance}

    def __repr__(self) -> str:
        took = (
            f", {show_time(self.seconds)}, imbalance {self.imbalance:.2f}" if self.how == "modelled" else ""
        )
        return f"Split({self.policy}: {self.workers} workers, {len(self.pieces)} pieces{took}, {self.how})"

    def _repr_html_(self) -> str:
        from labkit.hardware.html import table

        rows = [
            (str(w), str(self.items(w)), show_time(self.busy(w)), show_time(self.seconds - self.busy(w)))
            for w in range(self.workers)
        ]
        said = f"{self.policy}: {show_time(self.seconds)}, imbalance {self.imbalance:.2f} ({self.how})"
        return table(("worker", "items", "busy", "waits"), rows, said)


def static(items: int, workers: int) -> list[slice]:
    """Equal parts; the first ones are one longer where it does not divide."""
    return proportional(items, [1.0] * workers)


def proportional(items: int, speeds: Sequence[float]) -> list[slice]:
    """Parts in proportion to speeds, whole items, all of them: largest remainders get what rounding left.

    Raises
    ------
    LabkitError
        Without a worker, and for speeds that are negative or all zero.
    """
    total = sum(speeds)
    if items < 0 or not speeds or min(speeds) < 0 or not total:
        raise LabkitError("Splitting takes zero items or more, and speeds of which one is above zero.")
    shares = [items * speed / total for speed in speeds]
    counts = [int(share) for share in shares]
    by_rest = sorted(range(len(speeds)), key=lambda worker: counts[worker] - shares[worker])
    for worker in by_rest[: items - sum(counts)]:
        counts[worker] += 1
    return [slice(*pair) for pair in pairwise(accumulate(counts, initial=0))]


def simulate(
    costs: Sequence[float],
    speeds: Sequence[float],
    policy: str = "static",
    chunk: int = 1,
    access: float = 0.0,
    known: Sequence[float] | None = None,
    slow: Mapping[int, tuple[float, float]] | None = None,
) -> Split:
    """Play a policy on a virtual clock.

    Parameters
    ----------
    costs : sequence of float
        Seconds that each item takes at speed 1.
    speeds : sequence of float
        One a worker, above zero.
    policy : str
        ``"static"``, ``"proportional"`` or ``"dynamic"``.
    chunk : int
        Items taken from the queue at once (dynamic).
    access : float
        Seconds to take from the queue; workers queue for it one behind the other.
    known : sequence of float, optional
        What the proportional cut believes the speeds are; the true ones by default.
    slow : mapping, optional
        Stragglers: worker -> (from which second on, by which factor it is slower).
    """
    _check(policy, chunk, speeds)
    clock = _Clock(costs, speeds, dict(slow or {}))
    if policy == "dynamic":
        pieces = _from_queue(clock, chunk, access)
    else:
        parts = (
            static(len(costs), len(speeds))
            if policy == "static"
            else proportional(len(costs), known or speeds)
        )
        pieces = [
            Piece(worker, part.start, part.stop, 0.0, clock.after(worker, part.start, part.stop, 0.0))
            for worker, part in enumerate(parts)
            if part.stop > part.start
        ]
    return Split(
        policy, "modelled", len(speeds), tuple(sorted(pieces, key=lambda one: (one.start, one.worker)))
    )


@dataclass
class _Clock:
    costs: Sequence[float]
    speeds: Sequence[float]
    slow: dict[int, tuple[float, float]]

    def after(self, worker: int, first: int, last: int, now: float) -> float:
        """When a worker that begins now has done these items."""
        left = sum(self.costs[first:last]) / self.speeds[worker]
        turn, factor = self.slow.get(worker, (float("inf"), 1.0))
        quick = min(left, max(0.0, turn - now))
        return now + quick + (left - quick) * factor


def _from_queue(clock: _Clock, chunk: int, access: float) -> list[Piece]:
    free = [0.0] * len(clock.speeds)
    queue_free = 0.0
    pieces = []
    for first in range(0, len(clock.costs), chunk):
        worker = min(range(len(free)), key=lambda w: (free[w], w))
        last = min(first + chunk, len(clock.costs))
        queue_free = start = max(queue_free, free[worker]) + access
        free[worker] = clock.after(worker, first, last, start)
        pieces.append(Piece(worker, first, last, start, free[worker]))
    return pieces


def run_split(
    work: Callable[[int], Any],
    items: int,
    policy: str = "static",
    speeds: Sequence[float] | None = None,
    chunk: int = 1,
) -> tuple[Split, dict[int, Any]]:
    """Do ``work(item)`` for all items on the ranks that call this together, inside ``labkit.ranks(n).run``.

    A rank that is done waits for the others at the end. The live plot shows it: each rank's share of the work, who
    computes and who waits, and the imbalance so far.

    Parameters
    ----------
    speeds : sequence of float, optional
        For ``"proportional"``, one a rank.
    chunk : int
        For ``"dynamic"``: items a rank takes at once from the queue, a counter in the store where ranks met.

    Returns
    -------
    Split, dict
        The same split on all ranks; and this rank's results by item.
    """
    import torch.distributed as dist

    size, rank = dist.get_world_size(), dist.get_rank()
    _check(policy, chunk, speeds or [1.0] * size)
    if policy == "proportional" and (speeds is None or len(speeds) != size):
        raise LabkitError(f"A proportional split on {size} ranks needs {size} speeds.")
    parts = proportional(items, speeds) if policy == "proportional" and speeds else static(items, size)
    dist.barrier()
    work_done(0, items)
    began = time.monotonic()
    mine: list[Piece] = []
    results: dict[int, Any] = {}
    for first, last in (
        _queue(items, chunk) if policy == "dynamic" else [(parts[rank].start, parts[rank].stop)]
    ):
        start = time.monotonic() - began
        for item in range(first, last):
            results[item] = work(item)
            work_done(len(results), items)
        mine.append(Piece(rank, first, last, start, time.monotonic() - began))
    every: list[Any] = [None] * size
    dist.all_gather_object(every, mine)
    pieces = sorted((one for part in every for one in part), key=lambda one: (one.start, one.worker))
    return Split(policy, "measured", size, tuple(pieces)), results


_queues = 0


def _queue(items: int, chunk: int) -> Any:
    """First and last item of the next chunk, until none is left: one counter for all ranks."""
    from torch.distributed import distributed_c10d

    global _queues
    _queues += 1  # all ranks make the same queues in the same order
    store = distributed_c10d._get_default_store()
    name = f"labkit/queue/{_queues}"
    while (first := store.add(name, chunk) - chunk) < items:
        yield first, min(first + chunk, items)


def _check(policy: str, chunk: int, speeds: Sequence[float]) -> None:
    if policy not in POLICIES:
        raise LabkitError(f"{policy!r} is no way to split work: choose from {', '.join(POLICIES)}.")
    if chunk < 1:
        raise LabkitError("A chunk has at least one item.")
    if not speeds or min(speeds) <= 0:
        raise LabkitError("Every worker needs a speed above zero.")
