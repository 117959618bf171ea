"""The names of ``numba.cuda``, for the emulator."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from labkit.compute.emulator.device_array import (
    device_array,
    device_array_like,
    pinned_array,
    pinned_array_like,
    to_device,
)
from labkit.compute.emulator.kernel import EmulatedKernel, set_step_budget
from labkit.compute.emulator.kernel import jit as _jit
from labkit.compute.emulator.values import Intrinsic

threadIdx = Intrinsic("threadIdx")
blockIdx = Intrinsic("blockIdx")
blockDim = Intrinsic("blockDim")
gridDim = Intrinsic("gridDim")
laneid = Intrinsic("laneid")
warpsize = Intrinsic("warpsize")
grid = Intrinsic("grid")
gridsize = Intrinsic("gridsize")
shared = Intrinsic("shared")
local = Intrinsic("local")
const = Intrinsic("const")
atomic = Intrinsic("atomic")
syncthreads = Intrinsic("syncthreads")
syncwarp = Intrinsic("syncwarp")
threadfence = Intrinsic("threadfence")
threadfence_block = Intrinsic("threadfence_block")
threadfence_system = Intrinsic("threadfence_system")
selp = Intrinsic("selp")
cg = Intrinsic("cg")
libdevice = Intrinsic("libdevice")
fp16 = Intrinsic("fp16")
syncthreads_count = Intrinsic("syncthreads_count")
syncthreads_and = Intrinsic("syncthreads_and")
syncthreads_or = Intrinsic("syncthreads_or")
shfl_sync = Intrinsic("shfl_sync")
shfl_up_sync = Intrinsic("shfl_up_sync")
shfl_down_sync = Intrinsic("shfl_down_sync")
shfl_xor_sync = Intrinsic("shfl_xor_sync")
all_sync = Intrinsic("all_sync")
any_sync = Intrinsic("any_sync")
eq_sync = Intrinsic("eq_sync")
ballot_sync = Intrinsic("ballot_sync")
match_any_sync = Intrinsic("match_any_sync")
match_all_sync = Intrinsic("match_all_sync")
activemask = Intrinsic("activemask")
lanemask_lt = Intrinsic("lanemask_lt")
popc = Intrinsic("popc")
clz = Intrinsic("clz")
ffs = Intrinsic("ffs")
brev = Intrinsic("brev")
fma = Intrinsic("fma")
cbrt = Intrinsic("cbrt")
nanosleep = Intrinsic("nanosleep")

__all__ = [
    "activemask",
    "all_sync",
    "any_sync",
    "atomic",
    "ballot_sync",
    "blockDim",
    "blockIdx",
    "brev",
    "cbrt",
    "cg",
    "close",
    "clz",
    "const",
    "defer_cleanup",
    "detect",
    "device_array",
    "device_array_like",
    "eq_sync",
    "ffs",
    "fma",
    "fp16",
    "grid",
    "gridDim",
    "gridsize",
    "is_available",
    "jit",
    "laneid",
    "lanemask_lt",
    "libdevice",
    "local",
    "match_all_sync",
    "match_any_sync",
    "nanosleep",
    "pinned_array",
    "pinned_array_like",
    "popc",
    "selp",
    "set_step_budget",
    "shared",
    "shfl_down_sync",
    "shfl_sync",
    "shfl_up_sync",
    "shfl_xor_sync",
    "stream",
    "synchronize",
    "syncthreads",
    "syncthreads_and",
    "syncthreads_count",
    "syncthreads_or",
    "syncwarp",
    "threadIdx",
    "threadfence",
    "threadfence_block",
    "threadfence_system",
    "to_device",
    "warpsize",
]


def jit(
    func_or_sig: Any = None,
    device: bool = False,
    inline: Any = "never",
    link: Any = None,
    debug: Any = None,
    opt: Any = None,
    lineinfo: bool = False,
    cache: bool = False,
    fastmath: bool = False,
    **options: Any,
) -> Any:
    """Make a kernel, or with ``device=True`` a function that kernels call; brackets may be left out."""

    def decorate(function: Callable) -> EmulatedKernel:
        return _jit(function, device=device)

    return decorate(func_or_sig) if callable(func_or_sig) and not _is_signature(func_or_sig) else decorate


def _is_signature(thing: Any) -> bool:
    return type(thing).__module__.startswith(("numba", "numba_cuda"))


def synchronize() -> None:
    """Wait for the device; emulated launches have already ended when they return."""


def is_available() -> bool:
    """True: kernels run here, on the emulator. ``cuda.BACKEND`` tells it from a GPU."""
    return True


def detect() -> bool:
    """Say what kernels run on."""
    from labkit.hardware import why_no_gpu

    print(f"Kernels run on labkit's emulator (no GPU: {why_no_gpu()})")
    return True


def close() -> None:
    """Nothing to release."""


@contextmanager
def defer_cleanup():
    """Nothing to defer: device arrays are freed like any Python object."""
    yield


class Stream:
    """A stream of the emulator: work on it has ended when the call that submits it returns."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    @contextmanager
    def auto_synchronize(self):
        yield self


def stream() -> Stream:
    """A new stream."""
    return Stream()


def missing(name: str) -> Any:
    """What an unknown name of the module answers."""
    raise AttributeError(f"module 'labkit.cuda' (emulator) has no attribute {name!r}")
