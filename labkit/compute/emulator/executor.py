"""Runs a program over the lanes of a launch, in lockstep.

Lanes that are at the same place run together as a *group*. Of several groups the one at the lowest place in the
program goes first, so paths that diverged meet again where they join. Lanes that spin on memory are parked while
others, and other blocks, advance.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from labkit.compute.emulator import faults
from labkit.compute.emulator.affine import Affine, dense
from labkit.compute.emulator.geometry import WARP_SIZE, Chunk, Dim3
from labkit.compute.emulator.memory import Array, Memory
from labkit.compute.emulator.program import Block, Program
from labkit.compute.emulator.runtime import Deferred
from labkit.compute.emulator.warp import Warps

SPINS_BEFORE_PARKING = 64
ROUNDS_WITHOUT_PROGRESS = 500
# How much of the step budget one turn of a loop costs: a loop that moves a variable to a bound is long, not endless.
STEP_COST = {"while": 20, "spin": 20, "step": 1, "counted": 0}


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


class ChunkRun:
    """One chunk on its way through the program."""

    def __init__(
        self, program: Program, chunk: Chunk, memory: Memory, arrays: list[Array], frame: list, budget: int
    ):
        self.program = program
        self.chunk = chunk
        self.memory = memory
        self.arrays = arrays
        self.budget = budget
        self.steps = 0
        self.ready: dict[int, list[Group]] = {}
        self.waiting: list[Group] = []
        self.parked: list[Group] = []
        self.live = np.full(chunk.blocks, chunk.launch.threads_per_block)
        self.alive = chunk.lanes
        self.push(Group(self, 0, None, frame))

    def push(self, group: Group) -> None:
        self.ready.setdefault(group.pc, []).append(group)

    def advance(self) -> bool:
        """Run until every lane has exited (True) or all that are left spin on memory (False)."""
        while True:
            while self.ready:
                pc = min(self.ready)
                groups = self.ready.pop(pc)
                group = groups[0] if len(groups) == 1 else merge(groups, pc, self.program.blocks[pc].live)
                self.run(group)
            if not (self.waiting and self.release()):
                return not self.parked

    def resume(self) -> None:
        """Give the parked lanes another turn."""
        parked, self.parked = self.parked, []
        for group in parked:
            self.push(group)

    def execute(self, block: Block, group: Group) -> Any:
        """Run one block for one group; observers override this."""
        return block.run(group)

    def run(self, group: Group) -> None:
        """Run a group until it splits, waits, parks or exits, or until another group is further behind."""
        blocks, ready = self.program.blocks, self.ready
        while True:
            block = blocks[group.pc]
            condition = self.execute(block, group)
            end = block.end
            if end == "branch":
                if condition.__class__ is np.bool_:
                    after = block.then if condition else block.otherwise
                else:
                    after = self.split(group, block, condition)
            elif end == "jump":
                after = block.then
                if block.back_edge is not None and self.turn(group, block):
                    return
            elif end == "barrier":
                if group.n != self.alive:
                    self.wait(group, block)
                    return
                self.passed(block, None)
                after = block.then
            else:
                self.leave(group, end)
                return
            if after is None:
                return
            group.pc = after.pc
            if ready and min(ready) <= group.pc:
                self.push(group)
                return

    def split(self, group: Group, block: Block, condition: np.ndarray) -> Block | None:
        """Lanes part ways; None unless they all go the same way after all."""
        taken = int(np.count_nonzero(condition))
        if taken == group.n:
            return block.then
        if taken == 0:
            return block.otherwise
        for target, index in (
            (block.then, np.flatnonzero(condition)),
            (block.otherwise, np.flatnonzero(~condition)),
        ):
            assert target is not None
            self.push(group.part(index, target.pc, target.live))
        return None

    def turn(self, group: Group, block: Block) -> bool:
        """Account for one turn of a loop; True when the group has been parked."""
        assert block.back_edge is not None
        assert block.then is not None
        self.steps += STEP_COST[block.back_edge]
        if self.steps > self.budget:
            line, text = self.line_of(block.then.line)
            raise faults.step_budget(
                self.program.name, group, line, text, self.steps // STEP_COST[block.back_edge]
            )
        if block.back_edge != "spin":
            return False
        group.spins += 1
        if group.spins % SPINS_BEFORE_PARKING:
            return False
        group.pc = block.then.pc
        self.parked.append(group)
        return True

    def wait(self, group: Group, block: Block) -> None:
        """The group waits at a barrier for the rest of its thread blocks."""
        assert block.then is not None
        group.pc = block.then.pc
        group.waits_at = block
        self.waiting.append(group)

    def leave(self, group: Group, end: str) -> None:
        """The group's lanes end. An explicit return counts as arrived at barriers; running past one does not."""
        if end == "fall" and self.waiting:
            self.check_nobody_waits_for(group)
        self.alive -= group.n
        if self.alive:
            self.live -= np.bincount(group.blocks(), minlength=self.chunk.blocks)

    def check_nobody_waits_for(self, group: Group) -> None:
        mine = group.blocks()
        for other in self.waiting:
            shared = np.isin(mine, other.blocks())
            if shared.any():
                lane = int(np.argmax(shared))
                self.fail_barrier(other, group, lane, "ends without reaching it")

    def fail_barrier(self, waiting: Group, group: Group, lane: int, instead: str) -> None:
        assert waiting.waits_at is not None
        line, text = self.line_of(waiting.waits_at.branch_line)
        raise faults.divergent_barrier(self.program.name, group, line, text, lane, instead)

    def release(self) -> bool:
        """Let go the thread blocks whose live lanes have all arrived; False when there are none."""
        count = self.chunk.blocks
        members = [g.blocks() for g in self.waiting]
        arrived = np.sum([np.bincount(b, minlength=count) for b in members], axis=0)
        if any(g.waits_at is not None and g.waits_at.scope == "grid" for g in self.waiting):
            complete = np.full(count, int(arrived.sum()) == self.alive)
        else:
            complete = (arrived == self.live) & (arrived > 0)
        self.check_same_barrier(members, complete)
        if complete.any():
            opened = next(g.waits_at for g in self.waiting if g.waits_at is not None)
            self.passed(opened, complete)
        staying: list[Group] = []
        for group, blocks in zip(self.waiting, members, strict=True):
            free = complete[blocks]
            live = self.program.blocks[group.pc].live
            if free.all():
                group.waits_at = None
                self.push(group)
                continue
            if free.any():
                self.push(group.part(np.flatnonzero(free), group.pc, live))
                rest = group.part(np.flatnonzero(~free), group.pc, live)
                rest.waits_at = group.waits_at
                group = rest
            staying.append(group)
        self.waiting = staying
        return bool(self.ready)

    def passed(self, block: Block, blocks: np.ndarray | None) -> None:
        """Hook for observers: thread blocks (a mask over the chunk's, or None for all) have passed a barrier."""

    def check_same_barrier(self, members: list[np.ndarray], complete: np.ndarray) -> None:
        """Threads of one block that wait at different barriers would wait for ever."""
        place = np.full(self.chunk.blocks, -1)
        for number, (group, blocks) in enumerate(zip(self.waiting, members, strict=True)):
            others = [k for k in range(number) if self.waiting[k].waits_at is not group.waits_at]
            clash = complete[blocks] & np.isin(place[blocks], others)
            if clash.any():
                lane = int(np.argmax(clash))
                assert group.waits_at is not None
                instead = f"waits at another one, in line {group.waits_at.branch_line}"
                self.fail_barrier(self.waiting[place[blocks[lane]]], group, lane, instead)
            place[blocks] = number

    def line_of(self, line: int) -> tuple[int, str]:
        """A source line and its text."""
        return line, self.program.lines.get(line, "")

    def spinning(self) -> tuple:
        """Where and with what values lanes are parked: unchanged after a turn means that they are stuck."""
        return tuple((g.pc, g.n, *map(_fingerprint, g.frame)) for g in self.parked)

    def fail_progress(self) -> None:
        group = self.parked[0]
        line, text = self.line_of(self.program.blocks[group.pc].line)
        raise faults.no_progress(self.program.name, group, line, text)


def _fingerprint(value: Any) -> Any:
    if value.__class__ is Deferred:
        value = value.value
    if value.__class__ is Affine:
        return value.base, value.strides
    if value.__class__ is np.ndarray:
        return value.tobytes()
    return None if value is None else value.tobytes()


def run_all(runs: Iterable[ChunkRun]) -> None:
    """Run the chunks one after the other; those whose lanes spin wait until the rest has run, then take turns."""
    stuck = [run for run in runs if not run.advance()]
    before: tuple = ()
    unchanged = 0
    while stuck:
        for run in stuck:
            run.resume()
        stuck = [run for run in stuck if not run.advance()]
        now = tuple(run.spinning() for run in stuck)
        unchanged = unchanged + 1 if now == before else 0
        if stuck and unchanged > ROUNDS_WITHOUT_PROGRESS:
            stuck[0].fail_progress()
        before = now
