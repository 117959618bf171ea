"""What an expression of a kernel means while it is being lowered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.compute.emulator.types import ArrayType


class _Unknown:
    """A value that only the launch decides."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = _Unknown()


@dataclass(frozen=True)
class Scalar:
    """A number: ``code`` is its register or constant; ``const`` its value when known while lowering.

    ``undefined`` names the variable when some path to here has not assigned it.
    """

    type: np.dtype
    code: str
    const: Any = UNKNOWN
    undefined: str | None = None
    # numba calculates with constants only after it has settled types: a shape must be a constant as written
    calculated: bool = False

    @property
    def known(self) -> bool:
        return self.const is not UNKNOWN

    @property
    def registers(self) -> tuple[str, ...]:
        return () if self.known else (self.code,)


@dataclass(frozen=True)
class Whole:
    """A free axis of a view: all of it (``:``), or ``length`` elements from ``start``."""

    start: Scalar | None = None
    length: Scalar | None = None


@dataclass(frozen=True)
class ArrayRef:
    """An array operand, or the view that a partial index such as ``a[i]`` or ``a[:, j]`` leaves of it.

    ``pattern`` has an entry for each axis of the operand: a Scalar where the view fixes it, or ``Whole``. ``field``
    names the member of a structured element that is meant.
    """

    type: ArrayType
    number: int
    name: str
    pattern: tuple[Scalar | Whole, ...]
    field: str | None = None

    @staticmethod
    def whole(ndim: int) -> tuple[Scalar | Whole, ...]:
        """The pattern of an array that is not indexed yet."""
        return (Whole(),) * ndim

    @property
    def code(self) -> str:
        return f"g.arrays[{self.number}]" if self.field is None else f"g.field({self.number}, {self.field!r})"

    @property
    def axes(self) -> tuple[int, ...]:
        """The operand's axes that are still free."""
        return tuple(k for k, entry in enumerate(self.pattern) if isinstance(entry, Whole))


@dataclass(frozen=True)
class Tuple:
    """A tuple, whose length and members' types are known while lowering."""

    items: tuple[Any, ...]


@dataclass(frozen=True)
class Static:
    """Something that is not data: a module, a function, a type, a string, None."""

    value: Any


@dataclass(frozen=True)
class Conflict:
    """A name that stands for different arrays or functions on different paths."""

    name: str


@dataclass(frozen=True)
class Intrinsic:
    """A name of ``numba.cuda`` that only a kernel can use, such as ``threadIdx`` or ``shared.array``."""

    path: str

    def __getattr__(self, name: str) -> Intrinsic:
        if name.startswith("__"):
            raise AttributeError(name)
        return Intrinsic(f"{self.path}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from labkit.errors import KernelError

        raise KernelError(
            f"cuda.{self.path} works only inside a kernel: call it in a function decorated with @cuda.jit, "
            "and launch that with kernel[blocks, threads](...).",
            kind="host-use",
        )

    def __repr__(self) -> str:
        return f"<cuda.{self.path}: usable inside kernels>"


Value = Scalar | ArrayRef | Tuple | Static | Conflict


def type_of(value: Value) -> Any:
    """What numba would call the type of an argument."""
    if isinstance(value, (Scalar, ArrayRef)):
        return value.type
    return tuple(type_of(item) for item in value.items) if isinstance(value, Tuple) else repr(value)


def describe(value: Value) -> str:
    """A value in words, for messages."""
    if isinstance(value, ArrayRef):
        return f"the array '{value.name}'"
    if isinstance(value, Tuple):
        return "a tuple"
    if isinstance(value, Scalar):
        return f"a {value.type} number"
    if isinstance(value, Static) and isinstance(value.value, Intrinsic):
        return f"cuda.{value.value.path}"
    if isinstance(value, Static):
        inner = value.value
        return "a string" if isinstance(inner, str) else f"{getattr(inner, '__name__', None) or inner!r}"
    return "that"
