"""The CUDA driver, asked directly through ctypes: which GPUs are there, or why none.

Milliseconds instead of the seconds that importing numba or torch takes, and only the standard library. The
driver itself honours CUDA_VISIBLE_DEVICES. Every first kernel passes here, so little is imported.
"""

from __future__ import annotations

import os
import sys
from collections import namedtuple

# Numbers of cuda.h: CUresult and CUdevice_attribute.
NO_DEVICE = 100
_MAJOR, _MINOR = 75, 76

Card = namedtuple("Card", "index name uuid compute_capability memory_bytes")
Answer = namedtuple("Answer", "cards reason driver_version")

_LIBRARIES = {"win32": ("nvcuda.dll",), "linux": ("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1")}

_MEANINGS = {
    2: "the GPU's memory is exhausted: end the processes that hold it (nvidia-smi lists them)",
    34: "the library found is the toolkit's stub, not the driver: take its folder out of LD_LIBRARY_PATH",
    46: "the GPU is busy or in exclusive use: end the process that holds it (nvidia-smi lists them)",
    NO_DEVICE: "the driver sees no GPU: see nvidia-smi -L, and start a container with --gpus all",
    101: "CUDA_VISIBLE_DEVICES names a GPU that is not there: unset it",
    802: "the GPU system is not ready: start the fabric manager (systemctl start nvidia-fabricmanager)",
    803: "the kernel's driver and the driver's libraries differ in version: reboot, or restart the container",
    804: "forward compatibility is not possible on this card: remove the cuda-compat libraries from the path",
    999: "the driver fails for a reason it does not know: reload nvidia_uvm (as after suspend), or reboot",
}


def probe() -> Answer:
    """Ask the driver for its GPUs: cards, or why there are none ("what: what to do"); never raises."""
    names = _LIBRARIES.get(sys.platform, ())
    if not names:
        return Answer(
            (), f"CUDA does not exist for {sys.platform}: a GPU needs Linux, or Windows with WSL2", None
        )
    library = _load(names)
    if library is None:
        return Answer((), _no_library(), None)
    status = library.cuInit(0)
    version = _version(library)
    if status != 0:
        return Answer((), _no_start(status), version)
    cards = tuple(_card(library, index) for index in range(_count(library)))
    return Answer(cards, None if cards else _no_start(NO_DEVICE), version)


def peer_access(count: int) -> dict:
    """For each ordered pair of the first ``count`` GPUs whether the first may reach the second's memory."""
    library = _load(_LIBRARIES.get(sys.platform, ()))
    if library is None or library.cuInit(0) != 0:
        return {}
    pairs = [(i, j) for i in range(count) for j in range(count) if i != j]
    return {(i, j): bool(_integer(library, "cuDeviceCanAccessPeer", i, j)) for i, j in pairs}


def _load(names):
    import ctypes

    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _no_library() -> str:
    if os.path.exists("/dev/nvidiactl"):
        return (
            "the GPU's device files are here but its driver library (libcuda.so.1) is not: "
            "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
        )
    return (
        "no NVIDIA driver can be loaded (libcuda.so.1): "
        "install one if an NVIDIA GPU is here, or start the container with --gpus all"
    )


def _no_start(status: int) -> str:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if status == NO_DEVICE and visible is not None:
        return f"CUDA_VISIBLE_DEVICES={visible!r} leaves no GPU visible: unset it"
    meaning = _MEANINGS.get(status, "the driver does not start: see what nvidia-smi says")
    what, _, fix = meaning.partition(": ")
    return f"{what} (cuInit returned {status}): {fix}"


def _version(library):
    """CUDA version the driver supports, such as (13, 0), or None."""
    value = _integer(library, "cuDriverGetVersion")
    return None if value is None else (value // 1000, value % 1000 // 10)


def _count(library) -> int:
    return _integer(library, "cuDeviceGetCount") or 0


def _integer(library, function: str, *arguments: int):
    import ctypes

    value = ctypes.c_int()
    status = getattr(library, function)(ctypes.byref(value), *arguments)
    return value.value if status == 0 else None


def _card(library, index: int) -> Card:
    device = _integer(library, "cuDeviceGet", index)
    if device is None:
        return Card(index, "GPU that does not answer", None, None, None)
    major, minor = (_integer(library, "cuDeviceGetAttribute", which, device) for which in (_MAJOR, _MINOR))
    capability = None if major is None or minor is None else f"{major}.{minor}"
    return Card(index, _name(library, device), _uuid(library, device), capability, _memory(library, device))


def _name(library, device: int) -> str:
    import ctypes

    text = ctypes.create_string_buffer(256)
    status = library.cuDeviceGetName(text, len(text), device)
    return text.value.decode(errors="replace") if status == 0 else "GPU without a name"


def _uuid(library, device: int):
    """``"GPU-"`` and 32 hexadecimal digits, as nvidia-smi -L prints it; None when the driver does not say."""
    import ctypes

    raw = ctypes.create_string_buffer(16)
    # The second form gives a MIG slice its own identity; drivers before CUDA 11.4 have only the first.
    ask = getattr(library, "cuDeviceGetUuid_v2", None) or library.cuDeviceGetUuid
    if ask(raw, device) != 0:
        return None
    digits = raw.raw.hex()
    return "GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _memory(library, device: int):
    import ctypes

    size = ctypes.c_size_t()
    return size.value if library.cuDeviceTotalMem_v2(ctypes.byref(size), device) == 0 else None
