"""What kernels run on: the GPU and its compiler, the emulator, and the variable that chooses."""

from __future__ import annotations

import os

from labkit.errors import LabkitError
from labkit.hardware.devices import VARIABLE, answer, backend, devices, obstacle, usable_gpu, why_no_gpu
from labkit.hardware.doctor.packages import installed
from labkit.hardware.doctor.report import Finding


def gpu_here() -> bool:
    """Whether the driver shows a GPU, usable or not."""
    return bool(answer().cards)


def processor() -> Finding:
    *_, cpu = devices()
    return Finding("CPU and memory", "ok", str(cpu))


def gpu() -> Finding:
    driver = answer()
    if not driver.cards:
        means = "Kernels run on the emulator: the same results, and counts instead of speed."
        what, _, fix = why_no_gpu().partition(": ")
        return Finding("GPU", "missing", f"none. {what}.", means, fix[:1].upper() + fix[1:])
    *cards, _ = devices()
    version = ".".join(map(str, driver.driver_version or ("unknown",)))
    return Finding("GPU", "ok", f"{'; '.join(map(str, cards))}; the driver supports CUDA {version}")


def compiler() -> Finding:
    """numba-cuda, which is wanted where there is a GPU and not missed elsewhere."""
    found = installed("numba-cuda")
    if found:
        return Finding("numba-cuda", "ok", found)
    if not gpu_here():
        return Finding("numba-cuda", "ok", "not installed, and not needed without a GPU")
    command = obstacle().rpartition(": ")[2]
    if not command:
        return Finding("numba-cuda", "ok", "importable")
    return Finding(
        "numba-cuda", "warning", "not installed", "The GPU is here and kernels do not use it.", command
    )


def choice() -> Finding:
    wish = os.environ.get(VARIABLE)
    try:
        chosen = backend()
    except LabkitError as error:
        return Finding(VARIABLE, "error", repr(wish), str(error), f"unset {VARIABLE}")
    if chosen == "emulator" and usable_gpu():
        means = "It asks for the emulator although a GPU is usable."
        return Finding(VARIABLE, "warning", repr(wish), means, f"unset {VARIABLE}")
    return Finding(VARIABLE, "ok", f"{'not set' if wish is None else repr(wish)}, so: {chosen}")
