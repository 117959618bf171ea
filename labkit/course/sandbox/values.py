"""Python values as JSON, with arrays kept aside: arguments on their way to an answer, and what it returns.

A value that has no such form comes out as :class:`Foreign`: its type and a short text, enough to say what was
wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.course.sandbox import tensors

LONGEST_TEXT = 10_000
LARGEST_BITS = 4096
MOST_ITEMS = 200_000
DEEPEST = 20
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # it differs from run to run and tells a learner nothing


@dataclass(frozen=True)
class Foreign:
    """A value that cannot travel: the name of its type, and a short description."""

    type: str
    text: str


class Encoder:
    """Turns values into JSON; arrays gather in :attr:`arrays`, and their bytes count against ``budget``."""

    def __init__(self, prefix: str = "v", budget: int = 64 * 2**20) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.left = budget
        self._items = MOST_ITEMS
        self._prefix = prefix

    def encode(self, value: Any, depth: int = 0) -> Any:
        """The JSON form of ``value``; ``{"other": [type, text]}`` where there is none."""
        self._items -= 1
        value = plain(value)
        kind = type(value)
        if value is None or kind is bool or kind is float:
            return value
        if kind is int and value.bit_length() <= LARGEST_BITS:
            return value
        if kind is str and len(value) <= LONGEST_TEXT:
            return value
        if issubclass(kind, (np.ndarray, np.generic)):
            return self._array(value)
        if tensors.is_tensor(value):
            return self._tensor(value)
        if depth < DEEPEST and kind in (list, tuple, dict) and len(value) <= self._items:
            return self._container(kind.__name__, value, depth)
        return other(value)

    def _array(self, value: np.ndarray | np.generic) -> Any:
        array = np.asarray(value)
        if array.dtype.kind not in "biufc" or array.nbytes > self.left:
            return other(value)
        self.left -= array.nbytes
        name = f"{self._prefix}{len(self.arrays)}"
        self.arrays[name] = array
        return {"scalar" if isinstance(value, np.generic) else "array": name}

    def _tensor(self, value: Any) -> Any:
        try:
            if tensors.size(value) > self.left:
                return other(value)
            form = self._array(tensors.to_array(value))
            return {"tensor": [form["array"], tensors.dtype_name(value), bool(value.requires_grad)]}
        except (AttributeError, KeyError, NotImplementedError, RuntimeError, TypeError):
            return other(value)  # sparse, quantised, without storage: no plain values

    def _container(self, kind: str, value: Any, depth: int) -> Any:
        items = value.items() if kind == "dict" else value
        return {kind: [self.encode(tuple(item) if kind == "dict" else item, depth + 1) for item in items]}


def plain(value: Any) -> Any:
    """A value of a subclass of int, float, str, list, tuple or dict as one of these, by their own methods."""
    kind = type(value)
    if kind in (bool, int, float, list, tuple, dict, str) or issubclass(kind, (np.floating, np.integer)):
        return value
    for base, bare in _BARE.items():
        if issubclass(kind, base):
            return bare(value)
    return value


_BARE: dict[type, Any] = {
    int: int.__index__,
    float: float.__float__,
    str: str.__str__,
    list: lambda value: list(list.__iter__(value)),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    dict: lambda value: dict(dict.items(value)),
}


def decode(
    form: Any, arrays: dict[str, np.ndarray], tensor: Callable[..., Any] = tensors.to_tensor_array
) -> Any:
    """The value that :meth:`Encoder.encode` wrote; ValueError for a form it does not write.

    ``tensor(array, dtype, requires_grad)`` makes what stands for a torch tensor.
    """
    if form is None or isinstance(form, (bool, int, float, str)):
        return form
    if not isinstance(form, dict) or len(form) != 1:
        raise ValueError("not the form of a value")
    ((kind, content),) = form.items()
    if kind == "array":
        return arrays[str(content)]
    if kind == "scalar":
        return arrays[str(content)][()]
    if kind == "tensor":
        return tensor(arrays[str(content[0])], str(content[1]), bool(content[2]))
    if kind == "other":
        return Foreign(str(content[0]), str(content[1]))
    if kind not in ("list", "tuple", "dict"):
        raise ValueError("not the form of a value")
    return {"list": list, "tuple": tuple, "dict": dict}[kind](
        decode(item, arrays, tensor) for item in content
    )


def other(value: Any) -> dict[str, list[str]]:
    """The form of a value that cannot travel."""
    return {"other": [type_name(value), describe(value)]}


def type_name(value: Any) -> str:
    """The name of a value's type, whatever its metaclass says."""
    return str(type.__dict__["__name__"].__get__(type(value)))


def describe(value: Any, longest: int = 80) -> str:
    """A short text for any value, whatever its own ``repr`` does, and without building a long one."""
    try:
        kind = type(value)
        if issubclass(kind, np.ndarray):
            return f"array of shape {value.shape}, dtype {value.dtype}"
        if tensors.is_tensor(value):
            return f"tensor of shape {tuple(value.shape)}, dtype {tensors.dtype_name(value)}"
        if issubclass(kind, int) and value.bit_length() > LARGEST_BITS:
            return f"an integer of {value.bit_length()} bits"
        if issubclass(kind, (str, bytes, list, tuple, dict, set, frozenset)) and len(value) > 1000:
            return f"{type_name(value)} of length {len(value)}"
        text = _ADDRESS.sub("", str.__str__(repr(value)))
    except KeyboardInterrupt:
        raise
    except BaseException:  # a repr can raise anything, and SystemExit would end the notebook
        return f"a {type_name(value)} that cannot be printed"
    return text if len(text) <= longest else text[: longest - 1] + "…"
