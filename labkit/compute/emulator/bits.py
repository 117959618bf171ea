"""Bit counting and reversal, and the fused multiply-add, over lanes."""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.compute.emulator.affine import dense


def _unsigned(value: Any) -> np.ndarray:
    value = np.asarray(dense(value))
    return value.view(f"u{value.dtype.itemsize}") if value.ndim else value.astype(f"u{value.dtype.itemsize}")


def _like(result: np.ndarray, value: Any) -> Any:
    return result.astype(np.asarray(dense(value)).dtype)[()]


def popc(value: Any) -> Any:
    """The number of bits that are set."""
    return _like(np.bitwise_count(_unsigned(value)), value)


def clz(value: Any) -> Any:
    """The number of zero bits above the highest set one."""
    bits = _unsigned(value)
    width = bits.dtype.itemsize * 8
    shift = 1
    while shift < width:
        bits = bits | (bits >> bits.dtype.type(shift))
        shift *= 2
    return _like(width - np.bitwise_count(bits).astype(np.int64), value)


def ffs(value: Any) -> Any:
    """The position of the lowest set bit, counted from 1; 0 when there is none."""
    bits = _unsigned(value)
    one = bits.dtype.type(1)
    lowest = bits & (~bits + one)
    return np.where(bits == 0, 0, np.bitwise_count(lowest - one).astype(np.int64) + 1).astype(np.uint32)[()]


def brev(value: Any) -> Any:
    """The bits in reverse order, of 32 or 64."""
    bits = _unsigned(value)
    width = bits.dtype.itemsize * 8
    word = bits.dtype.type
    shift, mask = width // 2, (1 << width) - 1
    while shift:
        mask ^= (mask << shift) & ((1 << width) - 1)
        bits = ((bits >> word(shift)) & word(mask)) | (
            (bits << word(shift)) & word(~mask & ((1 << width) - 1))
        )
        shift //= 2
    return bits[()]


def fma(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` rounded once: in float64 for float32, with the product's error carried along for float64."""
    a, b, c = np.asarray(dense(a)), np.asarray(dense(b)), np.asarray(dense(c))
    if a.dtype.itemsize < 8:
        return (a.astype(np.float64) * b + c).astype(a.dtype)[()]
    product, error = _product(a, b)
    total = product + c
    rest = total - product
    lost = (product - (total - rest)) + (c - rest)
    return np.where(np.isfinite(total), total + (lost + error), a * b + c)[()]


def _product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a * b and its rounding error (Dekker, 1971)."""
    product = a * b
    high_a, high_b = _high(a), _high(b)
    low_a, low_b = a - high_a, b - high_b
    return product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


def _high(x: np.ndarray) -> np.ndarray:
    """The upper 26 bits of the mantissa (Veltkamp)."""
    scaled = x * 134217729.0
    return scaled - (scaled - x)
