"""Lowering of calls of math.*, NumPy's scalar functions and types, and a few builtins."""

from __future__ import annotations

import ast
import cmath
import math
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.compute.emulator import types as ty
from labkit.compute.emulator.typenames import ScalarName
from labkit.compute.emulator.values import ArrayRef, Scalar, Static, Tuple, Value

if TYPE_CHECKING:
    from labkit.compute.emulator.lower import Lowering

# name in math (and, where it differs, in NumPy) -> NumPy function; results keep float32, whole numbers become float64
ONE_ARGUMENT = {
    **{
        n: n
        for n in (
            "sqrt",
            "exp",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
            "sin",
            "cos",
            "tan",
            "sinh",
            "cosh",
        )
    },
    **{n: n for n in ("tanh", "floor", "ceil", "trunc", "fabs", "degrees", "radians", "cbrt", "exp2")},
    **{f"a{n}": f"arc{n}" for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"arc{n}": f"arc{n}" for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}
BY_ELEMENT = {"erf", "erfc", "gamma", "lgamma"}
TWO_ARGUMENTS = {
    "pow": "power",
    "atan2": "arctan2",
    "arctan2": "arctan2",
    "hypot": "hypot",
    "copysign": "copysign",
    "fmod": "fmod",
}
PAIRS = {"frexp": ty.INT32, "modf": None}
COMPLEX64 = np.dtype(np.complex64)
COMPLEX = {
    **{n: n for n in ("sqrt", "exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"a{n}": f"arc{n}" for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}
# of a number and NaN: minimum and maximum give NaN, fmin and fmax the number
CHOICES = {np.minimum: "np.minimum", np.maximum: "np.maximum", np.fmin: "np.fmin", np.fmax: "np.fmax"}
TESTS = {"isnan", "isinf", "isfinite"}


def as_dtype(thing: Any) -> np.dtype | None:
    """The scalar type that a NumPy or numba type, or a builtin, names; None when it names none."""
    if isinstance(thing, (np.dtype, ScalarName)):
        return thing if isinstance(thing, np.dtype) else thing.dtype
    if isinstance(thing, type) and (issubclass(thing, np.generic) or thing in (int, float, bool, complex)):
        return np.dtype(thing)
    if type(thing).__module__.startswith(("numba", "numba_cuda")):
        try:
            return np.dtype(str(thing))
        except TypeError:
            return None
    return None


def conversion(lo: Lowering, dtype: np.dtype, node: ast.Call) -> Value:
    values = positional(lo, node, 1)
    return lo.cast(values[0], dtype, node)


def positional(lo: Lowering, node: ast.Call, count: int) -> list[Scalar]:
    """The arguments of a call that takes ``count`` numbers."""
    if node.keywords or len(node.args) != count:
        raise lo.fail(node, f"{ast.unparse(node.func)}() with anything but {count} argument(s)")
    return [lo.scalar(a) for a in node.args]


# -- math and NumPy -----------------------------------------------------------------------------------------------


def library_call(lo: Lowering, called: Any, node: ast.Call) -> Value:
    name = getattr(called, "__name__", "")
    known = getattr(math, name, None) is called or getattr(np, name, None) is called
    if known and name in ONE_ARGUMENT:
        value = floating(lo, positional(lo, node, 1), node)[0]
        return lo.emit(value.type, f"np.{ONE_ARGUMENT[name]}({value.code})", (value,), node)
    if known and name in BY_ELEMENT:
        value = floating(lo, positional(lo, node, 1), node)[0]
        return lo.emit(value.type, f"math_{name}({value.code})", (value,), node)
    if known and name in TESTS:
        value = floating(lo, positional(lo, node, 1), node)[0]
        return lo.emit(ty.BOOL, f"np.{name}({value.code})", (value,), node)
    if known and name in TWO_ARGUMENTS:
        a, b = floating(lo, positional(lo, node, 2), node)
        return lo.emit(a.type, f"np.{TWO_ARGUMENTS[name]}({a.code}, {b.code})", (a, b), node)
    if known and name in PAIRS:
        return pair(lo, name, node)
    if known and name == "ldexp":
        value, exponent = positional(lo, node, 2)
        value = floating(lo, [value], node)[0]
        code = f"np.ldexp({value.code}, exact({exponent.code}, {lo.b.constant(ty.INT32)}))"
        return lo.emit(value.type, code, (value, exponent), node)
    if name and getattr(cmath, name, None) is called and name in COMPLEX:
        (value,) = positional(lo, node, 1)
        value = lo.cast(value, COMPLEX64 if value.type == COMPLEX64 else np.dtype(np.complex128), node)
        return lo.emit(value.type, f"np.{COMPLEX[name]}({value.code})", (value,), node)
    if called is np.absolute:
        return builtin_abs(lo, node)
    if isinstance(called, np.ufunc) and called in CHOICES:
        return choice(lo, CHOICES[called], node)
    shown = ast.unparse(node.func)
    if isinstance(called, FunctionType):
        raise lo.fail(node, f"the plain Python function '{shown}'; decorate it with @cuda.jit(device=True)")
    raise lo.fail(
        node, f"'{shown}'; math.*, abs, min, max, round, NumPy's scalar types and device functions are there"
    )


def choice(lo: Lowering, function: str, node: ast.Call) -> Value:
    """NumPy's minimum and maximum: a whole number is converted to the other's floating type, however narrow."""
    a, b = positional(lo, node, 2)
    floats = {v.type for v in (a, b) if v.type.kind == "f"}
    alone = len(floats) == 1 and "c" not in a.type.kind + b.type.kind
    dtype = floats.pop() if alone else np.promote_types(a.type, b.type)
    a, b = lo.cast(a, dtype, node), lo.cast(b, dtype, node)
    return lo.emit(dtype, f"{function}(dense({a.code}), dense({b.code}))", (a, b), node, "select")


def pair(lo: Lowering, name: str, node: ast.Call) -> Value:
    """``frexp`` and ``modf``: two results."""
    value = floating(lo, positional(lo, node, 1), node)[0]
    both = lo.b.emit(f"np.{name}({value.code})", value.registers, node.lineno)
    first = Scalar(value.type, lo.b.emit(f"{both}[0]", (both,), node.lineno))
    second = Scalar(PAIRS[name] or value.type, lo.b.emit(f"{both}[1]", (both,), node.lineno))
    return Tuple((first, second))


def builtin_complex(lo: Lowering, node: ast.Call) -> Value:
    parts = floating(lo, positional(lo, node, len(node.args)), node)
    dtype = COMPLEX64 if parts and parts[0].type == ty.FLOAT32 else np.dtype(np.complex128)
    if len(parts) == 1:
        return lo.cast(parts[0], dtype, node)
    if len(parts) != 2:
        raise lo.fail(node, "complex() with anything but one or two numbers")
    a, b = (lo.cast(p, dtype, node) for p in parts)
    turn = lo.b.constant(dtype.type(1j))
    return lo.emit(dtype, f"{a.code} + {b.code} * {turn}", (a, b), node)


def builtin_print(lo: Lowering, node: ast.Call) -> Value:
    """``print`` of numbers and literal text, one line a thread, as the device's printf shows them."""
    values = [lo.expr(a) for a in node.args]
    parts = []
    for value, argument in zip(values, node.args, strict=True):
        if isinstance(value, Static) and isinstance(value.value, str):
            parts.append(repr(value.value))
        else:
            parts.append(lo.need_scalar(value, argument).code)
    registers = [r for v in values if isinstance(v, Scalar) for r in v.registers]
    lo.b.do(f"M.show(g, ({''.join(p + ', ' for p in parts)}))", registers, node.lineno, "print")
    return Static(None)


def floating(lo: Lowering, values: list[Scalar], node: ast.AST) -> list[Scalar]:
    """Arguments of a floating-point function: all in the widest floating type, float64 when one is a whole number."""
    narrow = all(v.type.kind == "f" for v in values)
    dtype = np.result_type(*(v.type for v in values)) if narrow else ty.FLOAT64
    return [lo.cast(v, dtype, node) for v in values]


# -- builtins -----------------------------------------------------------------------------------------------------


def builtin_abs(lo: Lowering, node: ast.Call) -> Value:
    (value,) = positional(lo, node, 1)
    result = np.dtype(f"f{value.type.itemsize // 2}") if value.type.kind == "c" else value.type
    return lo.emit(result, f"absolute({value.code})", (value,), node, "select")


def extreme(function: str) -> Callable[[Lowering, ast.Call], Value]:
    def lower(lo: Lowering, node: ast.Call) -> Value:
        values = [lo.expr(a) for a in node.args]
        if len(values) == 1 and isinstance(values[0], Tuple):
            values = list(values[0].items)
        if node.keywords or len(values) < 2:
            raise lo.fail(node, f"{ast.unparse(node)}; give it two or more numbers")
        result, *rest = (lo.need_scalar(v, node) for v in values)
        for value in rest:
            dtype = np.promote_types(result.type, value.type)
            a, b = lo.cast(result, dtype, node), lo.cast(value, dtype, node)
            result = lo.emit(dtype, f"{function}({a.code}, {b.code})", (a, b), node, "select")
        return result

    return lower


def builtin_int(lo: Lowering, node: ast.Call) -> Value:
    (value,) = positional(lo, node, 1)
    return value if value.type.kind in "iu" else lo.cast(value, ty.INT64, node)


def builtin_float(lo: Lowering, node: ast.Call) -> Value:
    (value,) = positional(lo, node, 1)
    return value if value.type.kind == "f" else lo.cast(value, ty.FLOAT64, node)


def builtin_bool(lo: Lowering, node: ast.Call) -> Value:
    return lo.truth(positional(lo, node, 1)[0], node)


def builtin_round(lo: Lowering, node: ast.Call) -> Value:
    if len(node.args) == 2:
        value, digits = positional(lo, node, 2)
        if not digits.known:
            raise lo.fail(node, "round() to a variable number of digits")
        value = floating(lo, [value], node)[0]
        if digits.const > np.log10(np.finfo(value.type).max):
            return value  # beyond the point where the type has any digit
        if digits.const < -400:
            return lo.emit(value.type, f"{value.code} * 0", (value,), node)
        return lo.emit(value.type, f"np.round({value.code}, {int(digits.const)})", (value,), node)
    (value,) = positional(lo, node, 1)
    return lo.emit(ty.INT64, f"to_nearest({value.code})", (value,), node)


def builtin_len(lo: Lowering, node: ast.Call) -> Value:
    value = lo.expr(node.args[0]) if len(node.args) == 1 else None
    if isinstance(value, ArrayRef) and value.axes:
        return lo.length(value, 0, node)
    if isinstance(value, Tuple):
        return lo.const(len(value.items))
    raise lo.fail(node, f"'{ast.unparse(node)}'; len() takes an array or a tuple")


def builtin_pow(lo: Lowering, node: ast.Call) -> Value:
    a, b = positional(lo, node, 2)
    return lo.binary(ast.Pow, a, b, node)


def builtin_divmod(lo: Lowering, node: ast.Call) -> Value:
    a, b = positional(lo, node, 2)
    return Tuple((lo.binary(ast.FloorDiv, a, b, node), lo.binary(ast.Mod, a, b, node)))


def builtin_range(lo: Lowering, node: ast.Call) -> Value:
    raise lo.fail(node, "range() outside a 'for' loop")


BUILTINS: dict[str, Callable[[Lowering, ast.Call], Value]] = {
    "abs": builtin_abs,
    "min": extreme("minimum"),
    "max": extreme("maximum"),
    "int": builtin_int,
    "float": builtin_float,
    "bool": builtin_bool,
    "round": builtin_round,
    "len": builtin_len,
    "pow": builtin_pow,
    "divmod": builtin_divmod,
    "range": builtin_range,
    "complex": builtin_complex,
    "print": builtin_print,
}
