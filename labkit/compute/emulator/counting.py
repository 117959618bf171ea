"""The counter: an observer that counts, line by line, what the hardware would do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.compute.emulator import traffic
from labkit.compute.emulator.affine import Affine, dense
from labkit.compute.emulator.counts import Counts
from labkit.compute.emulator.geometry import WARP_SIZE, Launch
from labkit.compute.emulator.group import Group
from labkit.compute.emulator.l2 import L2
from labkit.compute.emulator.memory import Array, per_lane
from labkit.compute.emulator.observers import Observer
from labkit.compute.emulator.program import Block, Site
from labkit.compute.emulator.warp import warps_of
from labkit.errors import KernelError

FLOPS = {"f2": "flops_fp16", "f4": "flops_fp32", "f8": "flops_fp64"}
# Instructions that only name a value or wait: the compiler makes none of them, or counts them elsewhere.
NOT_COUNTED = {"move", "barrier"}
Line = int | str


class Counter(Observer):
    """Counts a launch. ``l2_bytes`` is the size of the card's L2 cache, for the model of DRAM traffic."""

    def __init__(self, l2_bytes: int):
        self.l2 = L2(l2_bytes)
        self.by_site: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.runs_of_blocks: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
        self.program_blocks: dict[int, Block] = {}

    def begin(self, sites: list[Site], shape: Launch) -> None:
        self.sites = sites
        threads_per_warp = min(WARP_SIZE, shape.threads_per_block)
        x, y, _ = shape.block
        whole_warps = shape.threads_per_block % WARP_SIZE == 0
        # Where this holds, all warps of a block have the same pattern of coordinates.
        self.uniform = whole_warps and (
            x % WARP_SIZE == 0 or (WARP_SIZE % x == 0 and y % (WARP_SIZE // x) == 0)
        )
        self.first_lanes = threads_per_warp

    # -- instructions -----------------------------------------------------------------------------------------------

    def block(self, block: Block, group: Group, condition: Any) -> None:
        self.program_blocks[block.pc] = block
        seen = self.runs_of_blocks[block.pc]
        warps = self.active_warps(group)
        seen[0] += group.n
        seen[1] += warps
        if block.end == "branch" and condition.__class__ is np.ndarray:
            seen[2] += self.parted(group, condition)

    def active_warps(self, group: Group) -> int:
        """Warps with at least one lane in the group."""
        if group.lanes is None:
            return group.chunk.blocks * -(-group.chunk.launch.threads_per_block // WARP_SIZE)
        return len(warps_of(group).grouping.starts)

    @staticmethod
    def parted(group: Group, condition: np.ndarray) -> int:
        """Warps whose lanes do not all go the same way."""
        warps = warps_of(group)
        starts = warps.grouping.starts
        taken = np.add.reduceat(condition.astype(np.int64), starts)
        everyone = np.diff(np.r_[starts, group.n])
        return int(np.count_nonzero((taken > 0) & (taken < everyone)))

    # -- memory -------------------------------------------------------------------------------------------------------

    def access(self, kind: str, array: Array, offset: Any, group: Group, site: int, value: Any) -> None:
        count = self.by_site[site]
        requests = self.active_warps(group)
        if kind == "atomic":
            count["atomic_requests"] += requests
            count["atomic_conflicts"] += traffic.waiting_lanes(
                warps_of(group).grouping, per_lane(offset, group.n)
            )
        if array.space == "local":
            count["local_requests"] += requests
        elif array.space == "shared":
            if kind != "atomic":
                count[f"shared_{'load' if kind == 'read' else 'store'}_requests"] += requests
            count["shared_bank_conflicts"] += self.bank_conflicts(array, offset, group)
        else:
            self.global_access(kind, array, offset, group, count, requests)

    def global_access(
        self, kind: str, array: Array, offset: Any, group: Group, count: dict[str, int], requests: int
    ) -> None:
        touched = self.sectors(array, offset, group)
        if kind != "atomic":
            way = "load" if kind == "read" else "store"
            count[f"global_{way}_requests"] += requests
            count[f"global_{way}_sectors"] += touched
        if kind != "write":
            count["dram_read_bytes"] += self.l2.read(array, offset)
        if kind != "read":
            count["dram_write_bytes"] += self.l2.write(array, offset)

    def sectors(self, array: Array, offset: Any, group: Group) -> int:
        size = array.flat.itemsize
        pattern = self.pattern(offset, group, array.flat.strides[0])
        if pattern is not None:
            relative, starts = pattern
            shifts = (starts + array.origin) % traffic.SECTOR_BYTES
            residues, counts = np.unique(shifts, return_counts=True)
            found = (traffic.pattern_sectors(relative, size, int(r)) for r in residues)
            return sum(s * int(c) for s, c in zip(found, counts, strict=True))
        address = per_lane(offset, group.n) * array.flat.strides[0] + array.origin
        return traffic.sectors(warps_of(group).grouping, address, size)

    def bank_conflicts(self, array: Array, offset: Any, group: Group) -> int:
        size, step = array.flat.itemsize, array.flat.strides[0]
        pattern = self.pattern(offset, group, step)
        if pattern is not None and step % traffic.BANK_BYTES == 0:
            relative, starts = pattern
            return traffic.pattern_conflicts(relative, size, 0) * len(starts)
        inside = per_lane(offset, group.n) % max(array.copy_size, 1)
        warps = warps_of(group)
        return traffic.conflicts(warps.warp, warps.lane, inside * step, size)

    def pattern(self, offset: Any, group: Group, step: int) -> tuple[tuple[int, ...], np.ndarray] | None:
        """Byte offsets of a warp's lanes from its first one, alike for all warps, and each warp's first byte.

        None when the lanes have no common pattern.
        """
        if group.lanes is not None or not self.uniform:
            return None
        if offset.__class__ is not Affine:
            if offset.__class__ is np.ndarray:
                return None
            return (0,) * self.first_lanes, np.full(group.n // WARP_SIZE, int(offset) * step)
        lanes = warp_shape(group.chunk.launch)
        relative = np.zeros((), np.int64)
        for count, stride in zip(lanes, offset.strides[3:], strict=True):
            relative = np.add.outer(relative, np.arange(count) * stride)
        return tuple((relative.reshape(-1) * step).tolist()), first_lanes(offset, lanes) * step

    def mistake(self, error: KernelError, *key: Any) -> None:
        """Counting goes on; whether the launch does is for others to say."""

    # -- results ------------------------------------------------------------------------------------------------------

    def lines(self, kernel: str) -> dict[Line, Counts]:
        """Counters by source line; lines of the device functions that ``kernel`` calls are ``"name:line"``."""
        table: dict[Line, dict[str, int]] = defaultdict(lambda: defaultdict(int))

        def row_of(function: str, line: int) -> dict[str, int]:
            return table[line if function == kernel else f"{function}:{line}"]

        for site, counts in self.by_site.items():
            row = row_of(self.sites[site].function, self.sites[site].line)
            for key, value in counts.items():
                row[key] += value
        for pc, (threads, warps, parted) in self.runs_of_blocks.items():
            self._instructions(row_of, self.program_blocks[pc], threads, warps, parted)
        return {line: Counts(table[line]) for line in sorted(table, key=_place)}

    @staticmethod
    def _instructions(
        row_of: Callable[[str, int], dict[str, int]], block: Block, threads: int, warps: int, parted: int
    ) -> None:
        for step in block.instructions:
            if step.kind in NOT_COUNTED:
                continue
            row = row_of(step.function, step.line)
            row["thread_instructions"] += threads
            row["warp_instructions"] += warps
            if step.kind in FLOPS:
                row[FLOPS[step.kind]] += threads * step.operations
            elif step.kind == "int":
                row["int_ops"] += threads
        row = row_of(block.function, block.branch_line)
        if block.end == "branch":
            row["branches"] += warps
            row["divergent_branches"] += parted
            row["thread_instructions"] += threads
            row["warp_instructions"] += warps
        elif block.end == "barrier":
            row["barriers"] += warps
            row["thread_instructions"] += threads
            row["warp_instructions"] += warps


def warp_shape(launch: Launch) -> tuple[int, int, int]:
    """The box (z, y, x) of threads that one warp covers, where every warp covers the same."""
    x = launch.block[0]
    if x % WARP_SIZE == 0:
        return 1, 1, WARP_SIZE
    return 1, WARP_SIZE // x, x


def first_lanes(offset: Affine, lanes: tuple[int, int, int]) -> np.ndarray:
    """The offset of each warp's first lane, over a whole chunk."""
    shape = (*offset.shape[:3], *(n // m for n, m in zip(offset.shape[3:], lanes, strict=True)))
    strides = (*offset.strides[:3], *(s * m for s, m in zip(offset.strides[3:], lanes, strict=True)))
    return per_lane(dense(Affine(offset.base, strides, shape)), int(np.prod(shape)))


def _place(line: Line) -> tuple[str, int]:
    """Order of lines: the kernel's own first, then device functions by name."""
    if isinstance(line, int):
        return "", line
    name, number = line.split(":")
    return name, int(number)
