"""A kernel lowered to basic blocks, and each block compiled to one Python function over lanes.

A register holds a variable or an intermediate result: an array with one element a lane, a scalar that all lanes
share, or an :class:`~labkit.compute.emulator.affine.Affine` progression. Registers that outlive their block travel
in the frame of the group of lanes that runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

End = Literal["jump", "branch", "barrier", "exit", "fall"]


@dataclass(frozen=True)
class Site:
    """A place in the learner's source that touches memory or may fail."""

    function: str
    line: int
    text: str
    operand: str = ""


@dataclass
class Instruction:
    """``target = code``: one step, executed by all lanes of a group at once."""

    target: str | None
    code: str
    uses: tuple[str, ...]
    line: int
    kind: str = "int"
    operations: int = 1
    function: str = ""


@dataclass(eq=False)
class Block:
    """A straight run of instructions and what follows it.

    ``end`` is ``"jump"`` to ``then``; ``"branch"`` to ``then`` or ``otherwise`` by ``condition``; ``"barrier"``: wait
    for the ``scope`` (block or grid), then go on at ``then``; ``"exit"``: an explicit return; ``"fall"``: the end of
    the kernel.
    """

    line: int
    instructions: list[Instruction] = field(default_factory=list)
    end: End = "exit"
    condition: str | None = None
    then: Block | None = None
    otherwise: Block | None = None
    scope: str = "block"
    # the line of the test or barrier at its end, where that is not its first line
    end_line: int | None = None
    function: str = ""
    pc: int = -1
    # Set on the jump back to the head of a loop: "counted" for range loops, "spin" for loops that read memory
    # others may write, "while" for the rest.
    back_edge: str | None = None
    run: Callable[[Any], Any] = field(default=lambda group: None, repr=False)
    live: tuple[int, ...] = ()

    @property
    def branch_line(self) -> int:
        return self.line if self.end_line is None else self.end_line

    def successors(self) -> list[Block]:
        return [b for b in (self.then, self.otherwise) if b is not None]


@dataclass
class Program:
    """What one kernel does for one set of argument types.

    ``slots`` maps registers to places in a frame; ``arrays`` lists the array operands of the code (arguments,
    captured constants, shared and local arrays), which the memory provides at launch; ``lines`` is the kernel's text.
    """

    name: str
    blocks: list[Block]
    sites: list[Site]
    slots: dict[str, int]
    arrays: list[Any]
    lines: dict[int, str]

    @property
    def whole_grid(self) -> bool:
        """Whether blocks wait for each other at a grid-wide barrier, so that all must run together."""
        return any(b.end == "barrier" and b.scope == "grid" for b in self.blocks)


class Builder:
    """Collects blocks, registers, constants and sites while a kernel is being lowered."""

    def __init__(self, name: str):
        self.name = name
        self.blocks: list[Block] = []
        self.sites: list[Site] = []
        self.constants: dict[str, Any] = {}
        self.arrays: list[Any] = []
        self.static_arrays: dict[tuple, int] = {}
        self._constant_names: dict[tuple[str, bytes], str] = {}
        self._temporaries = 0
        self.function = name
        self.current: Block | None = None

    # A loop is lowered again when the types at its head turn out wider: forget what was made meanwhile.
    def mark(self) -> tuple:
        length = len(self.current.instructions) if self.current else 0
        return len(self.blocks), len(self.sites), len(self.arrays), self.current, length

    def rollback(self, mark: tuple) -> None:
        blocks, sites, arrays, self.current, length = mark
        del self.blocks[blocks:]
        del self.sites[sites:]
        del self.arrays[arrays:]
        self.static_arrays = {place: n for place, n in self.static_arrays.items() if n < arrays}
        if self.current:
            del self.current.instructions[length:]

    def place(self, block: Block) -> Block:
        """Start emitting into ``block``; blocks run in the order in which they are placed."""
        self.blocks.append(block)
        self.current = block
        return block

    def emit(
        self,
        code: str,
        uses: Iterable[str] = (),
        line: int = 0,
        kind: str = "int",
        into: str | None = None,
        operations: int = 1,
    ) -> str:
        """Add ``into = code`` (a fresh temporary when ``into`` is None) and return the register."""
        if into is None:
            self._temporaries += 1
            into = f"t{self._temporaries}"
        if self.current is not None:
            self.current.instructions.append(
                Instruction(into, code, tuple(uses), line, kind, operations, self.function)
            )
        return into

    def phi(self, name: str) -> str:
        """A register for a variable where paths meet, named so that generated code can be read."""
        self._temporaries += 1
        readable = name if name.isidentifier() and name.isascii() else "x"
        return f"v{self._temporaries}_{readable}"

    def do(self, code: str, uses: Iterable[str], line: int, kind: str) -> None:
        """Add an instruction without a result."""
        if self.current is not None:
            self.current.instructions.append(
                Instruction(None, code, tuple(uses), line, kind, 1, self.function)
            )

    def end(
        self,
        kind: End,
        then: Block | None = None,
        otherwise: Block | None = None,
        condition: str | None = None,
        line: int | None = None,
    ) -> None:
        """End the current block; ``line`` is that of the test or barrier at its end."""
        if self.current is not None:
            self.current.end = kind
            self.current.then = then
            self.current.otherwise = otherwise
            self.current.condition = condition
            self.current.end_line = line
            self.current.function = self.function
        self.current = None

    def constant(self, value: Any) -> str:
        """The name of a constant in the generated code."""
        if isinstance(value, np.generic):
            key = (str(value.dtype), value.tobytes())
            if key not in self._constant_names:
                self._constant_names[key] = f"K{len(self.constants)}"
                self.constants[self._constant_names[key]] = value
            return self._constant_names[key]
        name = f"K{len(self.constants)}"
        self.constants[name] = value
        return name

    def site(self, function: str, line: int, text: str, operand: str = "") -> int:
        self.sites.append(Site(function, line, text, operand))
        return len(self.sites) - 1

    def finish(self, namespace: dict[str, Any], lines: dict[int, str]) -> Program:
        """Thread jumps, number blocks, find what is live, and compile each block."""
        blocks = _thread_jumps(self.blocks)
        for pc, block in enumerate(blocks):
            block.pc = pc
        live = _liveness(blocks)
        slots: dict[str, int] = {}
        for pc in range(len(blocks)):
            for register in sorted(live[pc]):
                slots.setdefault(register, len(slots))
        for pc, block in enumerate(blocks):
            block.live = tuple(sorted(slots[r] for r in live[pc]))
        _compile(self.name, blocks, slots, live, {**namespace, **self.constants})
        return Program(self.name, blocks, self.sites, slots, self.arrays, lines)


def _is_empty(block: Block) -> bool:
    return block.end == "jump" and not block.instructions and block.back_edge is None


def _thread_jumps(blocks: list[Block]) -> list[Block]:
    """Drop unreachable blocks and blocks that only jump on."""

    def target(block: Block | None) -> Block | None:
        seen = 0
        while block is not None and _is_empty(block) and seen < len(blocks):
            block = block.then
            seen += 1
        return block

    for block in blocks:
        block.then = target(block.then)
        block.otherwise = target(block.otherwise)
    start = target(blocks[0])
    assert start is not None
    reachable = {id(start)}
    pending = [start]
    while pending:
        for successor in pending.pop().successors():
            if id(successor) not in reachable:
                reachable.add(id(successor))
                pending.append(successor)
    kept = [b for b in blocks if id(b) in reachable]
    kept.remove(start)
    return [start, *kept]


def _uses_and_definitions(block: Block) -> tuple[set[str], set[str]]:
    """Registers read before they are written in the block, and registers written."""
    uses: set[str] = set()
    defined: set[str] = set()
    for instruction in block.instructions:
        uses.update(r for r in instruction.uses if r not in defined)
        if instruction.target:
            defined.add(instruction.target)
    if block.condition and block.condition not in defined:
        uses.add(block.condition)
    return uses, defined


def _liveness(blocks: list[Block]) -> list[set[str]]:
    """Registers whose value is needed at the start of each block."""
    facts = [_uses_and_definitions(b) for b in blocks]
    live = [set(uses) for uses, _ in facts]
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            uses, defined = facts[block.pc]
            after: set[str] = set().union(*(live[s.pc] for s in block.successors()))
            new = uses | (after - defined)
            if new != live[block.pc]:
                live[block.pc] = new
                changed = True
    return live


def _compile(
    name: str, blocks: list[Block], slots: dict[str, int], live: list[set[str]], namespace: dict[str, Any]
) -> None:
    text = "\n".join(_function(block, slots, live) for block in blocks)
    exec(compile(text, f"<emulated {name}>", "exec"), namespace)
    for block in blocks:
        block.run = namespace[f"b{block.pc}"]


def _function(block: Block, slots: dict[str, int], live: list[set[str]]) -> str:
    """Python source of one block: read the frame, compute, write the frame, return the branch condition."""
    uses, defined = _uses_and_definitions(block)
    after: set[str] = set().union(*(live[s.pc] for s in block.successors()))
    rows = [f"def b{block.pc}(g):"]
    if uses or defined & after:
        rows.append(" f = g.frame")
    for register in sorted(uses):
        rows.append(f" {register} = f[{slots[register]}]")
        rows.append(
            f" if {register}.__class__ is Deferred: {register} = f[{slots[register]}] = g.take({register})"
        )
    if any("M." in i.code for i in block.instructions):
        rows.append(" M = g.memory")
    for instruction in block.instructions:
        rows.append(
            f" {instruction.target} = {instruction.code}" if instruction.target else f" {instruction.code}"
        )
    for register in sorted(defined & after):
        rows.append(f" f[{slots[register]}] = {register}")
    rows.append(f" return {block.condition}" if block.condition else " return None")
    return "\n".join(rows)
