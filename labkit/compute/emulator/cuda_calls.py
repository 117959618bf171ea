"""Lowering of ``cuda.*`` calls inside kernels."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from labkit.compute.emulator import types as ty
from labkit.compute.emulator.expressions import OPERATORS, UNARY, calculated
from labkit.compute.emulator.libdevice import BITS, half_call, libdevice_call
from labkit.compute.emulator.library import as_dtype, positional
from labkit.compute.emulator.values import ArrayRef, Scalar, Static, Tuple, Value
from labkit.compute.emulator.warp_calls import WARP

if TYPE_CHECKING:
    from labkit.compute.emulator.lower import Lowering

NO_OPERATION = {"threadfence", "threadfence_block", "threadfence_system", "nanosleep"}
ATOMIC_NAMES = {
    "add",
    "sub",
    "max",
    "min",
    "exch",
    "and_",
    "or_",
    "xor",
    "cas",
    "compare_and_swap",
    "inc",
    "dec",
    "nanmax",
    "nanmin",
}


def cuda_call(lo: Lowering, path: str, node: ast.Call) -> Value:
    if path in NO_OPERATION:
        # lanes of a warp run in step, and every write is visible at once
        return Static(None)
    if path.startswith("atomic.") and path.removeprefix("atomic.") in ATOMIC_NAMES:
        return atomic(lo, path.removeprefix("atomic."), node)
    family, _, name = path.partition(".")
    if family == "libdevice":
        return libdevice_call(lo, name, node)
    if family == "fp16":
        return half_call(lo, name, node)
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
        named = lo.expr(given["dtype"])
        dtype = as_dtype(named.value) if isinstance(named, Static) else None
        if isinstance(named, Static) and isinstance(named.value, str):
            dtype = np.dtype(named.value)
        if dtype is None:
            raise lo.fail(node, f"'{ast.unparse(given['dtype'])}' as a dtype; use np.float32, np.int32, ...")
        dynamic = space == "shared" and shape == (0,)
        kind = ty.ArrayType(dtype, len(shape), space)
        if dynamic:
            return lo.array(kind, "", ("dynamic", dtype))
        return lo.static_array(kind, (space, shape, dtype, node.lineno), node)

    return lower


def constant_shape(lo: Lowering, node: ast.expr, space: str) -> tuple[int, ...]:
    value = lo.expr(folded(node))
    members = value.items if isinstance(value, Tuple) else (value,)
    lengths = [m for m in members if isinstance(m, Scalar) and m.known and m.type.kind in "iu"]
    shown = ast.unparse(node)
    if len(lengths) != len(members) or any(m.const < 0 for m in lengths):
        raise lo.fail(
            node,
            f"'{shown}' as the shape of a {space} array; it must be constant: a number, or a global such as TILE = 16",
        )
    if any(m.calculated for m in lengths):
        raise lo.fail(
            node,
            f"'{shown}' as the shape of a {space} array, because numba does not calculate shapes: write the "
            "result as a global above the kernel, such as PADDED = TILE + 1, and use that",
        )
    return tuple(int(m.const) for m in lengths)


def folded(node: ast.expr) -> ast.expr:
    """Arithmetic of literal numbers is done by Python itself before numba sees it."""
    if isinstance(node, ast.Tuple):
        return ast.copy_location(ast.Tuple([folded(e) for e in node.elts], ast.Load()), node)
    value = literal(node)
    return node if value is None else ast.copy_location(ast.Constant(value), node)


def literal(node: ast.expr) -> int | float | None:
    """The number that an expression of literals makes; None for any other expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.UnaryOp) and type(node.op) in UNARY:
        value = literal(node.operand)
        return None if value is None else calculated(UNARY[type(node.op)][1], value)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        left, right = literal(node.left), literal(node.right)
        return None if left is None or right is None else calculated(OPERATORS[type(node.op)][1], left, right)
    return None


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
    site = lo.site(node, element.name)
    operands = f"({lo.listed(keys)}), ({lo.listed(values)})"
    code = f"M.atomic({name!r}, {element.code}, {operands}, g, {site}, {lo.unused is not node})"
    return lo.emit(element.type.dtype, code, (*keys, *values), node, "atomic")


def select(lo: Lowering, node: ast.Call) -> Value:
    test, a, b = positional(lo, node, 3)
    dtype = ty.unify(a.type, b.type)
    test, a, b = lo.truth(test, node), lo.cast(a, dtype, node), lo.cast(b, dtype, node)
    return lo.emit(
        dtype, f"select({lo.condition(test, node)}, {a.code}, {b.code})", (test, a, b), node, "select"
    )


CUDA: dict[str, Callable[[Lowering, ast.Call], Value]] = {
    "grid": axes("grid", ty.INT64, "coordinate"),
    "gridsize": axes("all", ty.INT64, "extent"),
    "shared.array": array_in("shared"),
    "local.array": array_in("local"),
    "const.array_like": constant_array,
    "selp": select,
    **WARP,
    **BITS,
}
