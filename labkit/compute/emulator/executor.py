"""Runs a program over the lanes of a launch, in lockstep.

Lanes that are at the same place run together as a *group*. Of several groups the one at the lowest place in the
program goes first, so paths that diverged meet again where they join. Lanes that spin on memory are parked while
others, and other blocks, advance.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from labkit.compute.emulator import faults
from labkit.compute.emulator.affine import Affine
from labkit.compute.emulator.geometry import Chunk
from labkit.compute.emulator.group import Group, merge
from labkit.compute.emulator.memory import Array, Memory
from labkit.compute.emulator.program import Block, Program
from labkit.compute.emulator.runtime import Deferred

SPINS_BEFORE_PARKING = 64
ROUNDS_WITHOUT_PROGRESS = 500
# A loop without a bound is taken for endless when it has turned this often without losing a lane, and its chunk has
# run this long; the step budget ends it sooner where turns are quick.
TURNS_BETWEEN_LOOKS = 16_384
ENDLESS_SECONDS = 8.0
# How much of the step budget one turn of a loop costs: a loop that moves a variable to a bound is long, not endless.
STEP_COST = {"while": 20, "spin": 20, "step": 1, "counted": 0}


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
        self.began = time.perf_counter()
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
        if self.steps > self.budget or (
            block.back_edge != "counted" and self.endless(group, block.back_edge)
        ):
            line, text = self.line_of(block.then.line)
            turns = max(group.turns, self.steps // STEP_COST[block.back_edge])
            raise faults.step_budget(self.program.name, group, line, text, turns)
        if block.back_edge != "spin":
            return False
        group.spins += 1
        if group.spins % SPINS_BEFORE_PARKING:
            return False
        group.pc = block.then.pc
        self.parked.append(group)
        return True

    def endless(self, group: Group, kind: str) -> bool:
        """Whether a loop without a bound has turned long enough, in turns and in time, for no lane to leave it."""
        group.turns += 1
        if kind == "step" or group.turns % TURNS_BETWEEN_LOOKS:
            return False
        return time.perf_counter() - self.began > ENDLESS_SECONDS

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
