"""The functions that generated code calls: NumPy's, taught about scalars shared by all lanes and about progressions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.compute.emulator import bits, warp
from labkit.compute.emulator import types as ty
from labkit.compute.emulator.affine import Affine, dense
from labkit.compute.emulator.conversions import caster


class Deferred:
    """A value of a group's parent, cut down to the group's lanes only when it is read."""

    __slots__ = ("value",)

    def __init__(self, value: np.ndarray | Affine):
        self.value = value


def both(a: Any, b: Any) -> Any:
    if a.__class__ is np.bool_:
        return b if a else a
    if b.__class__ is np.bool_:
        return a if b else b
    return a & b


def either(a: Any, b: Any) -> Any:
    if a.__class__ is np.bool_:
        return a if a else b
    if b.__class__ is np.bool_:
        return b if b else a
    return a | b


def select(test: Any, a: Any, b: Any) -> Any:
    if test.__class__ is np.bool_:
        return a if test else b
    return np.where(test, dense(a), dense(b))


def in_range(now: Any, stop: Any, step: Any) -> Any:
    return select(step > 0, now < stop, now > stop)


def int_power(base: Any, exponent: int) -> Any:
    """Repeated multiplication, squaring on the way, as numba unrolls a literal exponent; below zero its inverse."""
    base = dense(base)
    one = base.dtype.type(1)
    result = None
    left = abs(exponent)
    while left:
        if left & 1:
            result = base if result is None else result * base
        base = base * base
        left >>= 1
    if result is None:
        return one
    return one / result if exponent < 0 else result


def power(base: Any, exponent: Any) -> Any:
    base, exponent = dense(base), dense(exponent)
    if base.dtype.kind in "iu":
        # A negative power of a whole number is 0, but for 1 and -1.
        result = np.power(base, np.maximum(exponent, 0))
        unit = np.where(np.abs(base) == 1, np.power(base, np.abs(exponent)), 0)
        return np.where(exponent < 0, unit, result).astype(base.dtype)[()]
    return np.power(base, exponent)


def exact(value: Any, dtype: np.dtype) -> Any:
    """The value in just this type: progressions, and what came of them, are kept in 64 bits."""
    return dense(value).astype(dtype, copy=False)


def minimum(a: Any, b: Any) -> Any:
    """The smaller; of a number and NaN the number, as the device's ``min`` instruction has it."""
    return np.fmin(dense(a), dense(b))


def maximum(a: Any, b: Any) -> Any:
    """The larger; of a number and NaN the number."""
    return np.fmax(dense(a), dense(b))


def absolute(a: Any) -> Any:
    return np.abs(dense(a))


def to_nearest(a: Any) -> Any:
    return caster(ty.INT64)(np.rint(dense(a)))


def elementwise(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """A function of Python's math module, for which NumPy has none, over lanes."""

    def guarded(value: float) -> float:
        try:
            return function(value)
        except (ValueError, OverflowError):
            return math.nan if isinstance(value, float) and value < 0 else math.inf

    vectorised = np.frompyfunc(guarded, 1, 1)

    def apply(values: Any) -> Any:
        result = np.asarray(vectorised(values), dtype=values.dtype)
        return result[()]

    return apply


_DTYPES = [np.dtype(n) for n in "?bhilBHILefdFD"]
NAMESPACE: dict[str, Any] = {
    "np": np,
    "bits": bits,
    "dense": dense,
    "exact": exact,
    "warp": warp,
    "Deferred": Deferred,
    **{f"cast_{ty.short_name(dtype)}": caster(dtype) for dtype in _DTYPES},
    **{
        f.__name__: f
        for f in (both, either, select, in_range, int_power, power, minimum, maximum, absolute, to_nearest)
    },
    **{f"math_{f.__name__}": elementwise(f) for f in (math.erf, math.erfc, math.gamma, math.lgamma)},
}
