"""Arguments of a launch: their types as numba sees them, and the memory or registers they become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.compute.emulator import types as ty
from labkit.compute.emulator.device_array import DeviceArray, whole
from labkit.compute.emulator.foreign import shared_view
from labkit.compute.emulator.host.memory import ReachableArray
from labkit.errors import KernelError, LabkitError


@dataclass(frozen=True)
class Argument:
    """One argument: ``kind`` is a dtype, an ArrayType, or a tuple of kinds; ``value`` a scalar, array or tuple."""

    kind: Any
    value: Any


def classify(value: Any, name: str, kernel: str) -> Argument:
    """How a Python value travels into a kernel.

    Raises
    ------
    KernelError
        Of kind ``arguments`` when it cannot, with what to pass instead.
    """
    if isinstance(value, DeviceArray):
        return _array(value._data, name, kernel)
    if isinstance(value, np.ndarray):
        return _array(_reachable(value, f"Argument '{name}' of kernel '{kernel}'"), name, kernel)
    scalar = _scalar(value)
    if scalar is not None:
        return Argument(scalar.dtype, scalar)
    if isinstance(value, tuple):
        members = [classify(item, name, kernel) for item in value]
        return Argument(tuple(m.kind for m in members), tuple(m.value for m in members))
    array = _reachable(value, f"Argument '{name}' of kernel '{kernel}'")
    if array is not None:
        return _array(array, name, kernel)
    hint = "np.array(...) of it" if isinstance(value, (list, range)) else "a number or a NumPy array"
    raise KernelError(
        f"Argument '{name}' of kernel '{kernel}' is a {type(value).__name__}, which cannot travel to a "
        f"device: pass {hint}.",
        kind="arguments",
    )


def _scalar(value: Any) -> Any:
    if isinstance(value, (bool, np.bool_)):
        return np.bool_(value)
    if isinstance(value, int):
        return np.int64(value) if -(2**63) <= value < 2**63 else np.uint64(value)
    if isinstance(value, np.generic):
        return value
    if isinstance(value, float):
        return np.float64(value)
    if isinstance(value, complex):
        return np.complex128(value)
    return None


def _reachable(value: Any, what: str) -> Any:
    """The memory that a kernel reads and writes; None when the value is not an array."""
    try:
        if isinstance(value, ReachableArray):
            return value.view(np.ndarray)
        return whole(value, what) if isinstance(value, np.ndarray) else shared_view(value, what)
    except LabkitError as error:
        raise KernelError(str(error), kind="arguments") from None


def _array(data: np.ndarray, name: str, kernel: str) -> Argument:
    if data.dtype.kind not in "biufcV":
        raise KernelError(
            f"Argument '{name}' of kernel '{kernel}' has dtype {data.dtype}; a device knows numbers only.",
            kind="arguments",
        )
    if any(stride < 0 or stride % data.itemsize for stride in data.strides) and data.size:
        raise KernelError(
            f"Argument '{name}' of kernel '{kernel}' is a view that runs backwards or between elements (strides "
            f"{data.strides}): pass a copy of it.",
            kind="arguments",
        )
    return Argument(ty.ArrayType(data.dtype, data.ndim, "global", not data.flags.writeable), data)


def leaves(value: Any, number: tuple[int, ...]) -> list[tuple[tuple[int, ...], Any]]:
    """The scalars and arrays in an argument, each with its position: tuples are opened."""
    if isinstance(value, tuple):
        return [leaf for k, item in enumerate(value) for leaf in leaves(item, (*number, k))]
    return [(number, value)]
