"""Integers that progress regularly over the lanes of a chunk: thread and block indices, and what is linear in them.

``i = cuda.grid(1)`` over a whole chunk is an arithmetic progression, and so are ``i * width + 1`` or
``row * n + col``. Kept as such, a comparison with the array's length is two comparisons, a load is a slice, and
the number of sectors it touches is a formula.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

Box = tuple[int, ...]

# What leaves the range of a type wraps around, as on the device: it is no progression any more.
INT32 = np.iinfo(np.int32)
INT64 = np.iinfo(np.int64)


class Affine:
    """``base + sum(strides[k] * coordinate[k])`` over the C-ordered box of lanes ``shape``; always whole numbers."""

    # NumPy arrays leave mixed operations to this class.
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, base: int, strides: Box, shape: Box, reach: int | None = None):
        self.base = base
        self.strides = strides
        self.shape = shape
        # no value is larger than this; known without looking at the axes again when the operands' are known
        self.reach = abs(base) + _extent(strides, shape) if reach is None else reach

    def __repr__(self) -> str:
        return f"Affine({self.base}, {self.strides}, {self.shape})"

    @cached_property
    def array(self) -> np.ndarray:
        """The values of all lanes, int64 (wrapped around where they do not fit), in lane order."""
        shape, strides = self.collapsed
        total = np.full((), wrapped(self.base), dtype=np.int64)
        for axis, (count, stride) in enumerate(zip(shape, strides, strict=True)):
            steps = np.arange(count, dtype=np.int64) * wrapped(stride)
            total = total + steps.reshape((-1,) + (1,) * (len(shape) - 1 - axis))
        return total.reshape(-1)

    @cached_property
    def collapsed(self) -> tuple[Box, Box]:
        """The same progression over as few axes as possible: ``(shape, strides)``, at least one axis."""
        shape: list[int] = []
        strides: list[int] = []
        for count, stride in zip(self.shape, self.strides, strict=True):
            if count == 1:
                continue
            if shape and strides[-1] == stride * count:
                shape[-1] *= count
                strides[-1] = stride
            else:
                shape.append(count)
                strides.append(stride)
        return (tuple(shape), tuple(strides)) if shape else ((1,), (0,))

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """Smallest and largest value over the lanes."""
        low = high = self.base
        for count, stride in zip(self.shape, self.strides, strict=True):
            reach = stride * (count - 1)
            if reach < 0:
                low += reach
            else:
                high += reach
        return low, high

    @property
    def size(self) -> int:
        return prod(self.shape)

    def _with(self, base: int, strides: Box, reach: int) -> Affine | np.ndarray | np.int64:
        """The progression as the result of 64-bit arithmetic: one value, or written out where it wraps around."""
        if not any(strides):
            return wrapped(base)
        result = Affine(base, strides, self.shape, reach)
        return result if reach <= INT64.max or result.fits(INT64) else result.array

    def fits(self, limits: np.iinfo) -> bool:
        """Whether the values of all lanes lie in the range of an integer type."""
        low, high = self.bounds
        return int(limits.min) <= low and high <= int(limits.max)

    def difference(self, other: Any) -> tuple[int, int]:
        """The smallest and the largest of ``self - other`` over the lanes, as whole numbers without end."""
        if type(other) is Affine:
            strides = tuple(map(operator.sub, self.strides, other.strides))
            return Affine(self.base - other.base, strides, self.shape).bounds
        low, high = self.bounds
        return low - int(other), high - int(other)

    def __add__(self, other: Any) -> Any:
        if type(other) is Affine:
            strides = tuple(map(operator.add, self.strides, other.strides))
            return self._with(self.base + other.base, strides, self.reach + other.reach)
        if type(other) is np.ndarray:
            return self.array + other
        number = int(other)
        return self._with(self.base + number, self.strides, self.reach + abs(number))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if type(other) is Affine:
            strides = tuple(map(operator.sub, self.strides, other.strides))
            return self._with(self.base - other.base, strides, self.reach + other.reach)
        if type(other) is np.ndarray:
            return self.array - other
        number = int(other)
        return self._with(self.base - number, self.strides, self.reach + abs(number))

    def __rsub__(self, other: Any) -> Any:
        if type(other) is np.ndarray:
            return other - self.array
        number = int(other)
        return self._with(number - self.base, tuple(-s for s in self.strides), self.reach + abs(number))

    def __neg__(self) -> Any:
        return self._with(-self.base, tuple(-s for s in self.strides), self.reach)

    def __invert__(self) -> np.ndarray:
        return ~self.array

    def __mul__(self, other: Any) -> Any:
        if type(other) is Affine:
            return self.array * other.array
        if type(other) is np.ndarray:
            return self.array * other
        factor = int(other)
        return self._with(
            self.base * factor, tuple(s * factor for s in self.strides), self.reach * abs(factor)
        )

    __rmul__ = __mul__

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """Wide signed integers hold most indices: no need to write the progression out."""
        if dtype == np.int64 or (dtype == np.int32 and self.fits(INT32)):
            return self
        return self.array.astype(dtype)


def _extent(strides: Box, shape: Box) -> int:
    return sum(abs(stride) * (count - 1) for stride, count in zip(strides, shape, strict=True))


def wrapped(number: int) -> np.int64:
    """The number as 64 bits keep it."""
    return np.int64((number + 2**63) % 2**64 - 2**63)


def dense(value: Any) -> Any:
    """The value as NumPy knows it: an array over lanes, or a scalar that all lanes share."""
    return value.array if type(value) is Affine else value


def _comparison(compare: Callable, at_low: bool) -> Callable:
    """Compare by the ends of the range where they decide, element by element where not.

    ``at_low``: whether the comparison with zero is hardest for the smallest difference.
    """

    def method(self: Affine, other: Any) -> Any:
        if type(other) is not np.ndarray:
            low, high = self.difference(other)
            hardest, easiest = (low, high) if at_low else (high, low)
            if compare(hardest, 0):
                return np.True_
            if not compare(easiest, 0):
                return np.False_
        return compare(self.array, dense(other))

    return method


def _equality(compare: Callable) -> Callable:
    def method(self: Affine, other: Any) -> Any:
        if type(other) is not np.ndarray:
            low, high = self.difference(other)
            if low == high or low > 0 or high < 0:
                return np.bool_(compare(low, 0))
        return compare(self.array, dense(other))

    return method


def _by_element(apply: Callable) -> tuple[Callable, Callable]:
    def forward(self: Affine, other: Any) -> Any:
        return apply(self.array, dense(other))

    def backward(self: Affine, other: Any) -> Any:
        return apply(dense(other), self.array)

    return forward, backward


for _name, _at_low in (("lt", False), ("le", False), ("gt", True), ("ge", True)):
    setattr(Affine, f"__{_name}__", _comparison(getattr(operator, _name), _at_low))
for _name in ("eq", "ne"):
    setattr(Affine, f"__{_name}__", _equality(getattr(operator, _name)))
for _name in ("floordiv", "truediv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor"):
    _dunder = _name.rstrip("_")
    _forward, _backward = _by_element(getattr(operator, _name))
    setattr(Affine, f"__{_dunder}__", _forward)
    setattr(Affine, f"__r{_dunder}__", _backward)
