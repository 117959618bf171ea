"""The sanitizer: an observer that reports what a launch does wrong while the kernel runs on.

Known misses: races through overlapping but different views of one buffer; of many readers of an element only two are
remembered; an order that an atomic operation gives is believed whatever the fences; two lanes that both pass syncwarp
are in order even where their masks differ; several dynamic shared arrays of one block are not followed; what another
kernel leaves uninitialised is not known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.compute.emulator import faults
from labkit.compute.emulator.affine import dense
from labkit.compute.emulator.findings import Finding, from_error, in_order
from labkit.compute.emulator.geometry import Launch
from labkit.compute.emulator.group import Group
from labkit.compute.emulator.kernel import EmulatedKernel, run
from labkit.compute.emulator.limits import launch_shape
from labkit.compute.emulator.memory import Array, gather, per_lane, scatter
from labkit.compute.emulator.observers import ObservedRun, Observer, observed
from labkit.compute.emulator.program import Block, Site
from labkit.compute.emulator.races import RaceDetector, index_of
from labkit.errors import KernelError

WRITE_FIRST = {
    "shared": "Write it first, and put cuda.syncthreads() between the writes and the reads.",
    "local": "Write it first.",
    "global": "Copy data to the device array, or write it in an earlier launch.",
}


class Standing:
    """Where the threads of a chunk stand: barriers passed by each block, the last ``syncwarp`` of each thread."""

    def __init__(self, run: ObservedRun):
        chunk, launch = run.chunk, run.chunk.launch
        self.interval = np.zeros(chunk.blocks, np.int32)
        self.clock = 0
        self.last = np.zeros(chunk.lanes, np.int32)
        x, y, _ = launch.grid
        bx, by, bz = (dense(b) for b in chunk.block)
        thread = (bx + x * (by + y * bz)) * launch.threads_per_block + dense(chunk.lane_in_block)
        self.who = per_lane(thread, chunk.lanes)

    def of(self, group: Group) -> tuple[np.ndarray, Any]:
        """Thread numbers over the grid, and barriers passed by the block."""
        who = self.who if group.lanes is None else self.who.take(group.lanes)
        interval: Any = self.interval[0]
        if (self.interval != interval).any():
            interval = self.interval[group.blocks()]
        return who, interval

    def syncwarp(self, group: Group) -> None:
        """The group's lanes take part in a ``syncwarp``."""
        self.clock += 1
        self.last[slice(None) if group.lanes is None else group.lanes] = self.clock

    def synced(self, who: np.ndarray) -> np.ndarray:
        """The last ``syncwarp`` of threads, by their numbers over the grid; arbitrary for those of other chunks."""
        # a chunk's blocks follow each other in the grid
        return self.last.take(who - self.who[0], mode="clip")


class Sanitizer(Observer):
    """Checks every access; with ``strict``, mistakes end the launch as they end a plain one."""

    races: RaceDetector

    def __init__(self, strict: bool):
        self.strict = strict
        self.found: dict[tuple, Finding] = {}

    @property
    def findings(self) -> tuple[Finding, ...]:
        return in_order(list(self.found.values()))

    def report(self, kind: str, line: int, message: str, severity: str, *key: Any) -> None:
        self.found.setdefault((kind, line, *key), Finding(kind, line, message, severity))

    def mistake(self, error: KernelError, *key: Any) -> None:
        if self.strict:
            raise error
        self.report(error.kind, error.line or 0, str(error), "error", *key)

    def begin(self, sites: list[Site], shape: Launch) -> None:
        self.sites = sites
        self.races = RaceDetector(sites, shape.threads_per_block, self.report)

    def chunk(self, run: ObservedRun) -> None:
        run.notes["standing"] = Standing(run)

    def barrier(self, run: ObservedRun, block: Block, blocks: np.ndarray | None) -> None:
        run.notes["standing"].interval[slice(None) if blocks is None else blocks] += 1
        if block.scope == "grid":
            self.races.grid_epoch += 1
        if blocks is None:
            for array in run.arrays:
                if array is not None and array.shadow is not None:
                    array.shadow.forget()

    def access(self, kind: str, array: Array, offset: Any, group: Group, site: int, value: Any) -> None:
        tracked = array.space in ("shared", "local") or array.initialized is not None
        if tracked and not array.aliased:
            if kind == "write":
                scatter(initialization(array), offset, np.True_)
            else:
                self.check_initialized(array, offset, group, site)
        self.races.watch(kind, array, offset, group, site, value)

    def check_initialized(self, array: Array, offset: Any, group: Group, site: int) -> None:
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
            f"thread has written yet: what is there is left over from earlier work. {WRITE_FIRST[array.space]}",
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

    def syncwarp(self, group: Group) -> None:
        group.run.notes["standing"].syncwarp(group)  # type: ignore[attr-defined]


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
    sanitizer = Sanitizer(strict)
    try:
        observed(kernel, shape, arguments, [sanitizer], sharedmem=sharedmem, step_budget=step_budget)
    except KernelError as error:
        if strict:
            raise
        sanitizer.found[("end",)] = from_error(error)
    return sanitizer.findings


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
