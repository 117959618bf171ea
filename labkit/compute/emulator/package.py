"""Kernels as data: source text plus the names it refers to, to be run in another process without running Python code.

A packed kernel holds numbers, arrays, NumPy types, device functions (packed likewise) and the names of modules. The
other side parses the text and interprets it; nothing of it is ever executed as Python.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from labkit.compute.emulator.calls import device_function
from labkit.compute.emulator.kernel import EmulatedKernel
from labkit.compute.emulator.library import as_dtype
from labkit.compute.emulator.source import Source, capture
from labkit.compute.emulator.subscripts import CUDA_MODULES
from labkit.compute.emulator.values import Intrinsic
from labkit.errors import LabkitError

LIMIT_BYTES = 64 * 2**20
_BUILTINS = {
    f.__name__: f for f in (abs, min, max, int, float, bool, complex, round, len, pow, divmod, range, print)
}
_MODULES: dict[str, ModuleType] = {"math": math, "numpy": np}


def pack(kernel: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A kernel (or a plain function meant as one) as a JSON-able dictionary and the arrays it refers to.

    Raises
    ------
    LabkitError
        When it refers to something that cannot travel, or to more than 64 MiB of arrays.
    """
    source = device_function(kernel) or capture(kernel)
    arrays: dict[str, np.ndarray] = {}
    packed = _pack_source(source, arrays, ()) | {"signatures": _pack_signatures(kernel)}
    total = sum(a.nbytes for a in arrays.values())
    if total > LIMIT_BYTES:
        raise LabkitError(
            f"'{source.name}' refers to {total / 2**20:,.0f} MiB of arrays, but at most {LIMIT_BYTES // 2**20} MiB can "
            "travel to the checker: pass large arrays as arguments instead of using global ones."
        )
    return packed, arrays


def unpack(packed: dict[str, Any], arrays: dict[str, np.ndarray]) -> EmulatedKernel:
    """The kernel that :func:`pack` took apart."""
    return EmulatedKernel(_unpack_source(packed, arrays), signature=packed.get("signatures"))


def _pack_signatures(kernel: Any) -> list[str]:
    """Explicit signatures as text; those of structured types have none, and are left out."""
    texts = map(repr, getattr(kernel, "signatures", ()))
    return [text for text in texts if "{" not in text]


def _pack_source(source: Source, arrays: dict[str, np.ndarray], above: tuple[Source, ...]) -> dict[str, Any]:
    if any(source.text == other.text for other in above):
        raise LabkitError(f"'{source.name}' calls itself; a device has no recursion, so use a loop.")
    names: dict[str, Any] = {}
    for name in source.free_names:
        try:
            value = source.names[name]
        except (KeyError, ValueError):
            continue  # undefined: the other side will say so, with the line
        try:
            names[name] = _pack_value(name, value, arrays, (*above, source))
        except LabkitError:
            raise
        except Exception:  # an object that raises when it is asked what it is
            names[name] = {"kind": "other", "type": type(value).__name__, "name": name}
    return {"name": source.name, "text": source.text, "first_line": source.first_line, "names": names}


def _pack_value(
    name: str, value: Any, arrays: dict[str, np.ndarray], above: tuple[Source, ...]
) -> dict[str, Any]:
    if isinstance(value, (bool, int, float)):
        return {"kind": "number", "value": value if math.isfinite(value) else repr(value)}
    if isinstance(value, (np.generic, np.ndarray)) and value.dtype.kind in "biufc":
        key = f"a{len(arrays)}"
        arrays[key] = np.asarray(value)
        return {"kind": "array" if isinstance(value, np.ndarray) else "scalar", "key": key}
    if isinstance(value, tuple):
        return {"kind": "tuple", "items": [_pack_value(name, item, arrays, above) for item in value]}
    if isinstance(value, Intrinsic):
        return {"kind": "cuda", "path": value.path}
    if isinstance(value, ModuleType):
        return _pack_module(name, value)
    called = getattr(value, "__name__", "")
    if called and _BUILTINS.get(called) is value:
        return {"kind": "builtin", "name": called}
    dtype = as_dtype(value)
    if dtype is not None:
        return {"kind": "dtype", "name": dtype.str}
    source = device_function(value)
    if source is not None:
        packed = _pack_source(source, arrays, above)
        return {"kind": "function", "source": packed, "signatures": _pack_signatures(value)}
    return _pack_library_function(name, value)


def _pack_module(name: str, module: ModuleType) -> dict[str, Any]:
    if module.__name__ in CUDA_MODULES:
        return {"kind": "module", "name": "cuda"}
    if module.__name__ in ("numba", "labkit"):
        return {"kind": "module", "name": module.__name__}
    if module.__name__ in _MODULES:
        return {"kind": "module", "name": module.__name__}
    raise LabkitError(f"A kernel cannot use the module '{name}'; math, numpy and cuda are there.")


def _pack_library_function(name: str, value: Any) -> dict[str, Any]:
    called = getattr(value, "__name__", "")
    for module_name, module in _MODULES.items():
        if getattr(module, called, None) is value:
            return {"kind": "member", "module": module_name, "name": called}
    return {"kind": "other", "type": type(value).__name__, "name": called or name}


def _unpack_source(packed: dict[str, Any], arrays: dict[str, np.ndarray]) -> Source:
    names = {name: _unpack_value(value, arrays) for name, value in packed["names"].items()}
    return Source(str(packed["name"]), str(packed["text"]), int(packed["first_line"]), names)


def _unpack_value(packed: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    kind = packed["kind"]
    if kind == "number":
        return float(packed["value"]) if isinstance(packed["value"], str) else packed["value"]
    if kind in ("array", "scalar"):
        return arrays[packed["key"]] if kind == "array" else arrays[packed["key"]][()]
    if kind == "tuple":
        return tuple(_unpack_value(item, arrays) for item in packed["items"])
    if kind == "cuda":
        return Intrinsic(str(packed["path"]))
    if kind == "module":
        return _MODULES.get(packed["name"]) or Namespace(packed["name"])
    if kind == "builtin":
        return _BUILTINS[packed["name"]]
    if kind == "dtype":
        return np.dtype(packed["name"])
    if kind == "function":
        source = _unpack_source(packed["source"], arrays)
        return EmulatedKernel(source, device=True, signature=packed.get("signatures"))
    if kind == "member":
        return getattr(_MODULES[packed["module"]], packed["name"])
    return Unusable(str(packed["name"]), str(packed["type"]))


class Namespace(ModuleType):
    """Stands for the module ``cuda`` (or ``labkit``, ``numba``, which contain it) where neither is imported."""

    def __init__(self, name: str):
        super().__init__("labkit.compute.cuda" if name == "cuda" else name)
        if name != "cuda":
            self.cuda = Namespace("cuda")


class Unusable:
    """Something a kernel cannot use; the lowering says so, with the line, if it is reached."""

    def __init__(self, name: str, kind: str):
        self.__name__ = name
        self.kind = kind
