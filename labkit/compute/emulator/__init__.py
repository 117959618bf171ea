"""A CUDA device in NumPy: unmodified numba.cuda kernels, run in lockstep on the CPU.

source and subset read a kernel; lower (with expressions, calls, joins) turns it into a program of basic blocks;
executor runs the program over chunks of lanes, memory holds the arrays, and observers such as sanitizer watch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labkit.compute.emulator.findings import Finding
    from labkit.compute.emulator.kernel import EmulatedKernel, jit
    from labkit.compute.emulator.sanitizer import launch

_LAZY = {"EmulatedKernel": "kernel", "jit": "kernel", "Finding": "findings", "launch": "sanitizer"}
__all__ = ["EmulatedKernel", "Finding", "jit", "launch"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
