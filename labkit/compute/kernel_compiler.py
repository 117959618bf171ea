"""The shipped kernels, compiled by numba-cuda for a GPU that need not be there: registers, shared memory, spills.

``python -m labkit.compute.kernel_compiler`` reads one line of JSON from its stdin, {"architecture": "sm_90"}, and
prints one. It is a process of its own because numba takes some 200 MiB, and because here ``cuda`` must be numba's, GPU
or not.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from types import SimpleNamespace
from typing import Any

import labkit
import labkit.compute
from labkit.compute.kernels.signatures import SIGNATURES

USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")
MEMORY = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def compile_all(architecture: str) -> dict[str, Any]:
    """Kernel -> what it uses on the architecture, or the sentence that says why it does not compile."""
    _, capability = architecture.split("_")
    cc = int(capability[:-1]), int(capability[-1])
    cuda = use_numba(cc)
    return {name: _compile(cuda, name, signature, cc) for name, signature in SIGNATURES.items()}


def use_numba(cc: tuple[int, int]) -> Any:
    """Let ``from labkit import cuda`` mean numba.cuda in this process, and numba believe in a GPU of this kind."""
    from numba import cuda
    from numba.cuda import dispatcher

    # Device functions are compiled for "the current device" whatever the kernel that calls them is compiled for.
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=cc)
    sys.modules["labkit.compute.cuda"] = cuda
    vars(labkit)["cuda"] = vars(labkit.compute)["cuda"] = cuda
    return cuda


def _compile(cuda: Any, name: str, signature: str, cc: tuple[int, int]) -> dict[str, Any]:
    module, kernel = name.split(".")
    try:
        function = getattr(importlib.import_module(f"labkit.compute.kernels.{module}"), kernel).py_func
        # What numba-cuda itself does at a launch: code for link-time optimisation, finished by the linker.
        code, _ = cuda.compile(function, signature, device=False, abi="numba", cc=cc, output="ltoir")
        return usage(link(code, f"sm_{cc[0]}{cc[1]}"))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def link(code: bytes, architecture: str) -> str:
    """What nvJitLink says while it makes machine code."""
    from cuda.bindings import nvjitlink

    options = [f"-arch={architecture}", "-lto", "-O3", "-verbose"]
    linker = nvjitlink.create(len(options), options)
    try:
        nvjitlink.add_data(linker, nvjitlink.InputType.LTOIR, code, len(code), "kernel")
        nvjitlink.complete(linker)
        said = bytearray(nvjitlink.get_info_log_size(linker))
        nvjitlink.get_info_log(linker, said)
        return said.decode()
    finally:
        nvjitlink.destroy(linker)


def usage(said: str) -> dict[str, int]:
    """Registers a thread, static shared bytes a block; local bytes and spills (bytes) a thread, callees included."""
    used, shared = USED.search(said), SHARED.search(said)
    if used is None:
        raise ValueError(f"nvJitLink does not tell how many registers are used, only: {said!r}")
    frames, stores, loads = zip(*(map(int, found) for found in MEMORY.findall(said)), strict=True)
    return {
        "registers": int(used[1]),
        "shared_bytes": int(shared[1]) if shared else 0,
        "local_bytes": sum(frames),
        "spill_stores": sum(stores),
        "spill_loads": sum(loads),
    }


if __name__ == "__main__":
    print(json.dumps(compile_all(json.loads(sys.stdin.readline())["architecture"])))
