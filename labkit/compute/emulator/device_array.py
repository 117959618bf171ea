"""Arrays in the (emulated) device's memory: what ``cuda.to_device`` and ``cuda.device_array`` return."""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.compute.emulator.allocations import all_written, register
from labkit.compute.emulator.foreign import shared_view
from labkit.compute.emulator.host.clock import CLOCK, TO_DEVICE, TO_HOST
from labkit.errors import LabkitError


class DeviceArray:
    """An array that kernels read and write; the host sees it through ``copy_to_host``.

    The names are numba.cuda's: ``shape``, ``dtype``, ``size``, ``ndim``, ``strides``, ``nbytes``, ``copy_to_host``,
    ``copy_to_device``, ``reshape``, ``ravel``, ``squeeze``, ``T``, ``view``, ``split``, ``bind``, and slices, which
    are views.
    """

    def __init__(self, data: np.ndarray, stream: Any = 0):
        self._data = data
        self.stream = stream

    @classmethod
    def owning(cls, data: np.ndarray, stream: Any = 0, written: bool = True) -> DeviceArray:
        """A device array of memory that was allocated for it, with contents or without."""
        register(data, written)
        return cls(data, stream)

    shape = property(lambda self: self._data.shape)
    dtype = property(lambda self: self._data.dtype)
    size = property(lambda self: self._data.size)
    ndim = property(lambda self: self._data.ndim)
    strides = property(lambda self: self._data.strides)
    nbytes = property(lambda self: self._data.nbytes)
    flags = property(lambda self: self._data.flags)
    alloc_size = nbytes

    @property
    def T(self) -> DeviceArray:
        return self._view(self._data.T)

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, emulated)"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """A host copy, for NumPy functions."""
        if copy is False:
            raise ValueError("a device array must be copied to the host before NumPy can use it")
        return self.copy_to_host().astype(dtype or self.dtype, copy=False)

    def _view(self, data: np.ndarray) -> DeviceArray:
        return DeviceArray(data, self.stream)

    # -- copies -----------------------------------------------------------------------------------------------

    def copy_to_host(self, ary: np.ndarray | None = None, stream: Any = 0) -> np.ndarray:
        """A new host array with the contents, or ``ary`` filled with them."""
        if ary is None:
            ary = np.empty_like(self._data)
        elif not isinstance(ary, np.ndarray) or ary.shape != self.shape or ary.dtype != self.dtype:
            raise LabkitError(
                f"copy_to_host needs an array of shape {self.shape} and dtype {self.dtype}, but got "
                f"{getattr(ary, 'shape', '')} {getattr(ary, 'dtype', type(ary).__name__)}."
            )
        ary[...] = self._data
        CLOCK.submit(stream or self.stream, TO_HOST, self.nbytes)
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Overwrite the contents with those of a host or device array of the same shape."""
        source = ary._data if isinstance(ary, DeviceArray) else host_array(ary, "The array")
        if source.shape != self.shape or source.dtype != self.dtype:
            raise LabkitError(
                f"copy_to_device needs an array of shape {self.shape} and dtype {self.dtype}, but got "
                f"{source.shape} {source.dtype}."
            )
        self._data[...] = source
        all_written(self._data)
        CLOCK.submit(stream or self.stream, TO_DEVICE, self.nbytes)

    # -- views ------------------------------------------------------------------------------------------------

    def reshape(self, *shape: Any, order: Any = "C") -> DeviceArray:
        lengths = shape[0] if len(shape) == 1 else shape
        return self._view(self._data.reshape(lengths, order=order))

    def ravel(self, order: Any = "C", stream: Any = 0) -> DeviceArray:
        return self._view(self._data.ravel(order))

    def squeeze(self, axis: Any = None, stream: Any = 0) -> DeviceArray:
        return self._view(self._data.squeeze(axis))

    def transpose(self, axes: Any = None) -> DeviceArray:
        return self._view(self._data.transpose(axes))

    def view(self, dtype: Any) -> DeviceArray:
        return self._view(self._data.view(dtype))

    def bind(self, stream: Any = 0) -> DeviceArray:
        """The same array, whose copies go to ``stream`` unless they say otherwise."""
        return DeviceArray(self._data, stream)

    def split(self, section: int, stream: Any = 0) -> list[DeviceArray]:
        """Pieces of ``section`` elements of a one-dimensional array; the last may be shorter."""
        if self.ndim != 1:
            raise LabkitError("split() takes arrays of one dimension: use slices, such as array[:rows].")
        return [self._view(self._data[k : k + section]) for k in range(0, self.size, section)]

    def __getitem__(self, key: Any) -> Any:
        part = self._data[key]
        return self._view(part) if isinstance(part, np.ndarray) and part.ndim else part

    def getitem(self, key: Any, stream: Any = 0) -> Any:
        return self[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._data[key] = value._data if isinstance(value, DeviceArray) else value
        all_written(self._data)

    def setitem(self, key: Any, value: Any, stream: Any = 0) -> None:
        self[key] = value

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    def is_c_contiguous(self) -> bool:
        return bool(self._data.flags.c_contiguous)

    def is_f_contiguous(self) -> bool:
        return bool(self._data.flags.f_contiguous)

    def get_ipc_handle(self) -> None:
        """Only the memory of a real GPU can be shared between processes."""
        raise LabkitError(
            "get_ipc_handle() shares a real GPU's memory between processes, and there is none here: use "
            "multiprocessing.shared_memory for arrays of the host."
        )


DeviceNDArray = DeviceArray  # numba's name for it


def check_dtype(dtype: Any) -> np.dtype:
    """The NumPy dtype that a NumPy or numba type names."""
    try:
        return np.dtype(dtype)
    except TypeError:
        return np.dtype(getattr(dtype, "dtype", None) or str(dtype))


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


def host_array(value: Any, what: str) -> np.ndarray:
    """What can be copied to the device, as a NumPy array."""
    shared = None if isinstance(value, np.ndarray) else shared_view(value, what)
    return np.asarray(value) if shared is None else shared


def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: DeviceArray | None = None) -> DeviceArray:
    """Copy a host array to the device; a device array, or a slice of one, is returned as it is.

    Raises
    ------
    LabkitError
        For arrays of objects, host views with gaps between their elements, and memory of a real GPU.
    """
    if isinstance(obj, DeviceArray):
        return obj
    array = whole(host_array(obj, "The array"), "The array")
    if to is not None:
        to.copy_to_device(array, stream)
        return to
    if not copy:
        return DeviceArray.owning(np.empty_like(array, subok=False), stream)
    CLOCK.submit(stream, TO_DEVICE, array.nbytes)
    return DeviceArray.owning(np.array(array, order="K", subok=False), stream)


def as_device_view(obj: Any) -> DeviceArray:
    """A device array that shares the memory of an array of another library."""
    if isinstance(obj, DeviceArray):
        return obj
    data = shared_view(obj, "The array")
    if data is None:
        raise LabkitError(
            f"A {type(obj).__name__} shares no memory with the device: copy it with cuda.to_device(...)."
        )
    return DeviceArray(data)


def device_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", stream: Any = 0
) -> DeviceArray:
    """An uninitialised array on the device; floats are NaN, so that a read before a write shows."""
    data = np.empty(shape, check_dtype(dtype), order="F" if order == "F" else "C")
    if data.dtype.kind in "fc":
        data.fill(np.nan)
    return DeviceArray.owning(data, stream, written=False)


def device_array_like(ary: Any, stream: Any = 0) -> DeviceArray:
    """An uninitialised device array of the same shape and dtype."""
    order = (
        "F"
        if ary.ndim > 1 and ary.strides == tuple(sorted(ary.strides)) and ary.strides[0] < ary.strides[-1]
        else "C"
    )
    return device_array(ary.shape, ary.dtype, order=order, stream=stream)
