"""Where paths of control flow meet: each variable that differs gets a register of its own (a phi).

numba types variables in SSA form, so a variable may change its type from one assignment to the next, and takes the
common type where paths meet.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from labkit.compute.emulator import types as ty
from labkit.compute.emulator.program import Block
from labkit.compute.emulator.values import Conflict, Scalar, Tuple, Value

if TYPE_CHECKING:
    from labkit.compute.emulator.expressions import ExpressionLowering

Environment = dict[str, Value]


class Move(NamedTuple):
    """``register = value``, converted to ``type``, at the end of a path."""

    register: str
    type: np.dtype
    value: Scalar


class Join:
    """Collects the paths that arrive at one place; ``place`` makes them meet there."""

    def __init__(self, lowering: ExpressionLowering):
        self.lowering = lowering
        self.arrivals: list[tuple[Block, Environment]] = []
        self.block = Block(0)

    def arrive(self, env: Environment) -> None:
        """The current path, if there is one, ends by jumping here."""
        current = self.lowering.b.current
        if current is not None:
            self.arrivals.append((current, dict(env)))
            self.lowering.b.end("jump", self.block)

    def place(self, node: ast.AST) -> Environment:
        """Go on from here with every variable that some path has defined; empty when no path arrives."""
        builder = self.lowering.b
        builder.current = None
        if not self.arrivals:
            return {}
        self.block.line = getattr(node, "lineno", 0)
        environments = [env for _, env in self.arrivals]
        moves: list[list[Move]] = [[] for _ in environments]
        names = dict.fromkeys(name for env in environments for name in env)
        merged = {name: self.merge(name, [env.get(name) for env in environments], moves) for name in names}
        for (block, _), wanted in zip(self.arrivals, moves, strict=True):
            builder.current = block
            parallel_moves(self.lowering, wanted, node)
        builder.place(self.block)
        return merged

    def merge(self, name: str, values: list[Any], moves: list[list[Move]]) -> Value:
        first = values[0]
        if first is not None and all(v == first for v in values):
            return first
        present = [v for v in values if v is not None]
        if all(isinstance(v, Scalar) for v in present):
            return self.merge_scalars(name, values, moves)
        if all(isinstance(v, Tuple) for v in present) and len({len(v.items) for v in present}) == 1:
            columns = [[v and v.items[k] for v in values] for k in range(len(present[0].items))]
            return Tuple(tuple(self.merge(name, column, moves) for column in columns))
        return present[0] if all(v == present[0] for v in present) else Conflict(name)

    def merge_scalars(self, name: str, values: list[Scalar | None], moves: list[list[Move]]) -> Scalar:
        present = [v for v in values if v is not None]
        dtype = present[0].type
        for value in present[1:]:
            dtype = ty.unify(dtype, value.type)
        register = self.lowering.b.phi(name)
        for wanted, arriving in zip(moves, values, strict=True):
            if arriving is not None:
                wanted.append(Move(register, dtype, arriving))
        incomplete = any(v is None or v.undefined for v in values)
        return Scalar(dtype, register, undefined=name if incomplete else None)


def parallel_moves(lowering: ExpressionLowering, moves: Iterable[Move], node: ast.AST) -> None:
    """Make all moves at once at the end of the current block: a swap must not read what it has just written."""
    builder = lowering.b
    moves = [m for m in moves if m.value.code != m.register]
    written = {m.register for m in moves}
    ready = []
    for move in moves:
        value = lowering.cast(move.value, move.type, node)
        if value.code in written:
            value = replace(value, code=builder.emit(value.code, value.registers, kind="move"))
        ready.append((move.register, value))
    for register, value in ready:
        builder.emit(value.code, value.registers, kind="move", into=register)


def loop_head(
    lowering: ExpressionLowering, env: Environment, shapes: dict[str, Value], names: frozenset[str]
) -> Environment:
    """The environment at the head of a loop: a fresh register for every variable that the loop assigns.

    ``shapes`` holds, once the body has been seen, the types that the variables need there.
    """
    head = dict(env)
    for name in sorted(names):
        value = shapes.get(name, env.get(name))
        if value is not None:
            head[name] = _phi(lowering, name, value)
    return head


def _phi(lowering: ExpressionLowering, name: str, value: Value) -> Value:
    if isinstance(value, Scalar):
        return Scalar(value.type, lowering.b.phi(name), undefined=value.undefined)
    if isinstance(value, Tuple):
        return Tuple(tuple(_phi(lowering, name, item) for item in value.items))
    return value


def moves_into(head: Environment, env: Environment, names: frozenset[str]) -> list[Move]:
    """The moves that bring ``env``'s variables into the registers of a loop's head."""
    return [m for name in sorted(names & head.keys() & env.keys()) for m in _moves(head[name], env[name])]


def _moves(target: Value, value: Value) -> list[Move]:
    if isinstance(target, Scalar) and isinstance(value, Scalar):
        return [Move(target.code, target.type, value)]
    if isinstance(target, Tuple) and isinstance(value, Tuple):
        return [m for a, b in zip(target.items, value.items, strict=True) for m in _moves(a, b)]
    return []


def widen(head: Environment, back: Environment, names: frozenset[str]) -> dict[str, Value] | None:
    """What the variables must be at a loop's head given the end of its body; None when they already are."""
    wider = {name: _widen(name, head.get(name), back.get(name)) for name in names}
    found = {name: value for name, value in wider.items() if value is not None}
    return found if any(_shape(v) != _shape(head.get(n)) for n, v in found.items()) else None


def _widen(name: str, at_head: Value | None, at_end: Value | None) -> Value | None:
    if at_end is None:
        return at_head
    if at_head is None:
        return _undefined(name, at_end)
    if isinstance(at_head, Scalar) and isinstance(at_end, Scalar):
        return replace(at_head, type=ty.unify(at_head.type, at_end.type))
    if isinstance(at_head, Tuple) and isinstance(at_end, Tuple) and len(at_head.items) == len(at_end.items):
        pairs = zip(at_head.items, at_end.items, strict=True)
        return Tuple(tuple(_widen(name, a, b) for a, b in pairs))
    return at_head if at_head == at_end else Conflict(name)


def _undefined(name: str, value: Value) -> Value:
    """The same kind of value, not assigned before the loop."""
    if isinstance(value, Scalar):
        return Scalar(value.type, "", undefined=name)
    if isinstance(value, Tuple):
        return Tuple(tuple(_undefined(name, item) for item in value.items))
    return value


def _shape(value: Value | None) -> Any:
    """What matters of a value at a loop's head: types, not registers."""
    if isinstance(value, Scalar):
        return value.type, value.undefined
    if isinstance(value, Tuple):
        return tuple(_shape(item) for item in value.items)
    return value
