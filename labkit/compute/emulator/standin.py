"""A stand-in for the package ``numba`` where it is not installed: the names that kernels' notebooks import.

``cuda`` is the emulator; types name types; ``@jit`` and ``@njit`` leave functions as they are, in plain Python.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from labkit.compute.emulator import ufunc
from labkit.compute.emulator.signatures import declared, is_signature, read
from labkit.compute.emulator.typenames import SCALARS, void
from labkit.errors import LabkitError

VERSION = "0+labkit"


class NumbaWarning(Warning):
    """Base of numba's warnings."""


class NumbaPerformanceWarning(NumbaWarning):
    """What numba warns of when a launch is small; the emulator never does."""


class NumbaError(LabkitError):
    """Base of numba's errors."""


class TypingError(NumbaError):
    """What numba raises for operations without a type."""


def jit(function_or_signature: Any = None, *signature: Any, **options: Any) -> Any:
    """Leave the function as it is, and say once that it is not compiled."""

    def wrap(function: Callable) -> Callable:
        warnings.warn(
            f"numba is not installed, so '{function.__name__}' runs as plain Python: pip install numba to compile it.",
            stacklevel=3,
        )
        function.py_func = function  # type: ignore[attr-defined]
        return function

    if function_or_signature is None or is_signature(function_or_signature):
        return wrap
    return wrap(function_or_signature)


def vectorize(types: Any = (), target: str = "cpu", **options: Any) -> Any:
    """On the emulator with ``target="cuda"``; else NumPy's own ``vectorize``, in plain Python."""
    if target == "cuda":
        return ufunc.vectorize(types, **options)

    def wrap(function: Callable) -> Any:
        given = [types] if isinstance(types, str) else list(types)
        result = declared(read(given[0]))[1] if len(given) == 1 else None
        return np.vectorize(function, otypes=None if result is None else [result])

    return wrap if is_signature(types) else np.vectorize(types)


def guvectorize(*args: Any, target: str = "cpu", **options: Any) -> Any:
    """On the emulator with ``target="cuda"``; there is no other here."""
    if target != "cuda":
        raise LabkitError(
            "@guvectorize without target='cuda' compiles for the CPU and needs numba: pip install numba."
        )
    return ufunc.guvectorize(*args, **options)


def module(name: str, members: dict[str, Any]) -> ModuleType:
    """A module with these members, which may have submodules."""
    made = ModuleType(name, "Stands in for the module of this name, which is not installed here (labkit).")
    made.__path__ = []
    made.__dict__.update(members)
    return made


def modules() -> dict[str, ModuleType]:
    """The modules of numba, by name, without ``numba.cuda``."""
    types = {**SCALARS, "void": void, "none": void}
    errors = {c.__name__: c for c in (NumbaWarning, NumbaPerformanceWarning, NumbaError, TypingError)}
    members = {"jit": jit, "njit": jit, "vectorize": vectorize, "guvectorize": guvectorize, "prange": range}
    found = {
        "numba.types": module("numba.types", types),
        "numba.core.types": module("numba.core.types", types),
        "numba.core.errors": module("numba.core.errors", errors),
    }
    found["numba.core"] = module(
        "numba.core", {"types": found["numba.core.types"], "errors": found["numba.core.errors"]}
    )
    top = {
        **types,
        **members,
        "types": found["numba.types"],
        "core": found["numba.core"],
        "__version__": VERSION,
    }
    return {"numba": module("numba", top), **found}
