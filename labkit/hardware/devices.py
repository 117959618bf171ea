"""The devices of this machine, and which of them the lessons use.

Light on purpose: `backend` is asked before every first kernel, so it loads nothing heavier than the driver.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from labkit.errors import LabkitError
from labkit.hardware import driver

if TYPE_CHECKING:
    from labkit.hardware.machine import Device, Machine

VARIABLE = "LABKIT_BACKEND"


def backend() -> str:
    """``"gpu"`` when kernels run on a CUDA GPU, ``"emulator"`` when they run on the CPU.

    The environment variable LABKIT_BACKEND decides: ``auto`` (the default) takes a GPU when one is usable.

    Raises
    ------
    LabkitError
        For another value, and for ``gpu`` where no GPU is usable.
    """
    wish = os.environ.get(VARIABLE, "").strip().lower() or "auto"
    if wish == "emulator":
        return "emulator"
    if wish not in ("auto", "gpu"):
        raise LabkitError(f"{VARIABLE}={wish!r} is not known: set it to auto, gpu or emulator, or unset it.")
    missing = obstacle()
    if missing and wish == "gpu":
        raise LabkitError(
            f"{VARIABLE}=gpu asks for a GPU, but {missing}. Unset {VARIABLE} to use the emulator."
        )
    return "emulator" if missing else "gpu"


def usable_gpu() -> Device | None:
    """The GPU that kernels would run on, or None; `why_no_gpu` tells the reason."""
    if obstacle():
        return None
    return next(device for device in devices() if device.kind == "gpu")


def why_no_gpu() -> str:
    """One sentence on why no GPU is usable and what to do about it; empty when one is."""
    missing = obstacle()
    return f"{missing[0].upper()}{missing[1:]}." if missing else ""


def devices() -> tuple[Device, ...]:
    """The CUDA GPUs that the driver shows, in its order, and the CPU last."""
    from labkit.hardware.machine import cpu_device, gpu_device

    return (*map(gpu_device, answer().cards), cpu_device())


def here() -> Machine:
    """This machine in short: processor, cores, memory, GPUs, and the backend of the lessons.

    Raises
    ------
    LabkitError
        As `backend` does.
    """
    from labkit.hardware.machine import Machine

    *gpus, cpu = devices()
    chosen = backend()
    reason = "" if chosen == "gpu" else why_no_gpu() or f"{VARIABLE}=emulator asks for it."
    return Machine(cpu=cpu, gpus=tuple(gpus), backend=chosen, reason=reason)


@cache
def answer() -> driver.Answer:
    """What the driver said, asked once a process: it reads CUDA_VISIBLE_DEVICES only once as well."""
    return driver.probe()


@cache
def obstacle() -> str:
    """What stands between the lessons and a GPU, as a clause; empty when nothing does."""
    found = answer()
    if not found.cards:
        return str(found.reason)
    from importlib.util import find_spec

    if find_spec("numba_cuda") is None:
        extra = "gpu13" if found.driver_version and found.driver_version >= (13, 0) else "gpu12"
        return (
            f"{found.cards[0].name} is here, but numba-cuda, which compiles kernels for it, is not: "
            f"pip install 'gpu-labkit[{extra}]'"
        )
    return ""
