"""Lowering of statements: a kernel's syntax tree becomes basic blocks."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from labkit.compute.emulator import types as ty
from labkit.compute.emulator.calls import lower_call
from labkit.compute.emulator.expressions import ExpressionLowering
from labkit.compute.emulator.joins import Environment, Join, loop_head, moves_into, parallel_moves, widen
from labkit.compute.emulator.loops import while_kind
from labkit.compute.emulator.program import Block, Builder, Program
from labkit.compute.emulator.runtime import NAMESPACE
from labkit.compute.emulator.source import Source, stored_names
from labkit.compute.emulator.values import (
    ArrayRef,
    Conflict,
    Intrinsic,
    Scalar,
    Static,
    Tuple,
    Value,
    describe,
    type_of,
)

RESULT = "<result>"


@dataclass
class _Loop:
    leave: Join
    again: Join


class Lowering(ExpressionLowering):
    """Lowers one kernel; device functions are lowered in place, where they are called."""

    def __init__(self, builder: Builder, source: Source):
        super().__init__(builder, source)
        self.loops: list[_Loop] = []
        self.returns: Join | None = None
        # A call whose result nobody reads: its atomics need not find the old value.
        self.unused: ast.expr | None = None
        # The types for which numba would compile the function that is being lowered.
        self.signature: tuple = ()

    def expr_Call(self, node: ast.Call) -> Value:
        return lower_call(self, node)

    def body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if self.b.current is None:
                return  # after return, break or continue
            method = getattr(self, f"do_{type(statement).__name__}", None)
            if method is None:
                raise self.fail(statement, f"'{type(statement).__name__.lower()}' statements")
            method(statement)

    # -- simple statements --------------------------------------------------------------------------------------

    def do_Pass(self, node: ast.Pass) -> None:
        """Nothing to do."""

    def do_Assert(self, node: ast.Assert) -> None:
        """Assertions are checked only in numba's debug mode: nothing to do."""

    def do_Expr(self, node: ast.Expr) -> None:
        self.unused = node.value
        value = self.expr(node.value)
        if isinstance(value, Static) and isinstance(value.value, Intrinsic):
            raise self.fail(node, f"{describe(value)} without '()': write {ast.unparse(node)}()")

    def do_Assign(self, node: ast.Assign) -> None:
        value = self.expr(node.value)
        for target in node.targets:
            self.assign(target, value)

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.expr(node.value))

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            target = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
            current = self.need_scalar(self.expr(target), node.target)
            self.env[node.target.id] = self.binary(type(node.op), current, self.scalar(node.value), node)
            return
        element = self.element(node.target)
        value = self.binary(type(node.op), self.load(element, node.target), self.scalar(node.value), node)
        self.store(element, value, node.target)

    def assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.env[target.id] = self.named(value, target.id)
        elif isinstance(target, ast.Tuple):
            self.unpack(target, value)
        else:
            self.store(self.element(target), self.need_scalar(value, target), target)

    @staticmethod
    def named(value: Value, name: str) -> Value:
        """A shared or local array is called, in messages, by the variable that first holds it."""
        if isinstance(value, ArrayRef) and not value.name:
            return ArrayRef(value.type, value.number, name, value.pattern)
        return value

    def unpack(self, target: ast.Tuple, value: Value) -> None:
        if not isinstance(value, Tuple):
            raise self.fail(target, f"{describe(value)} unpacked into {len(target.elts)} names")
        if len(value.items) != len(target.elts):
            raise self.fail(target, f"{len(value.items)} values unpacked into {len(target.elts)} names")
        for part, item in zip(target.elts, value.items, strict=True):
            self.assign(part, item)

    def element(self, node: ast.expr) -> ArrayRef:
        """The array element, or the field of a structured one, that an assignment names."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Subscript):
            return self.member(self.element(node.value), node.attr, node)
        if not isinstance(node, ast.Subscript):
            raise self.fail(node, "an assignment to an attribute; assign to a variable or an array element")
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return self.member(self.element(node.value), node.slice.value, node)
        base = self.expr(node.value)
        if not isinstance(base, ArrayRef):
            raise self.fail(node, f"an assignment to an item of {describe(base)}")
        element = self.index(base, node)
        if element.axes:
            raise self.fail(
                node,
                f"an assignment to a whole row of '{element.name}' ({len(element.axes)} index(es) missing); "
                "loop over it",
            )
        return element

    # -- control flow -------------------------------------------------------------------------------------------

    def do_If(self, node: ast.If) -> None:
        test = self.truth(self.expr(node.test), node.test)
        if test.known:
            self.body(node.body if test.const else node.orelse)
            return
        join, before = Join(self), self.env
        first, second = Block(node.lineno), Block(node.lineno)
        self.b.end("branch", first, second, test.code, line=node.lineno)
        for block, statements in ((first, node.body), (second, node.orelse)):
            self.b.place(block)
            self.env = dict(before)
            self.body(statements)
            join.arrive(self.env)
        self.env = join.place(node)

    def do_While(self, node: ast.While) -> None:
        test = lambda: self.truth(self.expr(node.test), node.test)  # noqa: E731
        self.loop(node, stored_names(node.body), test, None, while_kind(node))

    def do_For(self, node: ast.For) -> None:
        if not _is_range(node.iter, self):
            self.for_each(node)
            return
        start, stop, step = self.range_of(node.iter)  # type: ignore[arg-type]
        counter = self.hidden_name("counter")
        self.env[counter] = start
        names = stored_names([node]) | {counter}

        def test() -> Scalar:
            now = self.need_scalar(self.env[counter], node)
            if step.known:
                symbol = "<" if step.const > 0 else ">"
                return self.emit(ty.BOOL, f"{now.code} {symbol} {stop.code}", (now, stop), node, "compare")
            return self.emit(
                ty.BOOL, f"in_range({now.code}, {stop.code}, {step.code})", (now, stop, step), node
            )

        def advance() -> None:
            now = self.need_scalar(self.env[counter], node)
            self.env[counter] = self.emit(now.type, f"{now.code} + {step.code}", (now, step), node)

        def enter() -> None:
            self.assign(node.target, self.env[counter])

        self.loop(node, names, test, advance, "counted", enter)
        self.env.pop(counter, None)

    def range_of(self, call: ast.Call) -> tuple[Scalar, Scalar, Scalar]:
        """start, stop, step of ``range(...)``, in one type."""
        if call.keywords or not 1 <= len(call.args) <= 3:
            raise self.fail(call, "range() with anything but one, two or three numbers")
        numbers = [self.scalar(a) for a in call.args]
        if any(n.type.kind not in "iub" for n in numbers):
            raise self.fail(call, "range() of numbers that are not whole; use int(...)")
        if len(numbers) == 1:
            numbers.insert(0, self.const(0))
        if len(numbers) == 2:
            numbers.append(self.const(1))
        if numbers[2].known and numbers[2].const == 0:
            raise self.fail(call, "range() with a step of zero")
        dtype = ty.UINT64 if all(n.type.kind == "u" for n in numbers) else ty.INT64
        start, stop, step = (self.cast(n, dtype, call) for n in numbers)
        return start, stop, step

    def for_each(self, node: ast.For) -> None:
        """``for x in a``: over a tuple (unrolled) or the first axis of an array."""
        things = self.expr(node.iter)
        if isinstance(things, ArrayRef) and things.axes:
            index = self.hidden_name("index")
            counted = ast.For(
                ast.Name(index, ast.Store()),
                ast.Call(
                    ast.Name("range", ast.Load()),
                    [ast.Call(ast.Name("len", ast.Load()), [node.iter], [])],
                    [],
                ),
                [
                    ast.Assign(
                        [node.target], ast.Subscript(node.iter, ast.Name(index, ast.Load()), ast.Load())
                    ),
                    *node.body,
                ],
                node.orelse,
            )
            self.do_For(ast.fix_missing_locations(ast.copy_location(counted, node)))
            return
        if not isinstance(things, Tuple):
            raise self.fail(
                node, f"a loop over {describe(things)}; loop over range(...), a tuple or an array"
            )
        leave = Join(self)
        for item in things.items:
            again = Join(self)
            self.loops.append(_Loop(leave, again))
            self.assign(node.target, item)
            self.body(node.body)
            self.loops.pop()
            again.arrive(self.env)
            self.env = again.place(node)
        self.body(node.orelse)
        leave.arrive(self.env)
        self.env = leave.place(node)

    def loop(
        self,
        node: ast.While | ast.For,
        names: frozenset[str],
        test: Callable[[], Scalar],
        advance: Callable[[], None] | None,
        kind: str,
        enter: Callable[[], None] = lambda: None,
    ) -> None:
        """Lower a loop; again, with wider types, when its body turns out to need them at the head."""
        entry, shapes, mark = self.env, dict[str, Value](), self.b.mark()
        returned = len(self.returns.arrivals) if self.returns else 0
        while True:
            head = Block(node.lineno)
            at_head = loop_head(self, entry, shapes, names)
            parallel_moves(self, moves_into(at_head, entry, names), node)
            self.b.end("jump", head)
            self.b.place(head)
            self.env = dict(at_head)
            loop, exit_env, exit_block = self.loop_body(node, test, enter)
            self.env = loop.again.place(node)
            if self.b.current is None:
                break  # the body never comes round
            if advance:
                advance()
            wider = widen(at_head, self.env, names)
            if wider is None:
                parallel_moves(self, moves_into(at_head, self.env, names), node)
                self.b.current.back_edge = kind
                self.b.end("jump", head)
                break
            shapes = wider
            self.b.rollback(mark)
            if self.returns:
                del self.returns.arrivals[returned:]
        if exit_block is not None:
            self.b.place(exit_block)
            self.env = exit_env
            self.body(node.orelse)
            loop.leave.arrive(self.env)
        self.env = loop.leave.place(node)

    def loop_body(
        self, node: ast.While | ast.For, test: Callable[[], Scalar], enter: Callable[[], None]
    ) -> tuple[_Loop, Environment, Block | None]:
        """The test at the head and the body; the exit block is None for ``while True``."""
        loop = _Loop(Join(self), Join(self))
        condition = test()
        exit_env, exit_block = dict(self.env), None
        if not (condition.known and condition.const):
            first, exit_block = Block(node.lineno), Block(node.lineno)
            self.b.end("branch", first, exit_block, self.condition(condition, node), line=node.lineno)
            self.b.place(first)
        enter()
        self.loops.append(loop)
        self.body(node.body)
        self.loops.pop()
        loop.again.arrive(self.env)
        return loop, exit_env, exit_block

    def do_Break(self, node: ast.Break) -> None:
        self.loops[-1].leave.arrive(self.env)

    def do_Continue(self, node: ast.Continue) -> None:
        self.loops[-1].again.arrive(self.env)

    def do_Return(self, node: ast.Return) -> None:
        value = self.expr(node.value) if node.value else Static(None)
        if self.returns is not None:
            self.returns.arrive({RESULT: value})
            return
        if not (isinstance(value, Static) and value.value is None):
            raise self.fail(node, "'return' with a value: a kernel writes its results into an array")
        self.b.end("exit")

    # -- device functions -----------------------------------------------------------------------------------------

    def static_array(self, kind: ty.ArrayType, origin: tuple, node: ast.Call) -> ArrayRef:
        """An array that exists once for each place in a function and each signature of it, however often it is called.

        So a shared array is the same memory in two calls of a device function, and the calls may race.
        """
        if kind.space != "shared":
            return self.array(kind, "", origin)
        place = (self.source.name, self.source.text, node.lineno, node.col_offset, self.signature)
        number = self.b.static_arrays.get(place)
        if number is None:
            made = self.array(kind, "", origin)
            self.b.static_arrays[place] = made.number
            return made
        return ArrayRef(kind, number, "", ArrayRef.whole(kind.ndim))

    def inline(self, source: Source, arguments: list[Value], node: ast.AST) -> Value:
        """Lower a device function in place of its call."""
        if any(source.tree is other.tree for other in self.inlined):
            raise self.fail(node, f"recursion ('{source.name}' calls itself); use a loop")
        if len(arguments) != len(source.parameters):
            raise self.fail(
                node,
                f"{len(arguments)} argument(s) for '{source.name}', which takes {len(source.parameters)}",
            )
        saved = self.source, self.env, self.loops, self.returns, self.inlined, self.signature
        returns = self.returns = Join(self)
        self.source, self.loops, self.inlined = source, [], (*self.inlined, source)
        self.signature = tuple(type_of(a) for a in arguments)
        self.b.function = source.name
        self.env = dict(zip(source.parameters, arguments, strict=True))
        self.body(source.tree.body)
        returns.arrive({RESULT: Static(None)})
        self.source, self.env, self.loops, self.returns, self.inlined, self.signature = saved
        self.b.function = self.source.name
        merged = returns.place(node)
        if not merged:
            raise self.fail(node, f"'{source.name}', which never returns")
        result = merged[RESULT]
        if isinstance(result, Conflict):
            raise self.fail(
                node,
                f"the result of '{source.name}', which is of another kind on another path; let every path end with "
                "'return' and the same kind of value",
            )
        return result


def _is_range(node: ast.expr, lowering: Lowering) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "range"
        and "range" not in lowering.env
    )


def lower(source: Source, arguments: dict[str, Value], builder: Builder) -> Program:
    """A kernel's program for arguments of known types.

    ``arguments`` maps parameters to values; their registers are filled by the launch.
    """
    lowering = Lowering(builder, source)
    lowering.env = dict(arguments)
    builder.place(Block(source.first_line))
    lowering.body(source.tree.body)
    builder.end("fall")
    return builder.finish(NAMESPACE, source.numbered())


def parameter(builder: Builder, name: str, kind: object, number: tuple[int, ...]) -> Value:
    """The value of a parameter: an array operand, a register that the launch fills, or a tuple of such."""
    if isinstance(kind, ty.ArrayType):
        builder.arrays.append(("argument", number))
        return ArrayRef(kind, len(builder.arrays) - 1, name, ArrayRef.whole(kind.ndim))
    if isinstance(kind, tuple):
        return Tuple(tuple(parameter(builder, name, k, (*number, i)) for i, k in enumerate(kind)))
    assert isinstance(kind, np.dtype)
    return Scalar(kind, "p" + "_".join(map(str, number)))
