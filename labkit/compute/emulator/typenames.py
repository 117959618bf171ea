"""The names of types that numba's users write: ``float32``, ``int32[:, :]``, ``void(float32[:], int32)``.

They stand in for numba's own where numba is not installed, and are what signatures are read into.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ScalarName:
    """A scalar type: called with a number it converts, called with types it makes a signature, indexed an array."""

    name: str
    dtype: np.dtype

    def __repr__(self) -> str:
        return self.name

    def __call__(self, *arguments: Any) -> Any:
        if len(arguments) == 1 and not isinstance(arguments[0], TYPE_NAMES):
            with np.errstate(all="ignore"):
                return np.asarray(arguments[0]).astype(self.dtype)[()]
        return Signature(self, arguments)

    def __getitem__(self, axes: Any) -> ArrayName:
        return ArrayName(self.dtype, *layout_of(axes))


@dataclass(frozen=True)
class ArrayName:
    """An array type: ``layout`` is ``"C"``, ``"F"``, or ``"A"`` for any order."""

    dtype: np.dtype
    ndim: int
    layout: str = "A"

    def __repr__(self) -> str:
        axes = [":"] * self.ndim
        if self.layout != "A":
            axes[-1 if self.layout == "C" else 0] = "::1"
        return f"{self.dtype}[{', '.join(axes)}]"


@dataclass(frozen=True)
class VoidName:
    """The result type of kernels."""

    def __repr__(self) -> str:
        return "void"

    def __call__(self, *arguments: Any) -> Signature:
        return Signature(self, arguments)


@dataclass(frozen=True)
class Signature:
    """Types of the arguments, and of the result (``void`` or None where nothing is said)."""

    result: Any
    arguments: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"{self.result or ''}({', '.join(map(repr, self.arguments))})"


TYPE_NAMES = (ScalarName, ArrayName, VoidName)


def layout_of(axes: Any) -> tuple[int, str]:
    """Number of dimensions and memory order that slices such as ``[:, ::1]`` say."""
    slices = axes if isinstance(axes, tuple) else (axes,)
    if not all(isinstance(s, slice) and s.step in (None, 1) and s.start is s.stop is None for s in slices):
        raise TypeError("an array type is written with colons, one an axis: float32[:], float32[:, ::1]")
    if slices[-1].step == 1:
        return len(slices), "C"
    return len(slices), "F" if slices[0].step == 1 else "A"


_WIDTHS = {
    **{f"{kind}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    "float16": "float16",
    "float32": "float32",
    "float64": "float64",
    "complex64": "complex64",
    "complex128": "complex128",
    "boolean": "bool",
    "bool_": "bool",
    "b1": "bool",
    "byte": "uint8",
    "char": "int8",
    "uchar": "uint8",
    "short": "int16",
    "ushort": "uint16",
    "intc": "int32",
    "uintc": "uint32",
    "int_": "int64",
    "uint": "uint64",
    "intp": "int64",
    "uintp": "uint64",
    "long_": "int64",
    "ulong": "uint64",
    "longlong": "int64",
    "ulonglong": "uint64",
    "size_t": "uint64",
    "ssize_t": "int64",
    "float_": "float32",
    "double": "float64",
    "i1": "int8",
    "i2": "int16",
    "i4": "int32",
    "i8": "int64",
    "u1": "uint8",
    "u2": "uint16",
    "u4": "uint32",
    "u8": "uint64",
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "c8": "complex64",
    "c16": "complex128",
}
void = VoidName()
SCALARS: dict[str, ScalarName] = {
    name: ScalarName(np.dtype(width).name, np.dtype(width)) for name, width in _WIDTHS.items()
}
# In the text of a signature C's and Python's own names are there too.
NAMES: dict[str, Any] = {
    **SCALARS,
    "int": SCALARS["int32"],
    "float": SCALARS["float32"],
    "bool": SCALARS["bool_"],
    "long": SCALARS["int64"],
    "void": void,
    "none": void,
}


def __getattr__(name: str) -> Any:
    """``types.float32``, as in numba's module of that name."""
    if name in SCALARS:
        return SCALARS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
