"""Host memory that a device could reach: pinned, mapped and managed arrays. Here all memory is the host's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from labkit.compute.emulator.device_array import check_dtype
from labkit.errors import LabkitError


class ReachableArray(np.ndarray):
    """A host array that kernels reach without a copy, also through slices of it: mapped or managed memory."""

    is_mapped = True

    def copy_to_host(self, ary: np.ndarray | None = None, stream: Any = 0) -> np.ndarray:
        """A plain array with the contents, or ``ary`` filled with them."""
        if ary is None:
            return np.array(self, subok=False)
        ary[...] = self
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Overwrite the contents."""
        self[...] = ary.copy_to_host() if hasattr(ary, "copy_to_host") else ary


def pinned_array(shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C") -> np.ndarray:
    """A host array; on a GPU it would be page-locked."""
    return np.empty(shape, check_dtype(dtype), order="F" if order == "F" else "C")


def pinned_array_like(ary: Any) -> np.ndarray:
    """A pinned array of the same shape, dtype and order."""
    return np.empty(ary.shape, ary.dtype, order=_order_of(ary))


def mapped_array(
    shape: Any,
    dtype: Any = np.float64,
    strides: Any = None,
    order: str = "C",
    stream: Any = 0,
    portable: bool = False,
    wc: bool = False,
) -> ReachableArray:
    """Host memory in the device's address space: kernels and the host see each other's writes."""
    return pinned_array(shape, dtype, strides, order).view(ReachableArray)


def mapped_array_like(ary: Any, stream: Any = 0, portable: bool = False, wc: bool = False) -> ReachableArray:
    """A mapped array of the same shape, dtype and order."""
    return pinned_array_like(ary).view(ReachableArray)


def managed_array(
    shape: Any,
    dtype: Any = np.float64,
    strides: Any = None,
    order: str = "C",
    stream: Any = 0,
    attach_global: Any = True,
) -> ReachableArray:
    """Memory that moves to whoever uses it, host or device."""
    return pinned_array(shape, dtype, strides, order).view(ReachableArray)


@contextmanager
def pinned(*arylist: np.ndarray) -> Iterator[None]:
    """Page-lock arrays for the time of a ``with`` block; nothing to do on the emulator."""
    _check_arrays("pinned", arylist)
    yield


@contextmanager
def mapped(*arylist: np.ndarray, stream: Any = 0, portable: bool = False, wc: bool = False) -> Iterator[Any]:
    """Map arrays into the device's memory for the time of a ``with`` block: one view, or a list of views."""
    _check_arrays("mapped", arylist)
    views = [a.view(ReachableArray) for a in arylist]
    yield views[0] if len(views) == 1 else views


def _check_arrays(name: str, arrays: tuple) -> None:
    for array in arrays:
        if not isinstance(array, np.ndarray):
            raise LabkitError(f"cuda.{name} takes NumPy arrays, but got a {type(array).__name__}.")


def _order_of(ary: Any) -> Any:
    flags = getattr(ary, "flags", None)
    return "F" if flags is not None and flags.f_contiguous and not flags.c_contiguous else "C"
