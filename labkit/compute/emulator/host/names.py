"""Names of ``numba.cuda`` that few programs use, and where they are: imported when first asked for."""

from __future__ import annotations

import importlib
from typing import Any

from labkit.compute.emulator.typenames import SCALARS, void

_EMULATOR = "labkit.compute.emulator"
_MODULES = {"random": f"{_EMULATOR}.random", "types": f"{_EMULATOR}.typenames"}
_MEMBERS = {
    "Reduce": f"{_EMULATOR}.reduction",
    "reduce": f"{_EMULATOR}.reduction",
    "vectorize": f"{_EMULATOR}.ufunc",
    "guvectorize": f"{_EMULATOR}.ufunc",
    "DeviceNDArray": f"{_EMULATOR}.device_array",
}
_TOOLKIT = [
    "CUSource",
    "as_cuda_array",
    "compile",
    "compile_all",
    "compile_for_current_device",
    "compile_ptx",
    "compile_ptx_for_current_device",
    "cuda_error",
    "declare_device",
    "from_cuda_array_interface",
    "is_cuda_array",
    "is_supported_version",
    "open_ipc_handle",
    "profiling",
]
_MEMBERS.update(dict.fromkeys(_TOOLKIT, f"{_EMULATOR}.host.toolkit"))


def find(name: str) -> Any:
    """The member of that name.

    Raises
    ------
    AttributeError
        When numba.cuda has no such name, or the emulator does not know it.
    """
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _MEMBERS:
        return getattr(importlib.import_module(_MEMBERS[name]), name)
    if name in SCALARS or name == "void":
        return SCALARS.get(name, void)
    raise AttributeError(f"module 'labkit.cuda' (emulator) has no attribute {name!r}")
