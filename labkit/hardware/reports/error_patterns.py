"""The wordings of errors, as PyTorch, CUDA, NCCL, Numba, CuPy, JAX, TensorFlow and the driver print them.

The first pattern that matches a line names it. Named groups become the error's details.
"""

from __future__ import annotations

import re
from typing import Any

_TABLE: tuple[tuple[str, str], ...] = (
    (
        "unsupported_arch",
        r"(?P<gpu>\w[\w .()-]*?) with CUDA capability (?P<arch>sm_\d+\w?) is not compatible with the current PyTorch",
    ),
    ("arch_list", r"current PyTorch install(?:ation)? supports CUDA capabilities (?P<arch_list>[\w ]+)"),
    (
        "too_old_gpu",
        r"Found GPU\s*(?P<index>\d+) (?P<gpu>.+?) which is of (?:cuda|compute) capability (?:\(CC\) "
        r")?(?P<capability>\d+\.\d+)",
    ),
    (
        "too_old_gpu",
        r"minimum cuda capability supported by this library is"
        r"|no longer supports this GPU because it is too old",
    ),
    (
        "unsupported_arch",
        r"no kernel image is available for execution|cudaErrorNoKernelImageForDevice|CUDA_ERROR_NO_BINARY_FOR_GPU"
        r"|device kernel image is invalid|invalid device function",
    ),
    ("unsupported_arch", r"nvcc fatal\s*: Unsupported gpu architecture '(?P<arch>\w+)'"),
    (
        "newer_ptx",
        r"PTX was compiled with an unsupported toolchain|CUDA_ERROR_UNSUPPORTED_PTX_VERSION|unsupported \.version",
    ),
    (
        "old_driver",
        r"NVIDIA driver on your system is too old \(found version (?P<found>\d+)\)",
    ),
    (
        "old_driver",
        r"CUDA driver version is insufficient for CUDA runtime version|cudaErrorInsufficientDriver"
        r"|CUDA initialization: CUDA driver (?:version )?(?:is )?(?:insufficient|too old)"
        r"|forward compatibility was attempted on non supported HW|system has unsupported display driver / cuda driver"
        r"|unsatisfied condition: cuda\s*>=\s*(?P<needs>[\d.]+)",
    ),
    (
        "cpu_only_torch",
        r"Torch not compiled with CUDA enabled|PyTorch was not compiled with CUDA|not linked with support for cuda",
    ),
    (
        "no_driver",
        r"Found no NVIDIA driver on your system|NVIDIA-SMI has failed because it couldn't communicate with "
        r"the NVIDIA driver"
        r"|CUDA_ERROR_NO_DEVICE|no CUDA-capable device is detected|No CUDA GPUs are available|No devices were found"
        r"|libcuda\.so(?:\.1)?: cannot open shared object",
    ),
    ("driver_mismatch", r"Driver/library version mismatch|driver/library version mismatch"),
    (
        "lost_gpu",
        r"(?:(?<!: )(?<!>)GPU is lost|fallen off the bus"
        r"|Unable to determine the device handle for GPU\s*(?P<gpu>[\w:.]*)"
        r"|NVRM: Xid \((?:PCI:)?(?P<bus>[\w:.]+)\): 79\b)",
    ),
    ("xid", r"NVRM: Xid \((?:PCI:)?(?P<bus>[\w:.]+)\): (?P<xid>\d+)"),
    ("fabric", r"system not yet initialized|CUDA_ERROR_SYSTEM_NOT_READY|Error 802"),
    (
        "out_of_memory",
        r"CUDA out of memory|CUDA error: out of memory|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY"
        r"|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED|Out of memory allocating (?P<wanted>[\d,]+ bytes)"
        r"|RESOURCE_EXHAUSTED: Out of memory|OOM when allocating tensor|OutOfMemoryError|cuda runtime error \(2\)",
    ),
    (
        "shared_memory",
        r"DataLoader worker.*(?:Bus error|insufficient shared memory)|out of shared memory"
        r"|insufficient shared memory \(shm\)|unable to (?:write to|mmap|open shared memory) .*(?:/torch_"
        r"|shared memory|file)"
        r"|No space left on device.*(?:/dev/shm|shm)|(?:/dev/shm|shm).*No space left on device",
    ),
    (
        "duplicate_gpu",
        r"Duplicate GPU detected\s*:\s*rank (?P<rank_a>\d+) and rank (?P<rank_b>\d+) both on CUDA device (?P<bus>\w+)",
    ),
    (
        "wire",
        r"status=\S*12\b.*vendor err|IBV_WC_RETRY_EXC_ERR|transport retry counter exceeded|retry exceeded error",
    ),
    (
        "timeout",
        r"Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?P<sequence>\d+), OpType=(?P<operation>\w+)"
        r"|Timed out initializing process group|NCCL_ASYNC_ERROR_HANDLING.*timed? ?out|collective operation timeout",
    ),
    (
        "nccl_error",
        r"ncclRemoteError|ncclSystemError|ncclInternalError|ncclUnhandledCudaError|ncclInvalidUsage|ncclInvalidArgument"
        r"|NCCL error in|NCCL failure|unhandled (?:cuda|system) error|NCCL communicator was aborted|NCCL Error \d",
    ),
    ("ecc", r"uncorrectable (?:NVLink )?(?:ECC )?error"),
    (
        "illegal_access",
        r"an illegal memory access was encountered|CUDA_ERROR_ILLEGAL_ADDRESS|misaligned address",
    ),
    ("device_assert", r"device-side assert triggered"),
    ("launch_failure", r"unspecified launch (?:failure|error)|CUDA_ERROR_LAUNCH_FAILED"),
    (
        "busy_device",
        r"all CUDA-capable devices are busy or unavailable|exclusive-thread device already in use",
    ),
    ("bad_ordinal", r"invalid device ordinal"),
    (
        "peer_access",
        r"peer access is not supported between these two devices|cudaErrorPeerAccessUnsupported|peer mapping "
        r"resources exhausted",
    ),
    ("nvml", r"Failed to initialize NVML: (?P<reason>.+)"),
    ("unknown_error", r"CUDA error: unknown error|CUDA unknown error"),
)

PATTERNS = tuple((what, re.compile(pattern)) for what, pattern in _TABLE)

# What PyTorch says of memory, in the words of its versions: name -> pattern of an amount.
_AMOUNT = r"(\d{1,15}(?:\.\d{1,9})? (?:bytes|[KMGT]i?B))"
_MEMORY = {
    "wanted": re.compile(rf"Tried to allocate {_AMOUNT}"),
    "total": re.compile(rf"{_AMOUNT} total capacity|total capacity of {_AMOUNT}"),
    "allocated": re.compile(rf"{_AMOUNT} already allocated|{_AMOUNT} is allocated by PyTorch"),
    "free": re.compile(rf"{_AMOUNT} free[;)]|{_AMOUNT} is free"),
    "reserved": re.compile(rf"{_AMOUNT} (?:reserved in total by PyTorch|cached)"),
    "unallocated": re.compile(rf"{_AMOUNT} is reserved by PyTorch but unallocated"),
    "this_process": re.compile(rf"this process has {_AMOUNT} memory in use"),
}
_GPU = re.compile(r"GPU (\d{1,3})(?:;| has a total)")
_HOLDER = re.compile(rf"Process (\d{{1,12}}) has {_AMOUNT} memory in use")


def memory(line: str) -> dict[str, Any]:
    """What an out-of-memory message tells: amounts as printed, the GPU, and ``processes``, pid -> amount."""
    found: dict[str, Any] = {}
    for name, pattern in _MEMORY.items():
        if match := pattern.search(line):
            found[name] = next(group for group in match.groups() if group)
    if gpu := _GPU.search(line):
        found["gpu"] = int(gpu[1])
    holders = dict(_HOLDER.findall(line))
    return {**found, "processes": holders} if holders else found


# One quick look that most lines fail: whatever a pattern above matches holds one of these. Looking for fixed strings
# is ten times as fast as looking for any of the patterns.
_NEEDLES = (
    ("CUDA capability", "CUDA capabilities", "no kernel image", "NoKernelImage", "NO_BINARY_FOR_GPU"),
    (
        "kernel image is invalid",
        "invalid device function",
        "Unsupported gpu arch",
        "which is of",
        "minimum cuda cap",
    ),
    (
        "too old",
        "unsupported toolchain",
        "UNSUPPORTED_PTX",
        "unsupported .version",
        "insufficient",
        "InsufficientDriver",
    ),
    (
        "forward compatibility",
        "unsupported display driver",
        "unsatisfied condition",
        "not compiled with CUDA",
    ),
    ("not linked with support", "Found no NVIDIA", "NVIDIA-SMI has failed", "NO_DEVICE", "no CUDA-capable"),
    ("No CUDA GPUs", "No devices were found", "libcuda.so", "version mismatch", "GPU is lost", "fallen off"),
    (
        "device handle for GPU",
        "NVRM: Xid",
        "not yet initialized",
        "SYSTEM_NOT_READY",
        "Error 802",
        "out of memory",
    ),
    ("Out of memory", "OUT_OF_MEMORY", "MemoryAllocation", "ALLOC_FAILED", "OOM when", "OutOfMemory"),
    (
        "runtime error (2)",
        "shared memory",
        "No space left",
        "Bus error",
        "unable to mmap",
        "unable to write to",
    ),
    ("Duplicate GPU", "Watchdog caught", "Timed out init", "ASYNC_ERROR", "operation timeout", "ncclRemote"),
    (
        "ncclSystem",
        "ncclInternal",
        "ncclUnhandled",
        "ncclInvalid",
        "NCCL error",
        "NCCL failure",
        "NCCL Error",
    ),
    ("unhandled cuda", "unhandled system", "NCCL communicator", "uncorrectable", "illegal memory access"),
    ("ILLEGAL_ADDRESS", "misaligned address", "device-side assert", "unspecified launch", "LAUNCH_FAILED"),
    ("vendor err", "RETRY_EXC", "retry counter exceeded", "retry exceeded"),
    ("busy or unavailable", "exclusive-thread", "invalid device ordinal", "peer access is not"),
    (
        "PeerAccessUnsupported",
        "peer mapping",
        "Failed to initialize NVML",
        "unknown error",
        "Error:",
        "Exception:",
    ),
)
NEEDLES = tuple(needle for row in _NEEDLES for needle in row)


def suspicious(line: str) -> bool:
    """Whether the line may hold an error."""
    return any(map(line.__contains__, NEEDLES))
