"""Lowering of calls: cuda.*, math.*, NumPy's scalar functions, a few builtins, and device functions."""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.compute.emulator import types as ty
from labkit.compute.emulator.expressions import describe
from labkit.compute.emulator.program import Block
from labkit.compute.emulator.source import Source, capture
from labkit.compute.emulator.values import ArrayRef, Intrinsic, Scalar, Static, Tuple, Value

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
TESTS = {"isnan", "isinf", "isfinite"}
NO_OPERATION = {"threadfence", "threadfence_block", "threadfence_system", "syncwarp", "nanosleep"}
ATOMIC_NAMES = {"add", "sub", "max", "min", "exch", "and_", "or_", "xor", "cas", "compare_and_swap"}


def lower_call(lo: Lowering, node: ast.Call) -> Value:
    """The value of a call, by what is called."""
    function = lo.expr(node.func)
    if not isinstance(function, Static):
        raise lo.fail(node, f"a call of {describe(function)}")
    called = function.value
    if isinstance(called, Intrinsic):
        return cuda_call(lo, called.path, node)
    source = device_function(called)
    if source is not None:
        if node.keywords:
            raise lo.fail(node, f"keyword arguments for '{source.name}'; pass them by position")
        return lo.inline(source, [lo.expr(a) for a in node.args], node)
    dtype = as_dtype(called)
    if dtype is not None and called not in (int, float, bool):
        return conversion(lo, dtype, node)
    if getattr(builtins, getattr(called, "__name__", ""), None) is called and called.__name__ in BUILTINS:
        return BUILTINS[called.__name__](lo, node)
    return library_call(lo, called, node)


def device_function(called: Any) -> Source | None:
    """The source of a function made by ``cuda.jit``: the emulator's, or numba's own."""
    source = getattr(called, "source", None)
    if isinstance(source, Source):
        return source
    original = getattr(called, "py_func", None)
    return capture(original) if isinstance(original, FunctionType) else None


def as_dtype(thing: Any) -> np.dtype | None:
    """The scalar type that a NumPy or numba type, or a builtin, names; None when it names none."""
    if isinstance(thing, np.dtype):
        return thing
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
    if called in (np.absolute, np.minimum, np.maximum):
        return BUILTINS[{"absolute": "abs", "minimum": "min", "maximum": "max"}[called.__name__]](lo, node)
    shown = ast.unparse(node.func)
    if isinstance(called, FunctionType):
        raise lo.fail(node, f"the plain Python function '{shown}'; decorate it with @cuda.jit(device=True)")
    raise lo.fail(
        node, f"'{shown}'; math.*, abs, min, max, round, NumPy's scalar types and device functions are there"
    )


def floating(lo: Lowering, values: list[Scalar], node: ast.AST) -> list[Scalar]:
    """Arguments of a floating-point function: all in the widest floating type, float64 when one is a whole number."""
    narrow = all(v.type.kind == "f" for v in values)
    dtype = np.result_type(*(v.type for v in values)) if narrow else ty.FLOAT64
    return [lo.cast(v, dtype, node) for v in values]


# -- builtins -----------------------------------------------------------------------------------------------------


def builtin_abs(lo: Lowering, node: ast.Call) -> Value:
    (value,) = positional(lo, node, 1)
    return lo.emit(value.type, f"absolute({value.code})", (value,), node)


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
            result = lo.emit(dtype, f"{function}({a.code}, {b.code})", (a, b), node)
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
}


# -- cuda.* -------------------------------------------------------------------------------------------------------


def cuda_call(lo: Lowering, path: str, node: ast.Call) -> Value:
    if path in NO_OPERATION:
        # lanes of a warp run in step, and every write is visible at once
        return Static(None)
    if path.startswith("atomic.") and path.removeprefix("atomic.") in ATOMIC_NAMES:
        return atomic(lo, path.removeprefix("atomic."), node)
    handler = CUDA.get(path)
    if handler is None:
        raise lo.fail(node, f"'cuda.{path}', which the emulator does not know; run this kernel on a GPU")
    return handler(lo, node)


def axes(attribute: str, dtype: np.dtype, getter: str) -> Callable[[Lowering, ast.Call], Value]:
    """``grid(n)`` and ``gridsize(n)``: one number, or a tuple of two or three."""

    def lower(lo: Lowering, node: ast.Call) -> Value:
        (count,) = positional(lo, node, 1)
        if not (count.known and count.const in (1, 2, 3)):
            raise lo.fail(node, f"'{ast.unparse(node)}': write 1, 2 or 3, the number of dimensions")
        values = [
            lo.emit(dtype, f"g.{getter}({attribute!r}, {k})", (), node, "move") for k in range(count.const)
        ]
        return values[0] if count.const == 1 else Tuple(tuple(values))

    return lower


def syncthreads(lo: Lowering, node: ast.Call) -> Value:
    after = Block(node.lineno)
    assert lo.b.current is not None
    lo.b.current.line = node.lineno
    lo.b.end("barrier", after)
    lo.b.place(after)
    return Static(None)


def array_in(space: str) -> Callable[[Lowering, ast.Call], Value]:
    """``cuda.shared.array(shape, dtype)`` and ``cuda.local.array``."""

    def lower(lo: Lowering, node: ast.Call) -> Value:
        given = dict(zip(("shape", "dtype"), node.args, strict=False))
        given.update({k.arg: k.value for k in node.keywords if k.arg})
        if set(given) - {"alignment"} != {"shape", "dtype"}:
            raise lo.fail(
                node, f"'{ast.unparse(node)}'; give it a shape and a dtype, like (16, 16) and np.float32"
            )
        shape = constant_shape(lo, given["shape"], space)
        kind = lo.expr(given["dtype"])
        dtype = as_dtype(kind.value) if isinstance(kind, Static) else None
        if isinstance(kind, Static) and isinstance(kind.value, str):
            dtype = np.dtype(kind.value)
        if dtype is None:
            raise lo.fail(node, f"'{ast.unparse(given['dtype'])}' as a dtype; use np.float32, np.int32, ...")
        dynamic = space == "shared" and shape == (0,)
        origin = ("dynamic", dtype) if dynamic else (space, shape, dtype, node.lineno)
        return lo.array(ty.ArrayType(dtype, len(shape), space), "", origin)

    return lower


def constant_shape(lo: Lowering, node: ast.expr, space: str) -> tuple[int, ...]:
    value = lo.expr(node)
    members = value.items if isinstance(value, Tuple) else (value,)
    lengths = [m.const for m in members if isinstance(m, Scalar) and m.known and m.type.kind in "iu"]
    if len(lengths) != len(members) or any(n < 0 for n in lengths):
        raise lo.fail(
            node,
            f"'{ast.unparse(node)}' as the shape of a {space} array; it must be constant: a number, or a global such as TILE = 16",
        )
    return tuple(int(n) for n in lengths)


def constant_array(lo: Lowering, node: ast.Call) -> Value:
    value = lo.expr(node.args[0]) if len(node.args) == 1 else None
    if not isinstance(value, ArrayRef):
        raise lo.fail(
            node, f"'{ast.unparse(node)}'; const.array_like takes a NumPy array defined outside the kernel"
        )
    return value


def atomic(lo: Lowering, name: str, node: ast.Call) -> Value:
    """``cuda.atomic.add(array, index, value)`` and its relatives; the result is the old value."""
    array = lo.expr(node.args[0]) if node.args else None
    wanted = {"cas": 4, "compare_and_swap": 3}.get(name, 3)
    if not isinstance(array, ArrayRef) or len(node.args) != wanted or node.keywords:
        usage = (
            "array, old, new"
            if name == "compare_and_swap"
            else "array, index, old, new"
            if name == "cas"
            else "array, index, value"
        )
        raise lo.fail(node, f"'{ast.unparse(node)}'; write cuda.atomic.{name}({usage})")
    if name == "compare_and_swap":
        index: ast.expr = ast.copy_location(ast.Constant(0), node)
        operands = node.args[1:]
    else:
        index, operands = node.args[1], node.args[2:]
    subscript = ast.copy_location(ast.Subscript(node.args[0], index, ast.Load()), node)
    element = lo.index(array, subscript)
    if element.axes:
        raise lo.fail(
            node,
            f"'{ast.unparse(node)}': '{array.name}' has {array.type.ndim} dimensions; give an index for each",
        )
    values = [lo.cast(lo.scalar(v), array.type.dtype, node) for v in operands]
    return emit_atomic(lo, name, element, values, node)


def emit_atomic(lo: Lowering, name: str, element: ArrayRef, values: list[Scalar], node: ast.Call) -> Value:
    keys = lo.element_keys(element)
    index = "".join(f"{k.code}, " for k in keys)
    operands = ", ".join(v.code for v in values)
    site = lo.site(node, element.name)
    code = f"M.atomic({name!r}, {element.code}, ({index}), ({operands},), g, {site}, {lo.unused is not node})"
    return lo.emit(element.type.dtype, code, (*keys, *values), node, "atomic")


def select(lo: Lowering, node: ast.Call) -> Value:
    test, a, b = positional(lo, node, 3)
    dtype = ty.unify(a.type, b.type)
    test, a, b = lo.truth(test, node), lo.cast(a, dtype, node), lo.cast(b, dtype, node)
    return lo.emit(dtype, f"select({lo.condition(test, node)}, {a.code}, {b.code})", (test, a, b), node)


CUDA: dict[str, Callable[[Lowering, ast.Call], Value]] = {
    "grid": axes("grid", ty.INT64, "coordinate"),
    "gridsize": axes("all", ty.INT64, "extent"),
    "syncthreads": syncthreads,
    "shared.array": array_in("shared"),
    "local.array": array_in("local"),
    "const.array_like": constant_array,
    "selp": select,
}
