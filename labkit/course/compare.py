"""Is this array the one expected? Element by element, with a tolerance that fits the type."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Relative error allowed: some dozens of roundings of the type. Integers and booleans have to be equal.
_RELATIVE = {2: 2e-2, 4: 2e-5, 8: 1e-9}
_ABSOLUTE = {2: 1e-3, 4: 1e-6, 8: 1e-12}
UNTOUCHED_INT = 0x5A  # every byte of an integer output before the answer runs; floats are NaN


@dataclass(frozen=True)
class Difference:
    """The first element (in row-major order) that is wrong, and which others are."""

    index: tuple[int, ...]
    got: str
    expected: str
    wrong: np.ndarray
    untouched: np.ndarray
    dtype: str

    @property
    def count(self) -> int:
        return int(np.count_nonzero(self.wrong))

    def sentence(self, name: str) -> str:
        """Say where ``name`` is wrong, with both values, its shape and its type."""
        place = ", ".join(map(str, self.index))
        kind = f"{self.dtype}, shape {self.wrong.shape}"
        total = self.wrong.size
        rest = "" if self.count == 1 else f"; {self.count:,} of {total:,} elements are wrong"
        return f"{name}[{place}] is {self.got}, expected {self.expected} ({kind}){rest}."


def untouched(shape: tuple[int, ...], dtype: np.dtype | type) -> np.ndarray:
    """An array to be written: NaN where the type has it, otherwise bits that no result has by chance."""
    dtype = np.dtype(dtype)
    if dtype.kind in "fc":
        return np.full(shape, np.nan, dtype)
    return (
        np.frombuffer(bytes([UNTOUCHED_INT]) * (int(np.prod(shape)) * dtype.itemsize), dtype)
        .reshape(shape)
        .copy()
    )


def difference(got: np.ndarray, expected: np.ndarray) -> Difference | None:
    """The first difference beyond rounding, or None; both arrays have the same shape and type."""
    wrong = ~_close(got, expected)
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    blank = _blank(got)
    text = number(got[index])
    text = f"still {text}, as before the launch" if blank[index] else text
    return Difference(index, text, number(expected[index]), wrong, blank & wrong, str(got.dtype))


def _close(got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    if expected.dtype.kind not in "fc":
        return got == expected
    size = expected.real.dtype.itemsize
    return np.isclose(
        got, expected, rtol=_RELATIVE.get(size, 1e-9), atol=_ABSOLUTE.get(size, 1e-12), equal_nan=True
    )


def _blank(got: np.ndarray) -> np.ndarray:
    """Where an output still is as :func:`untouched` made it."""
    if got.dtype.kind in "fc":
        return np.isnan(got)
    return got == untouched((), got.dtype)


def number(value: object) -> str:
    """A number as a learner reads it: as many digits as its type can be trusted with, ten at most."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        digits = 7 if isinstance(value, (np.float32, np.float16)) else 10
        return f"{float(value):.{digits}g}"
    return str(value)
