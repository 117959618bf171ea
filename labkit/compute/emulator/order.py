"""Which accesses atomic operations order: the one thread's update comes before the other's of the same element."""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.compute.emulator.memory import per_lane
from labkit.compute.emulator.shadow import Access

PAIRS_CHECKED = 2048


class AtomicOrder:
    """The log of all atomic operations of a launch: when, by whom, on what."""

    def __init__(self, threads_per_block: int):
        self.threads = threads_per_block
        self.log: list[tuple[int, np.ndarray, np.ndarray]] = []
        self.arrays: dict[Any, int] = {}
        self._table: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def add(self, array: Any, access: Access) -> None:
        """Log an atomic operation on the array that ``array`` identifies."""
        number = self.arrays.setdefault(array, len(self.arrays))
        place = per_lane(access.offset, access.lanes).astype(np.int64) + (number << 48)
        self.log.append((access.time, access.who, place))
        self._table = None

    def table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times, threads and places of all atomic operations."""
        if self._table is None:
            # lanes of one instruction take turns, in their order
            times = [time + np.arange(len(who)) / len(who) for time, who, _ in self.log]
            columns = [times, [who for _, who, _ in self.log], [place for _, _, place in self.log]]
            empty = np.zeros(0, np.int64)
            time, who, place = (np.concatenate(c) if c else empty for c in columns)
            self._table = time, who, place
        return self._table

    def ordered(self, before: np.ndarray, when: np.ndarray, after: np.ndarray, now: int) -> np.ndarray:
        """For each pair: did ``before`` update, after ``when``, an element that ``after`` updated later?

        Between blocks any thread of the block counts: a barrier passes the knowledge on.
        """
        result = np.zeros(len(before), bool)
        if not self.log:
            return result
        pairs = np.stack([before, when, after], axis=1)
        unique, inverse = np.unique(pairs, axis=0, return_inverse=True)
        known = np.zeros(len(unique), bool)
        for k, (first, start, second) in enumerate(unique[:PAIRS_CHECKED].tolist()):
            known[k] = self._linked(first, start, second, now)
        return known[inverse.reshape(-1)]

    def _linked(self, first: int, start: int, second: int, now: int) -> bool:
        time, who, place = self.table()
        actor = who // self.threads if first // self.threads != second // self.threads else who
        one, two = (first, second) if actor is who else (first // self.threads, second // self.threads)
        released = (actor == one) & (time >= start + 1)
        acquired = (actor == two) & (time < now)
        if not (released.any() and acquired.any()):
            return False
        common = np.intersect1d(place[released], place[acquired])
        for spot in common.tolist():
            at = place == spot
            if time[released & at].min() < time[acquired & at].max():
                return True
        return False
