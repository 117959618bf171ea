"""The sanitizer: an observer that reports what a launch does wrong while the kernel runs on.

Known misses: races through overlapping but different views of one buffer; of many readers of an element only two are
remembered; an order that an atomic operation gives is believed whatever the fences; several dynamic shared arrays
of one block are not followed; what another kernel leaves uninitialised is not known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.compute.emulator import faults
from labkit.compute.emulator.affine import dense
from labkit.compute.emulator.executor import ChunkRun, Group
from labkit.compute.emulator.findings import Finding, from_error, in_order
from labkit.compute.emulator.geometry import WARP_SIZE, Launch
from labkit.compute.emulator.kernel import EmulatedKernel, run
from labkit.compute.emulator.limits import launch_shape
from labkit.compute.emulator.memory import Array, Memory, gather, per_lane, scatter
from labkit.compute.emulator.program import Block, Site
from labkit.compute.emulator.races import RaceDetector, index_of
from labkit.errors import KernelError


class SanitizedRun(ChunkRun):
    """A chunk that counts the barriers each of its blocks has passed."""

    memory: SanitizedMemory

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        chunk, launch = self.chunk, self.chunk.launch
        self.warps_per_block = -(-launch.threads_per_block // WARP_SIZE)
        self.interval = np.zeros(chunk.blocks, np.int32)
        self.warp_interval = np.zeros(chunk.blocks * self.warps_per_block, np.int32)
        x, y, _ = launch.grid
        bx, by, bz = (dense(b) for b in chunk.block)
        thread = (bx + x * (by + y * bz)) * launch.threads_per_block + dense(chunk.lane_in_block)
        self.who = per_lane(thread, chunk.lanes)
        self.inside = per_lane(chunk.lane_in_block, chunk.lanes)

    def passed(self, block: Block, blocks: np.ndarray | None) -> None:
        self.interval[slice(None) if blocks is None else blocks] += 1
        if block.scope == "grid":
            self.memory.races.grid_epoch += 1
        if blocks is None:
            for array in self.arrays:
                if array is not None and array.shadow is not None:
                    array.shadow.forget()

    def standing(self, group: Group) -> tuple[np.ndarray, Any, Any]:
        """Thread numbers over the grid, barriers passed by the block, and ``syncwarp`` calls by the warp."""
        who = self.who if group.lanes is None else self.who.take(group.lanes)
        interval: Any = self.interval[0]
        if (self.interval != interval).any():
            interval = self.interval[group.blocks()]
        warp: Any = self.warp_interval[0]
        if (self.warp_interval != warp).any():
            warp = self.warp_interval[self.warps(group)]
        return who, interval, warp

    def warps(self, group: Group) -> np.ndarray:
        inside = self.inside if group.lanes is None else self.inside.take(group.lanes)
        return group.blocks() * self.warps_per_block + inside // WARP_SIZE

    def fail_barrier(self, waiting: Group, group: Group, lane: int, instead: str) -> None:
        """Report, and go on as if the barrier had let its threads through."""
        try:
            super().fail_barrier(waiting, group, lane, instead)
        except KernelError as error:
            self.memory.mistake(error)


class SanitizedMemory(Memory):
    """Memory that checks every access; with ``strict``, mistakes end the launch as they end a plain one."""

    def __init__(self, sites: list[Site], threads_per_block: int, strict: bool):
        super().__init__(sites)
        self.strict = strict
        self.found: dict[tuple, Finding] = {}
        self.races = RaceDetector(sites, threads_per_block, self.report)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return in_order(list(self.found.values()))

    def report(self, kind: str, line: int, message: str, severity: str, *key: Any) -> None:
        self.found.setdefault((kind, line, *key), Finding(kind, line, message, severity))

    def mistake(self, error: KernelError, *key: Any) -> None:
        if self.strict:
            raise error
        self.report(error.kind, error.line or 0, str(error), "error", *key)

    # -- accesses -------------------------------------------------------------------------------------------------

    def load(self, array: Array, index: tuple, group: Group, site: int) -> Any:
        offset, good = self.checked_offset(array, index, group, site, "reads")
        if good is not None:
            values = np.zeros(group.n, array.flat.dtype)
            values[good] = array.flat[offset]
            return values
        self.check_initialized(array, offset, group, site)
        self.races.watch("read", array, offset, group, site)
        return gather(array.flat, offset)

    def store(self, array: Array, index: tuple, value: Any, group: Group, site: int) -> None:
        offset, good = self.checked_offset(array, index, group, site, "writes")
        if good is not None:
            array.flat[offset] = per_lane(value, group.n)[good]
            return
        if array.space in ("shared", "local"):
            scatter(initialization(array), offset, np.True_)
        self.races.watch("write", array, offset, group, site, value)
        scatter(array.flat, offset, value)

    def atomic(
        self, name: str, array: Array, index: tuple, operands: tuple, group: Group, site: int, needed: bool
    ) -> Any:
        offset, good = self.checked_offset(array, index, group, site, "updates")
        if good is not None:
            return np.zeros(group.n, array.flat.dtype)
        self.check_initialized(array, offset, group, site)
        self.races.watch("atomic", array, offset, group, site)
        return super().atomic(name, array, index, operands, group, site, needed)

    def checked_offset(
        self, array: Array, index: tuple, group: Group, site: int, verb: str
    ) -> tuple[Any, np.ndarray | None]:
        """Offsets; when lanes are out of bounds, that is reported and the lanes that are not are listed."""
        try:
            return self.offset(array, index, group, site, verb), None
        except KernelError as error:
            self.mistake(error, site)
        good = np.ones(group.n, bool)
        numbers = [per_lane(key, group.n).astype(np.int64) for key in index]
        for number, length in zip(numbers, array.shape, strict=True):
            good &= (number >= -length) & (number < length)
        offset = np.zeros(group.n, np.int64)
        for number, length, step in zip(numbers, array.shape, array.steps, strict=True):
            offset += np.where(number < 0, number + length, number) * step
        if array.copy_size:
            copy = group.block_slot() if array.space == "shared" else group.lane_slot()
            offset += dense(copy) * array.copy_size
        return offset[good], np.flatnonzero(good)

    def check_initialized(self, array: Array, offset: Any, group: Group, site: int) -> None:
        if array.space not in ("shared", "local") or array.aliased:
            return
        ready = gather(initialization(array), offset)
        if np.all(ready):
            return
        lane = int(np.argmin(np.broadcast_to(ready, group.n)))
        place = self.sites[site]
        element = index_of(int(per_lane(offset, group.n)[lane]), array)
        thread = faults.thread_in_words(*group.locate(lane))
        self.report(
            "uninitialized",
            place.line,
            f"{faults.where(place)}: {thread} reads {place.operand}[{element}] of {array.space} memory, which no "
            "thread has written yet: what is there is left over from earlier work. Write it first, and put "
            "cuda.syncthreads() between the writes and the reads.",
            "error",
            site,
        )

    def wrapped(self, array: Array, key: np.ndarray, axis: int, group: Group, site: int) -> None:
        place = self.sites[site]
        lane = int(np.argmax(key < 0))
        thread = faults.thread_in_words(*group.locate(lane))
        self.report(
            "wraparound",
            place.line,
            f"{faults.where(place)}: {thread} uses the negative index {int(key[lane])} of {place.operand}, which "
            f"counts from the end, as in Python: it reaches element {int(key[lane]) + array.shape[axis]}. If that is "
            "not meant, test for indices below 0.",
            "note",
            site,
        )

    def absent_lane(self, group: Group, absent: np.ndarray, target: np.ndarray, site: int) -> None:
        place = self.sites[site]
        lane = int(np.argmax(absent))
        thread = faults.thread_in_words(*group.locate(lane))
        self.report(
            "inactive-lane",
            place.line,
            f"{faults.where(place)}: {thread} asks lane {int(target[lane])} of its warp, which does not take part: it "
            "has returned, went another way at an 'if', or the block ends before it. What arrives is undefined: let "
            "all lanes of the warp reach this line, or ask only lanes that do.",
            "error",
            site,
        )

    def syncwarp(self, group: Group, mask: Any) -> None:
        run: Any = group.run
        run.warp_interval[np.unique(run.warps(group))] += 1


def initialization(array: Array) -> np.ndarray:
    """For each element of a shared or local array whether it has been written."""
    if array.initialized is None:
        array.initialized = np.zeros(array.flat.size, bool)
    return array.initialized


def sanitized(
    kernel: EmulatedKernel,
    shape: Launch,
    arguments: tuple,
    *,
    strict: bool,
    sharedmem: int = 0,
    step_budget: int | None = None,
) -> tuple[Finding, ...]:
    """Run a launch with the sanitizer on and return the findings, worst first.

    Without ``strict`` the launch goes on where it can, and mistakes are findings too; with it they are raised.
    """
    memories: list[SanitizedMemory] = []

    def memory(sites: list[Site]) -> SanitizedMemory:
        memories.append(SanitizedMemory(sites, shape.threads_per_block, strict))
        return memories[-1]

    extra: list[Finding] = []
    try:
        run(
            kernel,
            shape,
            arguments,
            sharedmem=sharedmem,
            step_budget=step_budget,
            memory_class=memory,
            run_class=SanitizedRun,
        )
    except KernelError as error:
        if strict:
            raise
        extra.append(from_error(error))
    return in_order([*(f for m in memories for f in m.findings), *extra])


def launch(
    kernel: EmulatedKernel,
    grid: Any,
    block: Any,
    arguments: tuple,
    *,
    sharedmem: int = 0,
    step_budget: int | None = None,
    sanitize: bool = True,
) -> tuple[Finding, ...]:
    """Launch a kernel on the emulator and return the findings, worst first.

    Raises
    ------
    KernelError
        For what ends a plain launch too: out of bounds, divergent barriers, endless loops, launch limits.
    """
    shape = launch_shape(grid, block, kernel.source.name)
    if sanitize:
        return sanitized(kernel, shape, arguments, strict=True, sharedmem=sharedmem, step_budget=step_budget)
    run(kernel, shape, arguments, sharedmem=sharedmem, step_budget=step_budget)
    return ()
