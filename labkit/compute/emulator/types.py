"""The types of a kernel's values, and numba.cuda's rules for them.

Scalars are NumPy dtypes. The rules are numba's, not NumPy's: ``int32 + int32`` is int64, literals are int64 or
float64, ``float32 + 1`` is float64, and a store casts to the array's type.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BOOL: np.dtype = np.dtype(np.bool_)
INT32: np.dtype = np.dtype(np.int32)
INT64: np.dtype = np.dtype(np.int64)
UINT64: np.dtype = np.dtype(np.uint64)
FLOAT16: np.dtype = np.dtype(np.float16)
FLOAT32: np.dtype = np.dtype(np.float32)
FLOAT64: np.dtype = np.dtype(np.float64)

ScalarType = np.dtype


@dataclass(frozen=True)
class ArrayType:
    """An array in one of the device's memories: ``space`` is global, shared, local or constant."""

    dtype: np.dtype
    ndim: int
    space: str = "global"
    readonly: bool = False

    def __str__(self) -> str:
        return f"array({self.dtype}, {self.ndim}d, {self.space})"


def is_integer(dtype: np.dtype) -> bool:
    return dtype.kind in "iu"


def is_float(dtype: np.dtype) -> bool:
    return dtype.kind == "f"


def integer_result(*operands: np.dtype) -> np.dtype:
    """Integer arithmetic happens in 64 bits, unsigned only if every operand is unsigned."""
    return UINT64 if all(t.kind == "u" for t in operands) else INT64


def arithmetic_result(left: np.dtype, right: np.dtype) -> np.dtype:
    """The type of ``left + right`` (also of ``-``, ``*``, ``//``, ``%``)."""
    kinds = left.kind + right.kind
    if "c" in kinds:
        return np.result_type(left, right)
    if "f" not in kinds:
        return integer_result(left, right)
    if left.kind == right.kind:
        return np.result_type(left, right)
    floating, other = (left, right) if left.kind == "f" else (right, left)
    # An integer converts to float32 only when every value of it fits without loss.
    if floating == FLOAT16:
        narrow: np.dtype = {1: FLOAT16, 2: FLOAT32}.get(other.itemsize, FLOAT64)
        return FLOAT32 if other == np.dtype(np.uint8) else FLOAT64 if other == np.dtype(np.uint16) else narrow
    if floating == FLOAT32:
        return FLOAT32 if other.itemsize == 1 or other == np.dtype(np.int16) else FLOAT64
    return floating


def division_result(left: np.dtype, right: np.dtype) -> np.dtype:
    """The type of ``left / right``: never an integer."""
    if left.kind in "biu" and right.kind in "biu":
        return FLOAT64
    return arithmetic_result(left, right)


def power_result(base: np.dtype) -> np.dtype:
    """The type of ``base ** 2``, with a literal exponent: numba multiplies it out."""
    if base.kind == "c":
        return np.dtype(np.complex128)
    if base.kind == "f":
        return np.result_type(base, FLOAT32)
    return integer_result(base)


def shift_result(left: np.dtype) -> np.dtype:
    """Only the shifted operand decides about the sign."""
    return UINT64 if left.kind == "u" else INT64


def bitwise_result(left: np.dtype, right: np.dtype) -> np.dtype:
    return BOOL if left == right == BOOL else integer_result(left, right)


def unify(left: np.dtype, right: np.dtype) -> np.dtype:
    """The type of a variable that holds ``left`` on one path and ``right`` on another."""
    return np.result_type(left, right)


def short_name(dtype: np.dtype) -> str:
    """``i8``, ``f4``, ``b1``: used in the names of registers."""
    return f"{dtype.kind}{dtype.itemsize}" if dtype.names is None else f"r{abs(hash(str(dtype))) % 10**8}"
