"""Lowering of calls: what is called decides."""

from __future__ import annotations

import ast
import builtins
from types import FunctionType
from typing import TYPE_CHECKING, Any

from labkit.compute.emulator.cuda_calls import cuda_call
from labkit.compute.emulator.library import BUILTINS, as_dtype, conversion, library_call
from labkit.compute.emulator.signatures import declared
from labkit.compute.emulator.source import Source, capture
from labkit.compute.emulator.values import Intrinsic, Scalar, Static, Value, describe

if TYPE_CHECKING:
    from labkit.compute.emulator.lower import Lowering


def lower_call(lo: Lowering, node: ast.Call) -> Value:
    """The value of a call, by what is called."""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "conjugate" and not node.args:
        value = lo.scalar(node.func.value)
        return lo.emit(value.type, f"np.conjugate(dense({value.code}))", (value,), node)
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
        return inline(lo, called, source, node)
    dtype = as_dtype(called)
    if dtype is not None and called not in (int, float, bool, complex):
        return conversion(lo, dtype, node)
    name = getattr(called, "__name__", "")
    if name in BUILTINS and getattr(builtins, name, None) is called:
        return BUILTINS[name](lo, node)
    return library_call(lo, called, node)


def inline(lo: Lowering, called: Any, source: Source, node: ast.Call) -> Value:
    """A device function in place of its call; an explicit signature converts arguments and result."""
    given = getattr(called, "signatures", ())
    wanted, result = declared(given[0] if given else None)
    values = [lo.expr(a) for a in node.args]
    if len(values) == len(wanted):
        pairs = zip(values, wanted, strict=True)
        values = [lo.cast(v, t, node) if t is not None and isinstance(v, Scalar) else v for v, t in pairs]
    value = lo.inline(source, values, node)
    return lo.cast(value, result, node) if result is not None and isinstance(value, Scalar) else value


def device_function(called: Any) -> Source | None:
    """The source of a function made by ``cuda.jit``: the emulator's, or numba's own."""
    source = getattr(called, "source", None)
    if isinstance(source, Source):
        return source
    original = getattr(called, "py_func", None)
    return capture(original) if isinstance(original, FunctionType) else None
