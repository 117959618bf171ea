"""Conversions between the types of numbers, as the device makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.compute.emulator.affine import Affine


def caster(dtype: np.dtype) -> Callable[[Any], Any]:
    """Conversion of any value to ``dtype``; whole-number progressions stay progressions."""

    def cast(value: Any) -> Any:
        return value.astype(dtype, copy=False)

    def cast_to_whole(value: Any) -> Any:
        if value.__class__ is not Affine and value.dtype.kind == "f":
            return truncate(value, dtype)
        return value.astype(dtype, copy=False)

    return cast_to_whole if dtype.kind in "iu" else cast


def truncate(value: np.ndarray | np.floating, dtype: np.dtype) -> Any:
    """Floating-point numbers as whole ones: rounded towards zero, and what does not fit becomes the nearest that does.

    So PTX defines ``cvt.rzi`` (PTX ISA, "cvt"). There is none to 8 bits: numba.cuda's code goes through 16.
    """
    if dtype.itemsize == 1:
        return truncate(value, np.dtype(f"{dtype.kind}2")).astype(dtype)
    limits = np.iinfo(dtype)
    # both bounds themselves are out; in 64 bits a float cannot be just outside
    low = limits.min - 1.0
    high = limits.max + 1.0
    if not value.size or (value.min() > low and value.max() < high):
        return value.astype(dtype)
    wide = np.asarray(value, dtype=np.float64)
    result = np.where(wide < 0, limits.min, limits.max).astype(dtype)
    inside = (wide > low) & (wide < high)
    result[inside] = wide[inside].astype(dtype)
    result[np.isnan(wide)] = of_nan(value.dtype, dtype)
    return result[()]


def of_nan(source: np.dtype, dtype: np.dtype) -> np.integer:
    """What NaN becomes: zero, but the highest bit alone where 64 bits are read or written (PTX ISA, "cvt")."""
    highest = np.uint64(1 << (8 * dtype.itemsize - 1)) if max(source.itemsize, dtype.itemsize) == 8 else 0
    return np.uint64(highest).astype(dtype)
