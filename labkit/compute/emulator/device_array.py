"""Arrays in the (emulated) device's memory: what ``cuda.to_device`` and ``cuda.device_array`` return."""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.errors import LabkitError


class DeviceArray:
    """An array that kernels read and write; the host sees it through ``copy_to_host``.

    The names are numba.cuda's: ``shape``, ``dtype``, ``size``, ``ndim``, ``strides``, ``nbytes``, ``copy_to_host``,
    ``copy_to_device``, ``reshape``, ``ravel``, ``T``, ``view``, and slices.
    """

    def __init__(self, data: np.ndarray):
        self._data = data

    shape = property(lambda self: self._data.shape)
    dtype = property(lambda self: self._data.dtype)
    size = property(lambda self: self._data.size)
    ndim = property(lambda self: self._data.ndim)
    strides = property(lambda self: self._data.strides)
    nbytes = property(lambda self: self._data.nbytes)

    @property
    def alloc_size(self) -> int:
        return self._data.nbytes

    @property
    def T(self) -> DeviceArray:
        return DeviceArray(self._data.T)

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, emulated)"

    def copy_to_host(self, ary: np.ndarray | None = None, stream: Any = 0) -> np.ndarray:
        """A new host array with the contents, or ``ary`` filled with them."""
        if ary is None:
            return self._data.copy()
        if not isinstance(ary, np.ndarray) or ary.shape != self.shape or ary.dtype != self.dtype:
            raise LabkitError(
                f"copy_to_host needs an array of shape {self.shape} and dtype {self.dtype}, but got "
                f"{getattr(ary, 'shape', '')} {getattr(ary, 'dtype', type(ary).__name__)}."
            )
        ary[...] = self._data
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Overwrite the contents with those of a host or device array of the same shape."""
        source = ary._data if isinstance(ary, DeviceArray) else np.asarray(ary)
        if source.shape != self.shape or source.dtype != self.dtype:
            raise LabkitError(
                f"copy_to_device needs an array of shape {self.shape} and dtype {self.dtype}, but got "
                f"{source.shape} {source.dtype}."
            )
        self._data[...] = source

    def reshape(self, *shape: Any, order: Any = "C") -> DeviceArray:
        lengths = shape[0] if len(shape) == 1 else shape
        return DeviceArray(self._data.reshape(lengths, order=order))

    def ravel(self, order: Any = "C", stream: Any = 0) -> DeviceArray:
        return DeviceArray(self._data.ravel(order))

    def view(self, dtype: Any) -> DeviceArray:
        return DeviceArray(self._data.view(dtype))

    def __getitem__(self, key: Any) -> Any:
        part = self._data[key]
        return DeviceArray(part) if isinstance(part, np.ndarray) and part.ndim else part

    def __setitem__(self, key: Any, value: Any) -> None:
        self._data[key] = value._data if isinstance(value, DeviceArray) else value

    def is_c_contiguous(self) -> bool:
        return bool(self._data.flags.c_contiguous)

    def is_f_contiguous(self) -> bool:
        return bool(self._data.flags.f_contiguous)


def whole(array: np.ndarray, what: str) -> np.ndarray:
    """The array, if its elements lie one after the other, as a copy between host and device needs."""
    if array.dtype.hasobject:
        raise LabkitError(
            f"{what} has dtype {array.dtype}; a device knows numbers only, so convert it with .astype(...)."
        )
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise LabkitError(
            f"{what} is a view with gaps between its elements (shape {array.shape}, strides {array.strides}), which "
            "cannot be copied to the device: pass np.ascontiguousarray(...) of it."
        )
    return array


def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: DeviceArray | None = None) -> DeviceArray:
    """Copy a host array to the device."""
    if isinstance(obj, DeviceArray):
        return obj
    array = whole(np.asarray(obj), "The array")
    if to is not None:
        to.copy_to_device(array)
        return to
    return DeviceArray(array.copy(order="K") if copy else array)


def device_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", stream: Any = 0
) -> DeviceArray:
    """An uninitialised array on the device; floats are NaN, so that a read before a write shows."""
    data = np.empty(shape, np.dtype(dtype), order="F" if order == "F" else "C")
    if data.dtype.kind in "fc":
        data.fill(np.nan)
    return DeviceArray(data)


def device_array_like(ary: Any, stream: Any = 0) -> DeviceArray:
    """An uninitialised device array of the same shape and dtype."""
    order = (
        "F"
        if ary.ndim > 1 and ary.strides == tuple(sorted(ary.strides)) and ary.strides[0] < ary.strides[-1]
        else "C"
    )
    return device_array(ary.shape, ary.dtype, order=order)


def pinned_array(shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C") -> np.ndarray:
    """A host array; on a GPU it would be page-locked."""
    return np.empty(shape, dtype, order="F" if order == "F" else "C")


pinned_array_like = np.empty_like
