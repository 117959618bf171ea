"""Typical mistakes, recognised by the values they leave behind; each gives one sentence, or none."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from labkit.course.checks import Launch
from labkit.course.compare import Difference
from labkit.course.messages import shown
from labkit.course.sandbox.values import Foreign


def vector(launch: Launch, got: np.ndarray, expected: np.ndarray, found: Difference) -> str:
    """For a 1-D output that every thread writes one or more elements of."""
    start = untouched_from(found)
    if start == 1 and got.size > 2:
        return "only the first element was written: does every thread use its own number, cuda.grid(1)?"
    if start is not None and start == got.size - 1 > 0:
        return "only the last element is untouched: its number is out.size - 1, so compare with i < out.size."
    if start == launch.block[0] and start < launch.threads:
        return (
            f"only the first {start} elements were written, one block's worth: cuda.threadIdx.x starts at 0 "
            "in every block, cuda.grid(1) counts through all blocks."
        )
    if start is not None and start > 0:
        return f"every element from {start} on is untouched."
    if found.count == 1 and found.index == (0,) and found.untouched[0] and got.size > 1:
        return "element 0 is untouched: the first thread's number is 0."
    return any_shape(got, expected, found)


def any_shape(got: np.ndarray, expected: np.ndarray, found: Difference) -> str:
    """For an output of any shape."""
    if got.size > 1 and found.untouched.all():
        return "no element was written at all: is the result stored in the output array?"
    if 0 < found.untouched.sum() == found.count:
        return "the wrong elements are those that were never written."
    flat, wanted = got.ravel(), expected.ravel()
    if flat.size > 2 and (flat == flat[0]).all():
        return "every element has the same value: the result has to depend on the thread's own element."
    if flat.size > 3 and _shifted(flat, wanted):
        return "each element has the value of its neighbour: an index is off by one."
    if flat.dtype.kind == "f" and np.array_equal(flat, np.trunc(wanted)):
        return "the digits after the point are gone: int() cuts them off."
    return ""


def _shifted(got: np.ndarray, wanted: np.ndarray) -> bool:
    return bool(_same(got[1:], wanted[:-1]) or _same(got[:-1], wanted[1:]))


def untouched_from(found: Difference) -> int | None:
    """The first untouched element, when those from there to the end, and no others, are wrong."""
    blank = found.untouched.ravel()
    start = int(np.argmax(blank)) if blank.any() else None
    if start is None or not blank[start:].all() or found.count != blank.size - start:
        return None
    return start


def guess(got: Any, guesses: Iterable[tuple[Any, str]]) -> str:
    """The sentence of the first formula whose values ``got`` has."""
    return next((why for value, why in guesses if np.size(value) and _same(got, value)), "")


def _same(got: Any, value: Any) -> bool:
    return bool(np.allclose(got, value, rtol=1e-5, atol=1e-6))


def not_a_number(value: Any) -> str:
    """What ``value`` is instead of a number; empty for a finite int or float."""
    if isinstance(value, Foreign):
        return f"{'an' if value.type[:1] in 'aeiou' else 'a'} {value.type} ({value.text})"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        return _described(value)
    try:
        return "" if math.isfinite(value) else shown(value)
    except OverflowError:
        return "a huge number"


def _described(value: Any) -> str:
    if value is None or isinstance(value, (bool, np.bool_)):
        return str(value)
    if isinstance(value, np.ndarray):
        return shown(value)
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}: {shown(value)}"
