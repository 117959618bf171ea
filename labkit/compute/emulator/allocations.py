"""The device's allocations: where each array's memory starts, and which of its elements nobody has written yet."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import numpy as np


@dataclass
class Allocation:
    """One piece of device memory. ``written`` tells, an element each, what has been written; None: all of it."""

    start: int
    itemsize: int
    written: np.ndarray | None


_by_start: dict[int, Allocation] = {}
_totals = {"bytes": 0}


def allocated_bytes() -> int:
    """Bytes of the device memory in use; views count once, with the array they look into."""
    return _totals["bytes"]


def register(data: np.ndarray, written: bool) -> None:
    """Memory has been allocated for ``data``, and filled if ``written``; it is released with the array."""
    start = address(data)
    mask = None if written else np.zeros(data.size, bool)
    _by_start[start] = Allocation(start, data.itemsize, mask)
    _totals["bytes"] += data.nbytes
    weakref.finalize(data, _release, start, data.nbytes).atexit = False


def _release(start: int, size: int) -> None:
    _by_start.pop(start, None)
    _totals["bytes"] -= size


def address(data: np.ndarray) -> int:
    return data.__array_interface__["data"][0]


def allocation_of(data: np.ndarray) -> Allocation | None:
    """The allocation that an array or view lies in; None for memory of the host."""
    root = data
    while isinstance(root.base, np.ndarray):
        root = root.base
    return _by_start.get(address(root))


def all_written(data: np.ndarray) -> None:
    """Someone has written to the array unobserved: from now on its memory counts as written."""
    allocation = allocation_of(data)
    if allocation is not None:
        allocation.written = None
