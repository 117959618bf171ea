"""The race detector.

Two accesses to an element by different threads race when one of them is a plain write and nothing orders them: no
barrier of their block between them, no ``syncwarp`` that both took part in if they are of one warp, no grid-wide
barrier, and no atomic operation on a common element after the one and before the other.
"""

from __future__ import annotations

from array import array as growing
from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.compute.emulator import faults
from labkit.compute.emulator.geometry import Launch
from labkit.compute.emulator.group import Group
from labkit.compute.emulator.memory import Array, gather, per_lane
from labkit.compute.emulator.order import AtomicOrder
from labkit.compute.emulator.program import Site
from labkit.compute.emulator.shadow import Access, Conflict, Shadow

VERBS = {"read": "reads", "other read": "reads", "write": "writes", "atomic": "updates"}
REMEDY = (
    "Nothing decides which comes first: put cuda.syncthreads() between them (for threads of one block), or use an "
    "atomic operation or another launch (between blocks)."
)
HARMLESS = "Both write the same value, so the result does not depend on the order."


class RaceDetector:
    """Watches the accesses of one launch; ``report(kind, line, message, severity, *key)`` takes what it finds."""

    def __init__(self, sites: list[Site], threads_per_block: int, report: Callable[..., None]):
        self.sites = sites
        self.threads = threads_per_block
        self.report = report
        self.shadows: dict[Any, Shadow] = {}
        self.atomics = AtomicOrder(threads_per_block)
        self.access_sites = growing("q")
        self.access_lines = growing("q")
        self.access_epochs = growing("q")
        self.grid_epoch = 0

    def shadow(self, array: Array) -> Shadow:
        """The history of an array: two arguments that are the same memory share it."""
        if array.space == "shared":
            if array.shadow is None:
                array.shadow = Shadow(array.flat.size, self.threads)
            return array.shadow
        shadow = self.shadows.get(array.address)
        if shadow is None or shadow.size < array.flat.size:
            shadow = self.shadows[array.address] = Shadow(array.flat.size, self.threads)
        return shadow

    def watch(self, kind: str, array: Array, offset: Any, group: Group, site: int, value: Any = None) -> None:
        """Check an access against the array's history and remember it."""
        if array.space in ("constant", "local") or array.aliased:
            return
        shadow = self.shadow(array)
        access = self.describe(kind, offset, group, site)
        if kind == "atomic":
            self.atomics.add(array.serial if array.space == "shared" else array.address, access)
        if shadow.note(access):
            return
        for conflict in shadow.conflicts(access, self.same_line, self.same_epoch):
            self.judge(conflict, access, array, group, value)
        shadow.remember(access)
        if kind == "write":
            self.collisions(shadow, access, array, group, value)

    def describe(self, kind: str, offset: Any, group: Group, site: int) -> Access:
        time = len(self.access_sites)
        self.access_sites.append(site)
        self.access_lines.append(self.sites[site].line)
        self.access_epochs.append(self.grid_epoch)
        standing = group.run.notes["standing"]  # type: ignore[attr-defined]
        who, interval = standing.of(group)
        return Access(
            kind, offset, time, site, who, interval, standing.clock, standing.synced, group.lanes is None
        )

    def same_line(self, times: np.ndarray, access: Access) -> np.ndarray:
        return np.frombuffer(self.access_lines, np.int64)[times] == self.sites[access.site].line

    def same_epoch(self, times: np.ndarray) -> np.ndarray:
        return np.frombuffer(self.access_epochs, np.int64)[times] == self.grid_epoch

    def collisions(self, shadow: Shadow, access: Access, array: Array, group: Group, value: Any) -> None:
        """Lanes of one instruction that write one element: the record keeps the last."""
        record = shadow.write_out()["write"]
        lost = record.displaced(access)
        if not lost.size:
            return
        winners = gather(record.who, access.offset)
        winners = winners[lost] if np.ndim(winners) else np.full(len(lost), winners)
        values = per_lane(value, access.lanes).astype(array.flat.dtype)
        differ = values[lost] != values[np.searchsorted(access.who, winners)]
        first = int(np.argmax(differ))
        self.race(
            "write",
            access,
            array,
            group,
            int(lost[first]),
            int(winners[first]),
            access.site,
            not differ.any(),
        )

    def judge(self, conflict: Conflict, access: Access, array: Array, group: Group, value: Any) -> None:
        """Drop what atomics order; of the rest report the first, or a note when only equal values were written."""
        me = access.who[conflict.lanes]
        left = ~self.atomics.ordered(conflict.who, conflict.time, me, access.time)
        if not left.any():
            return
        lanes, who, time = conflict.lanes[left], conflict.who[left], conflict.time[left]
        first, harmless = 0, False
        if conflict.how == access.kind == "write":
            before = np.broadcast_to(gather(array.flat, access.offset), access.lanes)[lanes]
            differ = per_lane(value, access.lanes)[lanes].astype(array.flat.dtype) != before
            first, harmless = int(np.argmax(differ)), not differ.any()
        site = self.access_sites[int(time[first])]
        self.race(conflict.how, access, array, group, int(lanes[first]), int(who[first]), site, harmless)

    def race(
        self,
        how: str,
        access: Access,
        array: Array,
        group: Group,
        lane: int,
        other: int,
        site: int,
        harmless: bool,
    ) -> None:
        here, there = self.sites[access.site], self.sites[site]
        element = int(per_lane(access.offset, access.lanes)[lane])
        first = faults.thread_in_words(*group.locate(lane))
        second = faults.thread_in_words(*locate(other, group.chunk.launch))
        place = "as well" if there.line == here.line else f"in line {there.line} ({there.text})"
        # a plain read of what others update atomically is how loops wait for flags
        severity = "note" if harmless else "warning" if (how, access.kind) == ("atomic", "read") else "error"
        self.report(
            "race",
            here.line,
            f"{faults.where(here)}: {first} {VERBS[access.kind]} {here.operand}[{index_of(element, array)}], which "
            f"{second} {VERBS[how]} {place}. {HARMLESS if harmless else REMEDY}",
            severity,
            *sorted((here.line, there.line)),
            severity,
        )


def locate(who: int, launch: Launch) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Block and thread of a thread numbered over the grid."""
    block, thread = divmod(who, launch.threads_per_block)
    gx, gy, _ = launch.grid
    bx, by, _ = launch.block
    return (block % gx, block // gx % gy, block // (gx * gy)), (
        thread % bx,
        thread // bx % by,
        thread // (bx * by),
    )


def index_of(element: int, array: Array) -> str:
    """The index, as written in the source, of an element of an array's memory."""
    rest = element % array.copy_size if array.copy_size else element
    index = {}
    for axis in sorted(range(len(array.steps)), key=lambda k: -array.steps[k]):
        step = array.steps[axis]
        index[axis] = rest // step if step else 0
        rest -= index[axis] * step
    return ", ".join(str(index[axis]) for axis in sorted(index))
