"""Generalised ufuncs: functions of rows or matrices, over every leading axis of their arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from labkit.compute.emulator.device_array import DeviceArray, host_array
from labkit.compute.emulator.elementwise import device_function, generated
from labkit.compute.emulator.kernel import EmulatedKernel
from labkit.compute.emulator.signatures import Signature, read
from labkit.compute.emulator.typenames import ArrayName
from labkit.errors import KernelError

Core = tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """``(m,n),(n)->(m)``: the core dimensions of inputs and outputs."""

    text: str
    inputs: tuple[Core, ...]
    outputs: tuple[Core, ...]

    @classmethod
    def parse(cls, text: str) -> Layout:
        sides = text.replace(" ", "").split("->")
        if len(sides) != 2 or not all(re.fullmatch(r"\([\w,]*\)(,\([\w,]*\))*", side) for side in sides):
            raise KernelError(
                f"The layout {text!r} cannot be read: write it like '(m,n),(n)->(m)'.", kind="signature"
            )
        return cls(text, *(tuple(map(_core, re.findall(r"\(([\w,]*)\)", side))) for side in sides))


def _core(text: str) -> Core:
    return tuple(name for name in text.split(",") if name)


class CUDAGUFuncVectorize:
    """Builds the function that ``@guvectorize(..., target="cuda")`` returns, as numba's builders do."""

    def __init__(
        self,
        func: Any,
        sig: str,
        identity: Any = None,
        cache: bool = False,
        targetoptions: Any = None,
        writable_args: Any = (),
    ):
        self.py_func = getattr(func, "py_func", func)
        self.layout = Layout.parse(sig)
        self.loops: list[tuple[Signature, EmulatedKernel]] = []

    def add(self, sig: Any = None) -> None:
        signature = read(sig)
        expected = len(self.layout.inputs) + len(self.layout.outputs)
        if len(signature.arguments) != expected:
            raise KernelError(
                f"The signature {signature} names {len(signature.arguments)} types, but the layout "
                f"{self.layout.text} has {expected} arguments.",
                kind="signature",
            )
        names = [f"x{k}" for k in range(expected)]
        rows = ", ".join(f"{n}[i]" for n in names)
        text = (
            f"def rowwise(count, {', '.join(names)}):\n"
            f"    i = grid(1)\n    if i < count:\n        function({rows})\n"
        )
        self.loops.append((signature, generated(text, function=device_function(self.py_func))))

    def disable_compile(self) -> None:
        """Types are fixed by the signatures."""

    def build_ufunc(self) -> EmulatedGufunc:
        return EmulatedGufunc(self.py_func, self.layout, self.loops)


class EmulatedGufunc:
    """A function of rows or matrices, applied along every leading axis of its arguments, with broadcasting."""

    max_blocksize = 128

    def __init__(self, py_func: Callable, layout: Layout, loops: list[tuple[Signature, EmulatedKernel]]):
        self.py_func = py_func
        self.layout = layout
        self.loops = loops
        self.__name__ = getattr(py_func, "__name__", "function")
        self.__doc__ = py_func.__doc__

    def __repr__(self) -> str:
        return f"<emulated CUDA gufunc {self.__name__} {self.layout.text}>"

    def __call__(self, *args: Any, out: Any = None, stream: Any = 0) -> Any:
        count = len(self.layout.inputs)
        if len(args) not in (count, count + len(self.layout.outputs)):
            raise self._wrong(f"takes {count} argument(s), and the outputs if you like, but got {len(args)}")
        given, outs = args[:count], args[count:] or (out if isinstance(out, tuple) else (out,))
        inputs = [a._data if isinstance(a, DeviceArray) else host_array(a, "An argument") for a in given]
        signature, kernel = self._select([a.dtype for a in inputs])
        sizes, loop = self._dimensions(inputs)
        rows = prod(loop)
        types = signature.arguments
        arrays = [
            self._spread(a, t, loop, c) for a, t, c in zip(inputs, types, self.layout.inputs, strict=False)
        ]
        results = [
            np.zeros((*loop, *(sizes[d] for d in core)), t.dtype)
            for t, core in zip(types[count:], self.layout.outputs, strict=True)
        ]
        flat = [r.reshape(rows, *(r.shape[len(loop) :] or (1,))) for r in results]
        if rows:
            operands = map(DeviceArray, (*arrays, *flat))
            kernel[-(-rows // self.max_blocksize), self.max_blocksize, stream](rows, *operands)
        from labkit.compute.emulator.ufunc import deliver

        on_device = any(isinstance(a, DeviceArray) for a in given)
        padded = (*outs, *(None,) * len(results))
        made = [deliver(DeviceArray(r), o, on_device) for r, o in zip(results, padded, strict=False)]
        return made[0] if len(made) == 1 else tuple(made)

    def _select(self, dtypes: list[np.dtype]) -> tuple[Signature, EmulatedKernel]:
        """The first signature with exactly these types, or else the first that all convert to without loss."""
        wanted = [([t.dtype for t in s.arguments[: len(dtypes)]], (s, kernel)) for s, kernel in self.loops]
        for test in (np.dtype.__eq__, np.can_cast):
            for types, found in wanted:
                if all(test(d, t) for d, t in zip(dtypes, types, strict=True)):
                    return found
        shown = ", ".join(map(str, dtypes))
        known = " or ".join(map(repr, (s for s, _ in self.loops)))
        raise self._wrong(f"was called with ({shown}), but knows {known}: convert with .astype(...)")

    def _dimensions(self, inputs: list[np.ndarray]) -> tuple[dict[str, int], tuple[int, ...]]:
        """The length of every core dimension, and the leading axes that are looped over."""
        sizes: dict[str, int] = {}
        loops = []
        for array, core in zip(inputs, self.layout.inputs, strict=True):
            if array.ndim < len(core):
                raise self._wrong(
                    f"needs {len(core)} axes for ({','.join(core)}), but an argument has {array.ndim}"
                )
            split = array.ndim - len(core)
            loops.append(array.shape[:split])
            for name, length in zip(core, array.shape[split:], strict=True):
                if sizes.setdefault(name, length) != length:
                    raise self._wrong(f"got both {sizes[name]} and {length} for the dimension '{name}'")
        unknown = {d for core in self.layout.outputs for d in core} - sizes.keys()
        if unknown:
            raise self._wrong(f"cannot tell the length of '{min(unknown)}' from its inputs")
        try:
            return sizes, np.broadcast_shapes(*loops)
        except ValueError:
            raise self._wrong(f"cannot combine the leading axes {' and '.join(map(str, loops))}") from None

    @staticmethod
    def _spread(array: np.ndarray, kind: Any, loop: tuple[int, ...], core: Core) -> np.ndarray:
        """An input of the wanted type, with one row for each turn of the loop."""
        inner = array.shape[array.ndim - len(core) :]
        rows = np.broadcast_to(array, (*loop, *inner)).astype(kind.dtype).reshape(prod(loop), *inner)
        return rows.reshape(-1, 1) if isinstance(kind, ArrayName) and not core else rows

    def _wrong(self, what: str) -> KernelError:
        return KernelError(f"'{self.__name__}' {self.layout.text} {what}.", kind="arguments")
