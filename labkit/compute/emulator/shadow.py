"""Who touched which element last: the memory behind the race detector.

Most arrays are only read, or each element belongs to one thread. Such accesses are only noted down; the full record
of an array is made when an access comes that does not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from labkit.compute.emulator.affine import Affine, dense
from labkit.compute.emulator.geometry import WARP_SIZE
from labkit.compute.emulator.memory import gather, one_lane_each, per_lane, scatter

# Pending accesses of one array are written out when they hold more than this many lanes.
PENDING_LANES = 2**22
# What an access can collide with: atomic operations do not collide with each other.
AGAINST = {
    "read": ("write", "atomic"),
    "write": ("write", "read", "other read", "atomic"),
    "atomic": ("write", "read", "other read"),
}


@dataclass
class Access:
    """One memory instruction of one group of lanes.

    ``who`` numbers the threads over the whole grid; ``interval`` counts the barriers that each lane's block has
    passed, ``clock`` the ``syncwarp`` calls in the chunk so far, and ``synced`` gives the last of them that threads
    took part in; ``time`` orders all accesses of the launch. ``whole`` tells that the lanes are all those of their
    chunk.
    """

    kind: str  # "read", "write" or "atomic"
    offset: Any
    time: int
    site: int
    who: np.ndarray
    interval: Any
    clock: int
    synced: Callable[[np.ndarray], np.ndarray]
    whole: bool

    @property
    def lanes(self) -> int:
        return len(self.who)

    def part(self, lanes: np.ndarray) -> Access:
        """The same for some of the lanes."""
        offset, interval = (per_lane(v, self.lanes)[lanes] for v in (self.offset, self.interval))
        return replace(self, offset=offset, who=self.who[lanes], interval=interval, whole=False)


@dataclass
class Conflict:
    """Lanes of an access that collide with an earlier one: positions, and the earlier threads and times."""

    how: str
    lanes: np.ndarray
    who: np.ndarray
    time: np.ndarray


@dataclass(frozen=True)
class Owner:
    """The progression by which each element of an array belongs to one lane of a chunk."""

    base: int
    strides: tuple[int, ...]
    who: np.ndarray

    def matches(self, offset: Affine, who: np.ndarray) -> bool:
        return self.who is who and self.base == offset.base and self.strides == offset.strides


class Record:
    """The last access of one sort to each element."""

    def __init__(self, size: int):
        self.who = np.full(size, -1)
        self.time = np.zeros(size, np.int64)
        self.interval = np.zeros(size, np.int32)
        self.clock = np.zeros(size, np.int32)

    def put(self, access: Access) -> None:
        scatter(self.who, access.offset, access.who)
        scatter(self.time, access.offset, np.int64(access.time))
        scatter(self.interval, access.offset, access.interval)
        scatter(self.clock, access.offset, np.int32(access.clock))

    def copy_from(self, other: Record, where: np.ndarray) -> None:
        for name in ("who", "time", "interval", "clock"):
            getattr(self, name)[where] = getattr(other, name)[where]

    def displaced(self, access: Access) -> np.ndarray:
        """Positions of the lanes whose entry another lane of the same access has overwritten."""
        return np.flatnonzero(gather(self.who, access.offset) != access.who)


class Shadow:
    """The history of one array's elements."""

    def __init__(self, size: int, threads_per_block: int):
        self.size = size
        self.threads = threads_per_block
        self.forget()

    def forget(self) -> None:
        """Start anew: all threads that can touch the array have passed a barrier."""
        self.pending: list[Access] = []
        self.pending_lanes = 0
        self.written = False
        self.owner: Owner | None = None
        self.covered: tuple[int, int] | None = None
        self.records: dict[str, Record] | None = None

    def note(self, access: Access) -> bool:
        """Take the access without further ado if it cannot collide; False when it must be checked."""
        if self.records is not None or self.pending_lanes > PENDING_LANES:
            return False
        if not self.owned(access):
            if access.kind != "read" or self.written:
                return False
            self.owner = None
        self.written = self.written or access.kind != "read"
        self.pending.append(access)
        self.pending_lanes += access.lanes
        return True

    def owned(self, access: Access) -> bool:
        """Whether each element so far belongs to one thread, and still does after this access."""
        offset = access.offset
        if access.kind == "atomic" or not access.whole or offset.__class__ is not Affine:
            return False
        if self.owner is not None and self.owner.matches(offset, access.who):
            return True
        if (self.owner is None and self.pending) or not one_lane_each(offset):
            return False
        low, high = offset.bounds
        if self.covered is not None:
            if low <= self.covered[1] and high >= self.covered[0]:
                return False
            low, high = min(low, self.covered[0]), max(high, self.covered[1])
        self.owner, self.covered = Owner(offset.base, offset.strides, access.who), (low, high)
        return True

    def write_out(self) -> dict[str, Record]:
        """The full record, made of the pending accesses, none of which collide."""
        if self.records is None:
            self.records = {name: Record(self.size) for name in ("read", "other read", "write", "atomic")}
            for access in self.pending:
                self.remember(access)
            self.pending, self.pending_lanes = [], 0
        return self.records

    def remember(self, access: Access) -> None:
        records = self.write_out()
        record = records[access.kind]
        if access.kind != "read":
            record.put(access)
            return
        # Keep two different readers of each element: a writer can be at most one of them.
        before = np.broadcast_to(gather(record.who, access.offset), access.lanes)
        moved = (before >= 0) & (before != access.who)
        if moved.any():
            records["other read"].copy_from(record, np.unique(per_lane(access.offset, access.lanes)[moved]))
        record.put(access)
        displaced = record.displaced(access)
        if displaced.size:
            records["other read"].put(access.part(displaced))

    def conflicts(self, access: Access, same_line: Callable, same_epoch: Callable) -> list[Conflict]:
        """Earlier accesses that nothing orders before this one.

        ``same_line`` and ``same_epoch`` tell, for earlier times, whether they belong to the access's own statement,
        and to the time since the last grid-wide barrier.
        """
        records = self.write_out()
        found = (
            self._against(records[name], name, access, same_line, same_epoch) for name in AGAINST[access.kind]
        )
        return [conflict for conflict in found if conflict is not None]

    def _against(
        self, record: Record, name: str, access: Access, same_line: Callable, same_epoch: Callable
    ) -> Conflict | None:
        before = np.broadcast_to(gather(record.who, access.offset), access.lanes)
        lanes = np.flatnonzero((before >= 0) & (before != access.who))
        if not lanes.size:
            return None
        offset = dense(access.offset)
        where = offset[lanes] if offset.__class__ is np.ndarray else np.full(len(lanes), offset)
        before, me, time = before[lanes], access.who[lanes], record.time[where]
        same_block = before // self.threads == me // self.threads
        in_block = same_block & (record.interval[where] == _pick(access.interval, lanes))
        same_warp = (before % self.threads) // WARP_SIZE == (me % self.threads) // WARP_SIZE
        # only a syncwarp that both take part in orders them
        in_step = np.minimum(access.synced(before), access.synced(me)) > record.clock[where]
        if "read" in name:
            # one statement of a warp reads before it writes
            in_step = in_step | same_line(time, access)
        unordered = (in_block & ~(same_warp & in_step)) | (~same_block & same_epoch(time))
        if not unordered.any():
            return None
        return Conflict(name, lanes[unordered], before[unordered], time[unordered])


def _pick(values: Any, lanes: np.ndarray) -> Any:
    return values[lanes] if np.ndim(values) else values
