"""What the lanes of a warp, or of a block, tell each other without memory: shuffles, votes, matches, counts."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.compute.emulator.affine import dense
from labkit.compute.emulator.geometry import WARP_SIZE
from labkit.compute.emulator.memory import per_lane
from labkit.compute.emulator.traffic import Grouping

if TYPE_CHECKING:
    from labkit.compute.emulator.group import Group

FULL_MASK = np.uint32(0xFFFFFFFF)


class Warps:
    """Where the lanes of a group stand in their warps.

    ``warp`` numbers each lane's warp, ``lane`` is its place 0..31 in it, ``first`` the position in the group of the
    warp's lane 0 when ``complete`` says that every warp is whole; ``table[warp, lane]`` is a position, -1 for absent.
    """

    def __init__(self, group: Group):
        threads = group.chunk.launch.threads_per_block
        per_block = -(-threads // WARP_SIZE)
        inside = per_lane(group.narrow(group.chunk.lane_in_block), group.n)
        self.lane = inside % WARP_SIZE
        self.warp = group.blocks() * per_block + inside // WARP_SIZE
        self.count = group.chunk.blocks * per_block
        self.positions = np.arange(group.n)
        self.complete = group.lanes is None and threads % WARP_SIZE == 0
        self.first = self.positions - self.lane

    @cached_property
    def grouping(self) -> Grouping:
        return Grouping(self.warp)

    def source(self, target: np.ndarray) -> np.ndarray:
        """The position of the lane ``target`` of each lane's own warp; -1 where that lane is not in the group."""
        if self.complete:
            return self.first + target
        table = np.full((self.count, WARP_SIZE), -1)
        table[self.warp, self.lane] = self.positions
        return table[self.warp, target]

    def total(self, weights: np.ndarray) -> np.ndarray:
        """The sum of whole numbers below 2**32 over each warp, one result a warp."""
        return np.bincount(self.warp, weights, self.count).astype(np.int64)


def warps_of(group: Group) -> Warps:
    if group.warps is None:
        group.warps = Warps(group)
    return group.warps


def shuffle(group: Group, mode: str, mask: Any, value: Any, operand: Any, site: int) -> Any:
    """``value`` of another lane of the warp; beyond the warp's ends a lane keeps its own.

    Where the other lane is absent the device's answer is undefined; here the lane keeps its own value, and the
    sanitizer says so.
    """
    warps = warps_of(group)
    values = per_lane(value, group.n)
    operand = dense(operand)
    if mode == "index":
        target = per_lane(operand, group.n) & (WARP_SIZE - 1)
    else:
        target = {"up": np.subtract, "down": np.add, "xor": np.bitwise_xor}[mode](warps.lane, operand)
    inside = (target >= 0) & (target < WARP_SIZE)
    source = warps.source(np.where(inside, target, warps.lane).astype(np.int64))
    absent = source < 0
    if absent.any():
        group.memory.absent_lane(group, absent, target, site)
        source = np.where(absent, warps.positions, source)
    return values.take(source)


def _participates(warps: Warps, mask: Any) -> np.ndarray | bool:
    mask = dense(mask)
    if not isinstance(mask, np.ndarray) and int(mask) & 0xFFFFFFFF == 0xFFFFFFFF:
        return True
    return ((np.asarray(mask).astype(np.int64) >> warps.lane) & 1).astype(bool)


def _ballots(warps: Warps, lanes: np.ndarray) -> np.ndarray:
    """For each warp the mask of the lanes for which ``lanes`` holds, as a whole number."""
    return warps.total(np.where(lanes, np.left_shift(np.int64(1), warps.lane), 0))


def _as_mask(bits: np.ndarray, dtype: type) -> np.ndarray:
    return bits.astype(np.uint32).view(dtype)


def ballot(group: Group, mask: Any, predicate: Any) -> np.ndarray:
    """The mask of the warp's lanes whose predicate holds."""
    warps = warps_of(group)
    holds = per_lane(predicate, group.n) & _participates(warps, mask)
    return _as_mask(_ballots(warps, holds)[warps.warp], np.int32)


def active_mask(group: Group) -> np.ndarray:
    """The mask of the warp's lanes that run together now."""
    warps = warps_of(group)
    return _as_mask(_ballots(warps, np.ones(group.n, bool))[warps.warp], np.uint32)


def lanes_below(group: Group) -> np.ndarray:
    """The mask of the lanes with a smaller number than this one."""
    return _as_mask(np.left_shift(np.int64(1), warps_of(group).lane) - 1, np.uint32)


def vote(group: Group, mode: str, mask: Any, predicate: Any) -> np.ndarray:
    """Whether all, any, or equally many (none or all) of the warp's participating lanes agree."""
    warps = warps_of(group)
    asked = np.broadcast_to(_participates(warps, mask), group.n)
    holding = warps.total((per_lane(predicate, group.n) & asked).astype(np.float64))
    if mode == "any":
        return (holding > 0)[warps.warp]
    everyone = warps.total(asked.astype(np.float64))
    agreed = holding == everyone
    return (agreed if mode == "all" else agreed | (holding == 0))[warps.warp]


def match_any(group: Group, mask: Any, value: Any) -> np.ndarray:
    """The mask of the warp's participating lanes that hold the same value as this one."""
    warps = warps_of(group)
    asked = np.broadcast_to(_participates(warps, mask), group.n)
    values = per_lane(value, group.n)
    order = np.lexsort((values, ~asked, warps.warp))
    keys = (warps.warp[order], asked[order], values[order])
    changes = np.r_[True, np.any([k[1:] != k[:-1] for k in keys], axis=0)] if group.n else np.zeros(0, bool)
    kind = np.empty(group.n, np.int64)
    kind[order] = np.cumsum(changes) - 1
    bits = np.bincount(kind, np.where(asked, np.left_shift(np.int64(1), warps.lane), 0)).astype(np.int64)
    return _as_mask(bits[kind], np.int32)


def match_all(group: Group, mask: Any, value: Any) -> tuple[np.ndarray, np.ndarray]:
    """The mask of the participating lanes if they all hold the same value, else 0; and whether they do."""
    warps = warps_of(group)
    asked = np.broadcast_to(_participates(warps, mask), group.n)
    everyone = _ballots(warps, asked)[warps.warp]
    same = match_any(group, mask, value).view(np.uint32) == everyone.astype(np.uint32)
    agreed = warps.total((same & asked).astype(np.float64)) == warps.total(asked.astype(np.float64))
    agreed = agreed[warps.warp]
    return _as_mask(np.where(agreed, everyone, 0), np.int32), agreed


def block_reduce(group: Group, mode: str, predicate: Any) -> np.ndarray:
    """After a barrier: how many of the block's threads hold the predicate, or whether all or any do."""
    blocks = group.blocks()
    holds = per_lane(predicate, group.n)
    holding = np.bincount(blocks, holds, group.chunk.blocks).astype(np.int32)
    if mode == "and":
        holding = (holding == np.bincount(blocks, minlength=group.chunk.blocks)).astype(np.int32)
    elif mode == "or":
        holding = (holding > 0).astype(np.int32)
    return holding[blocks]
