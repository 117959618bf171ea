"""Calls that give one number, made as cheap as they can be: the place for the answer is made once.

nvidia-ml-py makes a new one at every call and looks every function up by name; with ten metrics of eight GPUs
twice a second that is most of the time a monitor takes.
"""

from __future__ import annotations

import ctypes
from typing import Any


class Number:
    """Ask a function ``(device, *arguments, out...)`` of NVML for an unsigned number.

    Parameters
    ----------
    nvml : module
        ``pynvml`` after ``nvmlInit``.
    name : str
        The function, e.g. ``"nvmlDeviceGetPowerUsage"``.
    arguments : int
        What stands between the device and the places for answers.
    places : int
        How many answers it writes; the first counts.
    """

    def __init__(self, nvml: Any, name: str, *arguments: int, places: int = 1, wide: bool = False):
        self._error = nvml.NVMLError
        self._function = getattr(nvml.nvmlLib, name, None)
        self._missing = nvml.NVML_ERROR_FUNCTION_NOT_FOUND
        kind = ctypes.c_ulonglong if wide else ctypes.c_uint
        self._answers = [kind() for _ in range(places)]
        self._first = self._answers[0]
        self._rest = (*arguments, *map(ctypes.byref, self._answers))

    def __call__(self, handle: Any) -> int:
        if self._function is None:
            raise self._error(self._missing)
        status = self._function(handle, *self._rest)
        if status:
            raise self._error(status)
        return self._first.value


class Pair(Number):
    """Like `Number`, for a function that writes a structure of two unsigned numbers; the first counts."""

    def __init__(self, nvml: Any, name: str):
        super().__init__(nvml, name)
        self._both = (ctypes.c_uint * 2)()
        self._rest = (ctypes.byref(self._both),)

    def __call__(self, handle: Any) -> int:
        super().__call__(handle)
        return self._both[0]


class _Value(ctypes.Union):
    _fields_ = (("small", ctypes.c_uint), ("wide", ctypes.c_ulonglong))


class _Field(ctypes.Structure):
    """nvmlFieldValue_t."""

    _fields_ = (
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("type", ctypes.c_uint),
        ("status", ctypes.c_uint),
        ("value", _Value),
    )


class Counters:
    """Ask for several of NVML's fields at once: for each its value, or None where the GPU does not report it.

    Parameters
    ----------
    nvml : module
        ``pynvml`` after ``nvmlInit``.
    fields : tuple of (int, int)
        Number of the field, and its scope (0 where it has none).
    """

    def __init__(self, nvml: Any, *fields: tuple[int, int]):
        self._error = nvml.NVMLError
        self._missing = nvml.NVML_ERROR_FUNCTION_NOT_FOUND
        self._function = getattr(nvml.nvmlLib, "nvmlDeviceGetFieldValues", None)
        self._fields = (_Field * len(fields))()
        for place, (field, scope) in zip(self._fields, fields, strict=True):
            place.field, place.scope = field, scope
        self._count = ctypes.c_int(len(fields))
        self._unsigned_int = 1  # of nvmlValueType_t; the others that counters have are 64 bits wide

    def __call__(self, handle: Any) -> list[int | None]:
        if self._function is None:
            raise self._error(self._missing)
        status = self._function(handle, self._count, self._fields)
        if status:
            raise self._error(status)
        return [None if one.status else self._number(one) for one in self._fields]

    def _number(self, found: Any) -> int:
        return int(found.value.small if found.type == self._unsigned_int else found.value.wide)
