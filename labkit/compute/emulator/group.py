"""A group: lanes that are at the same place of a program and run together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.compute.emulator import faults
from labkit.compute.emulator.affine import Affine, dense
from labkit.compute.emulator.geometry import WARP_SIZE, Dim3
from labkit.compute.emulator.memory import Array
from labkit.compute.emulator.program import Block
from labkit.compute.emulator.runtime import Deferred
from labkit.compute.emulator.warp import Warps

if TYPE_CHECKING:
    from labkit.compute.emulator.executor import ChunkRun


class Group:
    """Lanes of one chunk at the same place. ``lanes`` is None when they are all the chunk's lanes.

    The frame holds one value a register: a scalar (all lanes alike), an array with one element a lane, a progression
    (only when the group is the whole chunk), or a Deferred.
    """

    __slots__ = (
        "arrays",
        "chunk",
        "frame",
        "lanes",
        "memory",
        "n",
        "pc",
        "run",
        "spins",
        "turns",
        "waits_at",
        "warps",
    )

    def __init__(self, run: ChunkRun, pc: int, lanes: np.ndarray | None, frame: list):
        self.run = run
        self.chunk = run.chunk
        self.memory = run.memory
        self.arrays = run.arrays
        self.pc = pc
        self.lanes = lanes
        self.n = run.chunk.lanes if lanes is None else len(lanes)
        self.frame = frame
        self.spins = 0
        self.turns = 0
        self.waits_at: Block | None = None
        self.warps: Warps | None = None

    # -- what generated code asks for -----------------------------------------------------------------------------

    def take(self, deferred: Deferred) -> np.ndarray:
        value = deferred.value
        return dense(value).take(self.lanes)

    def narrow(self, value: Affine | np.int64) -> Any:
        """A value known for the whole chunk, for the lanes of this group."""
        if self.lanes is None or value.__class__ is not Affine:
            return value
        return value.array.take(self.lanes)

    def coordinate(self, attribute: str, axis: int) -> Any:
        return self.narrow(getattr(self.chunk, attribute)[axis])

    def field(self, number: int, name: str) -> Array:
        """One member of a structured array, as an array of its own over the same memory."""
        return self.arrays[number].field(name)

    def extent(self, attribute: str, axis: int) -> np.int64:
        launch = self.chunk.launch
        if attribute == "all":
            return np.int64(launch.grid[axis] * launch.block[axis])
        return np.int64(getattr(launch, attribute)[axis])

    def warp_lane(self) -> Any:
        return self.narrow(self.chunk.lane_in_block) % np.int64(WARP_SIZE)

    def block_slot(self) -> Any:
        return self.narrow(self.chunk.block_slot)

    def lane_slot(self) -> Any:
        return self.narrow(self.chunk.lane)

    def defined(self, value: Any, site: int) -> Any:
        if value is None:
            raise faults.undefined(self.memory.sites[site])
        return value

    # -- what the executor and the messages ask for -----------------------------------------------------------------

    def lane_numbers(self) -> np.ndarray:
        return np.arange(self.n) if self.lanes is None else self.lanes

    def blocks(self) -> np.ndarray:
        """The number, within the chunk, of each lane's block."""
        return self.lane_numbers() // self.chunk.launch.threads_per_block

    def locate(self, position: int) -> tuple[Dim3, Dim3]:
        """Block and thread of the group's ``position``-th lane."""
        return self.chunk.locate(int(self.lanes[position]) if self.lanes is not None else position)

    def part(self, index: np.ndarray, pc: int, live: Iterable[int]) -> Group:
        """The group's lanes at ``index``, on their way to ``pc``, with the registers needed there."""
        full = self.lanes is None
        frame: list[Any] = [None] * len(self.frame)
        for slot in live:
            value = self.frame[slot]
            kind = value.__class__
            if kind is Affine:
                value = Deferred(value)
            elif kind is np.ndarray:
                value = Deferred(value) if full else value.take(index)
            frame[slot] = value
        return Group(self.run, pc, index if self.lanes is None else self.lanes.take(index), frame)

    def written_out(self, slot: int) -> np.ndarray | None:
        """A register as an array over the group's lanes; None when no lane has a value."""
        value = self.frame[slot]
        if value.__class__ is Deferred:
            return self.take(value)
        if value.__class__ is Affine:
            return value.array
        if value is None or value.__class__ is np.ndarray:
            return value
        return np.full(self.n, value)


def merge(groups: list[Group], pc: int, live: Iterable[int]) -> Group:
    """One group of all lanes that have arrived at ``pc``."""
    first = groups[0]
    lanes = np.concatenate([g.lane_numbers() for g in groups])
    order = np.argsort(lanes, kind="stable")
    lanes = lanes[order]
    full = len(lanes) == first.chunk.lanes
    frame: list[Any] = [None] * len(first.frame)
    for slot in live:
        frame[slot] = _common(groups, slot, order, full)
    return Group(first.run, pc, None if full else lanes, frame)


def _common(groups: list[Group], slot: int, order: np.ndarray, full: bool) -> Any:
    values = [g.frame[slot] for g in groups]
    first = values[0]
    if all(v is first for v in values) and first.__class__ is not np.ndarray:
        return first.value if full and first.__class__ is Deferred else first
    if all(isinstance(v, np.generic) and v.dtype.names is None for v in values) and all(
        v == first for v in values
    ):
        return first
    if all(v.__class__ is Deferred and v.value is first.value for v in values):
        return first.value if full else first
    parts = [g.written_out(slot) for g in groups]
    kind = next(p.dtype for p in parts if p is not None)
    full_parts = [np.zeros(g.n, kind) if p is None else p for g, p in zip(groups, parts, strict=True)]
    return np.concatenate(full_parts).take(order)
