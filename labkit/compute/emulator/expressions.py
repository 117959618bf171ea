"""Lowering of expressions: each becomes registers with numba.cuda's types."""

from __future__ import annotations

import ast
import operator
from typing import Any

import numpy as np

from labkit.compute.emulator import types as ty
from labkit.compute.emulator.conversions import caster
from labkit.compute.emulator.joins import Join
from labkit.compute.emulator.program import Block, Builder
from labkit.compute.emulator.source import Source
from labkit.compute.emulator.subscripts import SubscriptLowering
from labkit.compute.emulator.subset import unsupported
from labkit.compute.emulator.values import ArrayRef, Conflict, Scalar, Static, Tuple, Value, describe

OPERATORS: dict[type[ast.operator], tuple[str, Any]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow),
    ast.LShift: ("<<", operator.lshift),
    ast.RShift: (">>", operator.rshift),
    ast.BitAnd: ("&", operator.and_),
    ast.BitOr: ("|", operator.or_),
    ast.BitXor: ("^", operator.xor),
}
LONGEST_BITS = 4096  # of a constant that is calculated while lowering
UNARY: dict[type[ast.unaryop], tuple[str, Any]] = {
    ast.USub: ("-", operator.neg),
    ast.UAdd: ("+", operator.pos),
    ast.Invert: ("~", operator.invert),
}
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
# The largest literal exponent that numba multiplies out.
MULTIPLIED_OUT = 0x10000
# Expressions that can be evaluated for every lane, needed or not: they touch no memory and cannot fail.
PURE = (
    ast.Name,
    ast.Constant,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.BoolOp,
    ast.IfExp,
    ast.Attribute,
    ast.operator,
    ast.unaryop,
    ast.cmpop,
    ast.boolop,
    ast.expr_context,
)


def is_pure(node: ast.AST) -> bool:
    """Whether an expression may be evaluated by lanes that do not need it."""
    if isinstance(node, ast.Subscript):
        # a.shape[0] is a constant of the launch, not a memory access
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape" and is_pure(node.slice)
    return isinstance(node, PURE) and all(is_pure(child) for child in ast.iter_child_nodes(node))


def calculated(compute: Any, *constants: Any) -> Any:
    """What an operator makes of constants; None when that is nothing, or has more bits than any type."""
    try:
        if compute in (operator.pow, operator.lshift) and all(isinstance(c, int) for c in constants):
            base, count = constants
            if count * (base.bit_length() if compute is operator.pow else 1) > LONGEST_BITS:
                return None
        return compute(*constants)
    except (ArithmeticError, TypeError, ValueError):
        return None


class ExpressionLowering(SubscriptLowering):
    """Lowers expressions of one function into a builder; statements are added by a subclass."""

    def __init__(self, builder: Builder, source: Source):
        self.b = builder
        self.source = source
        self.env: dict[str, Value] = {}
        self.inlined: tuple[Source, ...] = (source,)
        self._hidden = 0

    # -- small tools ------------------------------------------------------------------------------------------

    def fail(self, node: ast.AST, what: str) -> Exception:
        return unsupported(self.source, node, what)

    def site(self, node: ast.AST, operand: str = "") -> int:
        line = getattr(node, "lineno", self.source.first_line)
        return self.b.site(self.source.name, line, self.source.line(line), operand)

    def hidden_name(self, purpose: str) -> str:
        """A variable no learner can write, for values that cross blocks."""
        self._hidden += 1
        return f"<{purpose}{self._hidden}>"

    def const(self, value: Any) -> Scalar:
        """A literal or captured number, with numba's type for it."""
        if isinstance(value, bool):
            typed: Any = np.bool_(value)
        elif isinstance(value, int):
            typed = np.int64(value) if -(2**63) <= value < 2**63 else np.uint64(value % 2**64)
        elif isinstance(value, float):
            typed = np.float64(value)
        elif isinstance(value, complex):
            typed = np.complex128(value)
        else:
            typed = value
        return Scalar(typed.dtype, self.b.constant(typed), value)

    def emit(
        self,
        dtype: np.dtype,
        code: str,
        operands: tuple[Scalar, ...],
        node: ast.AST,
        kind: str | None = None,
        operations: int = 1,
    ) -> Scalar:
        """A new register of a type; ``kind`` and ``operations`` say what the step counts as."""
        registers = tuple(r for o in operands for r in o.registers)
        kind = kind or (dtype.str[1:] if dtype.kind == "f" else "int")
        line = getattr(node, "lineno", 0)
        return Scalar(dtype, self.b.emit(code, registers, line, kind, operations=operations))

    def cast(self, value: Scalar, dtype: np.dtype, node: ast.AST) -> Scalar:
        if value.type == dtype:
            return value
        if value.known and dtype.kind in "biuf":
            with np.errstate(all="ignore"):
                number = caster(dtype)(np.asarray(value.const))[()]
            return Scalar(dtype, self.b.constant(number), number.item())
        return self.emit(dtype, f"cast_{ty.short_name(dtype)}({value.code})", (value,), node, "cast")

    def truth(self, value: Value, node: ast.AST) -> Scalar:
        return self.cast(self.need_scalar(value, node), ty.BOOL, node)

    def condition(self, test: Scalar, node: ast.AST) -> str:
        """The register a branch tests."""
        return self.emit(ty.BOOL, test.code, (test,), node, "move").code if test.known else test.code

    def need_scalar(self, value: Value, node: ast.AST) -> Scalar:
        if isinstance(value, Scalar):
            return value
        raise self.fail(node, f"{describe(value)} where a number is needed")

    def scalar(self, node: ast.expr) -> Scalar:
        return self.need_scalar(self.expr(node), node)

    # -- dispatch ---------------------------------------------------------------------------------------------

    def expr(self, node: ast.expr) -> Value:
        method = getattr(self, f"expr_{type(node).__name__}", None)
        if method is None:
            raise self.fail(node, f"{type(node).__name__.lower()} expressions")
        return method(node)

    def expr_Constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, (bool, int, float, complex)):
            return self.const(node.value)
        return Static(node.value)

    def expr_Tuple(self, node: ast.Tuple) -> Value:
        return Tuple(tuple(self.expr(item) for item in node.elts))

    def expr_Name(self, node: ast.Name) -> Value:
        if node.id in self.env:
            return self.defined(self.env[node.id], node)
        if node.id in self.source.assigned:
            raise self.fail(node, f"'{node.id}' before it is assigned")
        try:
            return self.wrap(self.source.names[node.id], node.id)
        except KeyError:
            raise self.fail(node, f"'{node.id}', which is not defined anywhere") from None

    def defined(self, value: Value, node: ast.Name) -> Value:
        if isinstance(value, Conflict):
            raise self.fail(
                node, f"'{node.id}', which stands for different things on different paths; use two names"
            )
        if isinstance(value, Scalar) and value.undefined:
            code = f"g.defined({value.code}, {self.site(node, node.id)})"
            return self.emit(value.type, code, (value,), node, "move")
        return value

    def wrap(self, value: Any, name: str) -> Value:
        """A captured Python object as a value; numbers and arrays are constants of the kernel, as in numba."""
        if isinstance(value, (bool, int, float, complex, np.generic)):
            return self.const(value)
        if isinstance(value, np.ndarray):
            return self.array(
                ty.ArrayType(value.dtype, value.ndim, "constant", readonly=True), name, ("constant", value)
            )
        if isinstance(value, tuple):
            return Tuple(tuple(self.wrap(item, name) for item in value))
        return Static(value)

    def array(self, kind: ty.ArrayType, name: str, origin: tuple) -> ArrayRef:
        self.b.arrays.append(origin)
        return ArrayRef(kind, len(self.b.arrays) - 1, name, ArrayRef.whole(kind.ndim))

    # -- operators --------------------------------------------------------------------------------------------

    def expr_BinOp(self, node: ast.BinOp) -> Value:
        if isinstance(node.op, ast.MatMult):
            raise self.fail(node, "'@'; write the sum over the inner index as a loop")
        left, right = self.expr(node.left), self.expr(node.right)
        if isinstance(left, Tuple) and isinstance(right, Tuple) and isinstance(node.op, ast.Add):
            return Tuple(left.items + right.items)
        return self.binary(
            type(node.op), self.need_scalar(left, node.left), self.need_scalar(right, node.right), node
        )

    def binary(self, op: type[ast.operator], left: Scalar, right: Scalar, node: ast.AST) -> Scalar:
        symbol, compute = OPERATORS[op]
        result, operand = self.operator_types(op, left, right, node)
        folded = self.fold(compute, left, right, result)
        if folded is not None:
            return folded
        if op is ast.Pow:
            return self.power(left, right, result, node)
        left, right = self.cast(left, operand, node), self.cast(right, operand, node)
        return self.emit(result, f"{left.code} {symbol} {right.code}", (left, right), node)

    def operator_types(
        self, op: type, left: Scalar, right: Scalar, node: ast.AST
    ) -> tuple[np.dtype, np.dtype]:
        """The type of the result, and the type in which the operands meet."""
        if op in (ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor):
            if not {left.type.kind, right.type.kind} <= set("biu"):
                raise self.fail(
                    node, f"'{OPERATORS[op][0]}' on {left.type} and {right.type}; it works on whole numbers"
                )
            shift = op in (ast.LShift, ast.RShift)
            result = ty.shift_result(left.type) if shift else ty.bitwise_result(left.type, right.type)
        elif op is ast.Div:
            result = ty.division_result(left.type, right.type)
        else:
            result = ty.arithmetic_result(left.type, right.type)
        return result, result

    def fold(self, compute: Any, left: Scalar, right: Scalar, result: np.dtype) -> Scalar | None:
        if not (left.known and right.known):
            return None
        value = calculated(compute, left.const, right.const)
        if value is None:
            return None
        if result.kind in "iu" and not np.iinfo(result).min <= value <= np.iinfo(result).max:
            return None
        return Scalar(result, self.b.constant(result.type(value)), value, calculated=True)

    def power(self, left: Scalar, right: Scalar, result: np.dtype, node: ast.AST) -> Scalar:
        if right.known and isinstance(right.const, int) and self.multiplied_out(left, right.const):
            result = ty.power_result(left.type)
            base = self.cast(left, result, node)
            # bit_count and bit_length disregard the sign, whose division is one operation more
            operations = max(0, right.const.bit_length() + right.const.bit_count() - 2) + (right.const < 0)
            return self.emit(
                result, f"int_power({base.code}, {right.const})", (base,), node, operations=operations
            )
        left, right = self.cast(left, result, node), self.cast(right, result, node)
        return self.emit(result, f"power({left.code}, {right.code})", (left, right), node)

    @staticmethod
    def multiplied_out(base: Scalar, exponent: int) -> bool:
        """Whether numba multiplies a literal exponent out, in the type of the base; inverses of whole numbers apart."""
        return abs(exponent) <= MULTIPLIED_OUT and (exponent >= 0 or base.type.kind == "f")

    def expr_UnaryOp(self, node: ast.UnaryOp) -> Value:
        value = self.scalar(node.operand)
        if isinstance(node.op, ast.Not):
            value = self.truth(value, node)
            if value.known:
                return self.const(not value.const)
            return self.emit(ty.BOOL, f"~{value.code}", (value,), node)
        if isinstance(node.op, ast.Invert) and value.type.kind not in "biu":
            raise self.fail(node, f"'~' on {value.type}; it works on whole numbers")
        if isinstance(node.op, ast.Invert) and value.type == ty.BOOL:
            return self.emit(ty.BOOL, f"~{value.code}", (value,), node)
        result = ty.integer_result(value.type) if value.type.kind in "biu" else value.type
        if value.type == ty.BOOL:
            value = self.cast(value, result, node)
        symbol, compute = UNARY[type(node.op)]
        if value.known:
            number = np.asarray(compute(value.const)).astype(result)[()]
            return Scalar(result, self.b.constant(number), compute(value.const))
        if symbol != "+":
            # numba negates and inverts in the operand's own width, and widens then
            kind = "sign" if result.kind == "f" else "int"
            value = self.emit(value.type, f"{symbol}{value.code}", (value,), node, kind)
        return self.cast(value, result, node)

    def expr_Compare(self, node: ast.Compare) -> Value:
        if any(type(op) not in COMPARISONS for op in node.ops):
            raise self.fail(node, "'is' or 'in'; compare numbers with ==, !=, <, <=, >, >=")
        if len(node.ops) == 1 or all(is_pure(c) for c in node.comparators[1:]):
            left, result = self.scalar(node.left), None
            for op, comparator in zip(node.ops, node.comparators, strict=True):
                right = self.scalar(comparator)
                test = self.compare(op, left, right, node)
                result = test if result is None else self.both(result, test, node)
                left = right
            assert result is not None
            return result
        # a < b < f(c): the later comparison is made only where the earlier one holds
        outer, inner = self.hidden_name("outer"), self.hidden_name("inner")
        self.env[outer], self.env[inner] = self.scalar(node.left), self.scalar(node.comparators[0])
        first = ast.Compare(ast.Name(outer, ast.Load()), node.ops[:1], [ast.Name(inner, ast.Load())])
        rest = ast.Compare(ast.Name(inner, ast.Load()), node.ops[1:], node.comparators[1:])
        chain = ast.BoolOp(ast.And(), [first, rest])
        for part in (chain, first, rest):
            ast.copy_location(part, node)
        held = self.expr(ast.fix_missing_locations(chain))
        del self.env[outer], self.env[inner]
        return held

    def compare(self, op: ast.cmpop, left: Scalar, right: Scalar, node: ast.AST) -> Scalar:
        symbol = COMPARISONS[type(op)]
        if left.known and right.known:
            return self.const(bool(eval(f"a {symbol} b", {"a": left.const, "b": right.const})))
        if left.type.kind in "iu" and right.type.kind == "f":
            left = self.cast(left, ty.FLOAT64, node)
        if right.type.kind in "iu" and left.type.kind == "f":
            right = self.cast(right, ty.FLOAT64, node)
        return self.emit(ty.BOOL, f"{left.code} {symbol} {right.code}", (left, right), node, "compare")

    def both(self, left: Scalar, right: Scalar, node: ast.AST) -> Scalar:
        return self.emit(ty.BOOL, f"both({left.code}, {right.code})", (left, right), node, "logic")

    def expr_BoolOp(self, node: ast.BoolOp) -> Value:
        if all(is_pure(v) for v in node.values[1:]):
            values = [self.scalar(v) for v in node.values]
            if all(v.type == ty.BOOL for v in values):
                name = "both" if isinstance(node.op, ast.And) else "either"
                result = values[0]
                for value in values[1:]:
                    result = self.emit(
                        ty.BOOL, f"{name}({result.code}, {value.code})", (result, value), node, "logic"
                    )
                return result
        return self.short_circuit(node)

    def short_circuit(self, node: ast.BoolOp) -> Value:
        """``and``/``or`` whose right side runs only on the lanes that need it."""
        name = self.hidden_name("bool")
        join = Join(self)
        self.env[name] = self.scalar(node.values[0])
        for value in node.values[1:]:
            test = self.truth(self.env[name], node)
            more, done = Block(node.lineno), Block(node.lineno)
            paths = (more, done) if isinstance(node.op, ast.And) else (done, more)
            self.b.end("branch", *paths, self.condition(test, node), line=node.lineno)
            self.b.place(done)
            join.arrive(self.env)
            self.b.place(more)
            self.env = {**self.env, name: self.scalar(value)}
        join.arrive(self.env)
        self.env = join.place(node)
        return self.env.pop(name)

    def expr_IfExp(self, node: ast.IfExp) -> Value:
        test = self.truth(self.expr(node.test), node.test)
        if test.known:
            return self.expr(node.body if test.const else node.orelse)
        if is_pure(node.body) and is_pure(node.orelse):
            a, b = self.scalar(node.body), self.scalar(node.orelse)
            result = ty.unify(a.type, b.type)
            a, b = self.cast(a, result, node), self.cast(b, result, node)
            return self.emit(result, f"select({test.code}, {a.code}, {b.code})", (test, a, b), node, "select")
        name = self.hidden_name("if")
        join = Join(self)
        before = self.env
        first, second = Block(node.lineno), Block(node.lineno)
        self.b.end("branch", first, second, test.code, line=node.lineno)
        for block, part in ((first, node.body), (second, node.orelse)):
            self.b.place(block)
            self.env = dict(before)
            self.env = {**self.env, name: self.expr(part)}
            join.arrive(self.env)
        self.env = join.place(node)
        return self.env.pop(name)
