"""The names of ``numba.cuda``, for the emulator."""

from __future__ import annotations

from typing import Any

from labkit.compute.emulator.device_array import device_array, device_array_like, to_device
from labkit.compute.emulator.host.decorator import jit
from labkit.compute.emulator.host.devices import (
    current_context,
    device_count,
    get_current_device,
    gpus,
    list_devices,
    select_device,
)
from labkit.compute.emulator.host.memory import (
    managed_array,
    mapped,
    mapped_array,
    mapped_array_like,
    pinned,
    pinned_array,
    pinned_array_like,
)
from labkit.compute.emulator.host.names import find as __getattr__  # noqa: F401
from labkit.compute.emulator.host.streams import (
    default_stream,
    event,
    event_elapsed_time,
    external_stream,
    legacy_default_stream,
    per_thread_default_stream,
    stream,
    synchronize,
)
from labkit.compute.emulator.host.toolkit import (
    close,
    defer_cleanup,
    detect,
    is_available,
    profile_start,
    profile_stop,
)
from labkit.compute.emulator.kernel import set_step_budget
from labkit.compute.emulator.values import Intrinsic

threadIdx: Any = Intrinsic("threadIdx")
blockIdx: Any = Intrinsic("blockIdx")
blockDim: Any = Intrinsic("blockDim")
gridDim: Any = Intrinsic("gridDim")
laneid: Any = Intrinsic("laneid")
warpsize: Any = Intrinsic("warpsize")
grid: Any = Intrinsic("grid")
gridsize: Any = Intrinsic("gridsize")
shared: Any = Intrinsic("shared")
local: Any = Intrinsic("local")
const: Any = Intrinsic("const")
atomic: Any = Intrinsic("atomic")
syncthreads: Any = Intrinsic("syncthreads")
syncwarp: Any = Intrinsic("syncwarp")
threadfence: Any = Intrinsic("threadfence")
threadfence_block: Any = Intrinsic("threadfence_block")
threadfence_system: Any = Intrinsic("threadfence_system")
selp: Any = Intrinsic("selp")
cg: Any = Intrinsic("cg")
libdevice: Any = Intrinsic("libdevice")
fp16: Any = Intrinsic("fp16")
syncthreads_count: Any = Intrinsic("syncthreads_count")
syncthreads_and: Any = Intrinsic("syncthreads_and")
syncthreads_or: Any = Intrinsic("syncthreads_or")
shfl_sync: Any = Intrinsic("shfl_sync")
shfl_up_sync: Any = Intrinsic("shfl_up_sync")
shfl_down_sync: Any = Intrinsic("shfl_down_sync")
shfl_xor_sync: Any = Intrinsic("shfl_xor_sync")
all_sync: Any = Intrinsic("all_sync")
any_sync: Any = Intrinsic("any_sync")
eq_sync: Any = Intrinsic("eq_sync")
ballot_sync: Any = Intrinsic("ballot_sync")
match_any_sync: Any = Intrinsic("match_any_sync")
match_all_sync: Any = Intrinsic("match_all_sync")
activemask: Any = Intrinsic("activemask")
lanemask_lt: Any = Intrinsic("lanemask_lt")
popc: Any = Intrinsic("popc")
clz: Any = Intrinsic("clz")
ffs: Any = Intrinsic("ffs")
brev: Any = Intrinsic("brev")
fma: Any = Intrinsic("fma")
cbrt: Any = Intrinsic("cbrt")
nanosleep: Any = Intrinsic("nanosleep")

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
    "current_context",
    "default_stream",
    "defer_cleanup",
    "detect",
    "device_array",
    "device_array_like",
    "device_count",
    "eq_sync",
    "event",
    "event_elapsed_time",
    "external_stream",
    "ffs",
    "fma",
    "fp16",
    "get_current_device",
    "gpus",
    "grid",
    "gridDim",
    "gridsize",
    "is_available",
    "jit",
    "laneid",
    "lanemask_lt",
    "legacy_default_stream",
    "libdevice",
    "list_devices",
    "local",
    "managed_array",
    "mapped",
    "mapped_array",
    "mapped_array_like",
    "match_all_sync",
    "match_any_sync",
    "nanosleep",
    "per_thread_default_stream",
    "pinned",
    "pinned_array",
    "pinned_array_like",
    "popc",
    "profile_start",
    "profile_stop",
    "select_device",
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
