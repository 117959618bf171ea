"""``@vectorize`` and ``@guvectorize`` with ``target="cuda"``: functions of elements, or of rows, over whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.compute.emulator import gufunc
from labkit.compute.emulator.device_array import DeviceArray, host_array
from labkit.compute.emulator.elementwise import device_function, generated
from labkit.compute.emulator.kernel import EmulatedKernel
from labkit.compute.emulator.signatures import Signature, declared, read
from labkit.errors import KernelError

Types = tuple[np.dtype, ...]


class CUDAVectorize:
    """Builds the function that ``@vectorize(..., target="cuda")`` returns, as numba's builders do."""

    def __init__(self, func: Any, identity: Any = None, cache: bool = False, targetoptions: Any = None):
        self.py_func = getattr(func, "py_func", func)
        self.loops: dict[Types, tuple[np.dtype, EmulatedKernel]] = {}

    def add(self, sig: Any = None) -> None:
        signature = read(sig)
        inputs, result = declared(signature)
        if result is None or not inputs or any(t is None for t in inputs):
            raise KernelError(
                f"The signature {signature} of an elementwise function must name the types of numbers and of the "
                "result, like 'float32(float32, float32)'.",
                kind="signature",
            )
        self.loops[tuple(t for t in inputs if t is not None)] = result, _loop(self.py_func, signature)

    def disable_compile(self) -> None:
        """Types are fixed by the signatures."""

    def build_ufunc(self) -> EmulatedUfunc:
        return EmulatedUfunc(self.py_func, self.loops)


def _loop(function: Callable, signature: Signature) -> EmulatedKernel:
    names = [f"x{k}" for k in range(len(signature.arguments))]
    elements = ", ".join(f"{n}[i]" for n in names)
    text = (
        f"def elementwise(count, result, {', '.join(names)}):\n"
        f"    i = grid(1)\n    if i < count:\n        result[i] = function({elements})\n"
    )
    return generated(text, function=device_function(function, signature))


class EmulatedUfunc:
    """A function of elements, applied to whole arrays with broadcasting.

    Arrays must have exactly the types of one signature; plain numbers are converted to what the arrays allow. With a
    device array among the arguments the result stays on the device.
    """

    max_blocksize = 256

    def __init__(self, py_func: Callable, loops: dict[Types, tuple[np.dtype, EmulatedKernel]]):
        self.py_func = py_func
        self.loops = loops
        self.__name__ = getattr(py_func, "__name__", "function")
        self.__doc__ = py_func.__doc__

    def __repr__(self) -> str:
        return f"<emulated CUDA ufunc {self.__name__}, {len(self.loops)} type(s)>"

    def __call__(self, *args: Any, out: Any = None, stream: Any = 0) -> Any:
        types, (result, kernel) = self._select(args)
        arrays = [
            a._data if isinstance(a, DeviceArray) else np.asarray(a, t)
            for a, t in zip(args, types, strict=True)
        ]
        shape = self._shape(arrays)
        computed = DeviceArray(np.empty(shape, result))
        count = computed.size
        if count:
            flat = [DeviceArray(np.broadcast_to(a, shape).reshape(-1)) for a in arrays]
            blocks = -(-count // self.max_blocksize)
            kernel[blocks, self.max_blocksize, stream](count, computed.ravel(), *flat)
        return deliver(computed, out, any(isinstance(a, DeviceArray) for a in args))

    def reduce(self, arg: Any, stream: Any = 0) -> Any:
        """Fold a one-dimensional array with the function, which must take two numbers."""
        values = (arg if isinstance(arg, DeviceArray) else DeviceArray(np.array(arg)))[:]
        if values.ndim != 1 or not values.size:
            raise KernelError(
                f"{self.__name__}.reduce takes an array of one dimension that is not empty.", kind="arguments"
            )
        while values.size > 1:
            half = values.size // 2
            folded = self(values[:half], values[half : 2 * half], stream=stream)
            if values.size % 2:
                folded._data[:1] = self(folded[:1], values[-1:], stream=stream)._data
            values = folded
        return values[0]

    def _select(self, args: tuple) -> tuple[Types, tuple[np.dtype, EmulatedKernel]]:
        """The signature that fits: exactly for arrays; numbers take the type that is left."""
        given = [None if is_number(a) else _dtype_of(a, self.__name__) for a in args]
        exact = tuple(np.asarray(a).dtype if t is None else t for a, t in zip(args, given, strict=True))
        if exact in self.loops:
            return exact, self.loops[exact]
        fitting = [types for types in self.loops if _agree(types, given)]
        if len(fitting) == 1:
            return fitting[0], self.loops[fitting[0]]
        shown = ", ".join(map(str, exact))
        known = " or ".join(f"({', '.join(map(str, types))})" for types in self.loops)
        why = "fits more than one of" if fitting else "is none of"
        raise KernelError(
            f"'{self.__name__}' was called with ({shown}), which {why} {known}: convert arrays with .astype(...), and "
            "give numbers a type, such as np.float32(2).",
            kind="arguments",
        )

    def _shape(self, arrays: list[np.ndarray]) -> tuple[int, ...]:
        if all(a.ndim == 0 for a in arrays):
            return (1,)  # numbers only: numba makes arrays of one element of them
        try:
            return np.broadcast_shapes(*(a.shape for a in arrays))
        except ValueError:
            shapes = " and ".join(str(a.shape) for a in arrays)
            raise KernelError(
                f"'{self.__name__}' cannot combine arrays of shapes {shapes}: lengths along each axis must be equal, "
                "or 1.",
                kind="arguments",
            ) from None


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex, np.number))


def _dtype_of(value: Any, name: str) -> np.dtype:
    return (
        value.dtype if isinstance(value, DeviceArray) else host_array(value, f"An argument of '{name}'").dtype
    )


def _agree(types: Types, given: list[np.dtype | None]) -> bool:
    return len(types) == len(given) and all(g is None or g == t for t, g in zip(types, given, strict=True))


def deliver(computed: DeviceArray, out: Any, on_device: bool) -> Any:
    """The result where the caller wants it: in ``out``, on the device, or on the host."""
    if isinstance(out, DeviceArray):
        out._data[...] = computed._data
        return out
    if out is not None:
        out[...] = computed._data
        return out
    return computed if on_device else computed.copy_to_host()


def vectorize(ftylist_or_function: Any = (), target: str = "cuda", **options: Any) -> Any:
    """Make a function of elements apply to whole arrays, on the emulator.

    Parameters
    ----------
    ftylist_or_function : signature or list of signatures
        Such as ``["float32(float32, float32)"]``.
    """
    many = isinstance(ftylist_or_function, (list, tuple)) and not _is_types(ftylist_or_function)
    signatures = list(ftylist_or_function) if many else [ftylist_or_function]

    def wrap(function: Callable) -> EmulatedUfunc:
        builder = CUDAVectorize(function)
        for signature in signatures:
            builder.add(signature)
        return builder.build_ufunc()

    if not signatures or (callable(ftylist_or_function) and hasattr(ftylist_or_function, "__code__")):
        raise KernelError(
            "@vectorize with target='cuda' needs the types: write @vectorize(['float32(float32)'], target='cuda').",
            kind="signature",
        )
    return wrap


def _is_types(thing: Any) -> bool:
    return isinstance(thing, tuple) and not any(isinstance(t, (str, tuple, Signature)) for t in thing)


def guvectorize(*args: Any, target: str = "cuda", **options: Any) -> Any:
    """Make a function of rows, such as ``(n),(n)->()``, apply to arrays with any number of leading axes."""
    *types, layout = args
    signatures = types[0] if types else []

    def wrap(function: Callable) -> gufunc.EmulatedGufunc:
        builder = gufunc.CUDAGUFuncVectorize(function, layout)
        for signature in signatures if isinstance(signatures, list) else [signatures]:
            builder.add(signature)
        return builder.build_ufunc()

    return wrap


__all__ = ["CUDAVectorize", "EmulatedUfunc", "guvectorize", "vectorize"]
