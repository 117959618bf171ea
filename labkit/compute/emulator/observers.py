"""Where observers of a launch come in: memory and runs that tell them what happens.

A plain launch uses neither; an observed one pays for what its observers ask for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labkit.compute.emulator.affine import dense
from labkit.compute.emulator.executor import ChunkRun
from labkit.compute.emulator.geometry import Launch
from labkit.compute.emulator.group import Group
from labkit.compute.emulator.kernel import EmulatedKernel, run
from labkit.compute.emulator.memory import Array, Memory, from_the_end, gather, per_lane, scatter
from labkit.compute.emulator.program import Block, Site
from labkit.errors import KernelError


class Observer:
    """Sees a launch; every method may be overridden and does nothing by itself."""

    def begin(self, sites: list[Site], shape: Launch) -> None:
        """A launch starts; ``sites`` are its places in the source."""

    def chunk(self, run: ObservedRun) -> None:
        """A chunk of blocks starts."""

    def block(self, block: Block, group: Group, condition: Any) -> None:
        """A group has run a basic block; ``condition`` is what its branch will test."""

    def access(self, kind: str, array: Array, offset: Any, group: Group, site: int, value: Any) -> None:
        """Lanes are about to read, write or atomically update elements (``kind`` read, write or atomic)."""

    def barrier(self, run: ObservedRun, block: Block, blocks: np.ndarray | None) -> None:
        """Thread blocks (a mask over the chunk's, None for all) have passed a barrier."""

    def syncwarp(self, group: Group) -> None:
        """Lanes have met at ``syncwarp``."""

    def wrapped(self, array: Array, key: np.ndarray, axis: int, group: Group, site: int) -> None:
        """Some lanes used a negative index."""

    def absent_lane(self, group: Group, absent: np.ndarray, target: np.ndarray, site: int) -> None:
        """Some lanes asked a lane of their warp that is not there."""

    def mistake(self, error: KernelError, *key: Any) -> None:
        """Something that ends a plain launch; raise it to end this one too."""
        raise error


class ObservedMemory(Memory):
    """Memory that tells observers of every access, and leaves out the lanes that are out of bounds."""

    def __init__(self, sites: list[Site], observers: Sequence[Observer]):
        super().__init__(sites)
        self.observers = observers

    def tell(self, kind: str, array: Array, offset: Any, group: Group, site: int, value: Any = None) -> None:
        for observer in self.observers:
            observer.access(kind, array, offset, group, site, value)

    def load(self, array: Array, index: tuple, group: Group, site: int) -> Any:
        offset, good = self.checked_offset(array, index, group, site, "reads")
        if good is not None:
            values = np.zeros(group.n, array.flat.dtype)
            values[good] = array.flat[offset]
            return values
        self.tell("read", array, offset, group, site)
        return gather(array.flat, offset)

    def store(self, array: Array, index: tuple, value: Any, group: Group, site: int) -> None:
        offset, good = self.checked_offset(array, index, group, site, "writes")
        if good is not None:
            array.flat[offset] = per_lane(value, group.n)[good]
            return
        self.tell("write", array, offset, group, site, value)
        scatter(array.flat, offset, value)

    def atomic(
        self, name: str, array: Array, index: tuple, operands: tuple, group: Group, site: int, needed: bool
    ) -> Any:
        offset, good = self.checked_offset(array, index, group, site, "updates")
        if good is not None:
            return np.zeros(group.n, array.flat.dtype)
        self.tell("atomic", array, offset, group, site)
        return self.update(name, array, offset, operands, group, needed)

    def checked_offset(
        self, array: Array, index: tuple, group: Group, site: int, verb: str
    ) -> tuple[Any, np.ndarray | None]:
        """Offsets; when lanes are out of bounds, that is reported and the lanes that are not are listed."""
        try:
            return self.offset(array, index, group, site, verb), None
        except KernelError as error:
            for observer in self.observers:
                observer.mistake(error, site)
        good = np.ones(group.n, bool)
        offset = np.zeros(group.n, np.int64)
        for key, length, step in zip(index, array.shape, array.steps, strict=True):
            number, there = from_the_end(per_lane(key, group.n), length)
            good &= there
            offset += np.where(number < 0, number + length, number) * step
        if array.copy_size:
            offset += dense(self.copy_number(array, group)) * array.copy_size
        return offset[good], np.flatnonzero(good)

    def wrapped(self, array: Array, key: np.ndarray, axis: int, group: Group, site: int) -> None:
        for observer in self.observers:
            observer.wrapped(array, key, axis, group, site)

    def absent_lane(self, group: Group, absent: np.ndarray, target: np.ndarray, site: int) -> None:
        for observer in self.observers:
            observer.absent_lane(group, absent, target, site)

    def syncwarp(self, group: Group, mask: Any) -> None:
        for observer in self.observers:
            observer.syncwarp(group)


class ObservedRun(ChunkRun):
    """A chunk that tells observers of every block and barrier. ``notes`` is theirs."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        memory = self.memory
        assert isinstance(memory, ObservedMemory)
        self.observers = memory.observers
        self.notes: dict[str, Any] = {}
        for observer in self.observers:
            observer.chunk(self)

    def execute(self, block: Block, group: Group) -> Any:
        condition = block.run(group)
        for observer in self.observers:
            observer.block(block, group, condition)
        return condition

    def passed(self, block: Block, blocks: np.ndarray | None) -> None:
        for observer in self.observers:
            observer.barrier(self, block, blocks)

    def fail_barrier(self, waiting: Group, group: Group, lane: int, instead: str) -> None:
        """Report; if no observer raises, go on as if the barrier had let its threads through."""
        try:
            super().fail_barrier(waiting, group, lane, instead)
        except KernelError as error:
            for observer in self.observers:
                observer.mistake(error)


def observed(
    kernel: EmulatedKernel, shape: Launch, arguments: tuple, observers: Sequence[Observer], **options: Any
) -> None:
    """Run a launch with observers; ``options`` are those of :func:`labkit.compute.emulator.kernel.run`."""

    def memory(sites: list[Site]) -> ObservedMemory:
        for observer in observers:
            observer.begin(sites, shape)
        return ObservedMemory(sites, observers)

    run(kernel, shape, arguments, memory_class=memory, run_class=ObservedRun, **options)
