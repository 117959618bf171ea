"""The names of ``numba.cuda``, for the emulator."""

from __future__ import annotations

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
