"""The rest of numba.cuda's host names: availability, profiling, and what only the CUDA toolkit could do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from labkit.errors import LabkitError


class NotEmulated(LabkitError, AttributeError):
    """Something of numba.cuda that only a GPU, or its compiler, has."""


def is_available() -> bool:
    """True: kernels run here, on the emulator. ``cuda.BACKEND`` tells it from a GPU."""
    return True


def is_supported_version() -> bool:
    """True: the emulator needs no CUDA toolkit."""
    return True


def cuda_error() -> None:
    """None: nothing went wrong while starting."""


def detect() -> bool:
    """Say what kernels run on."""
    from labkit.compute.emulator.host.clock import CLOCK
    from labkit.hardware import why_no_gpu

    print(
        f"Kernels run on labkit's emulator (no GPU: {why_no_gpu()})\n"
        f"id 0    'labkit emulator'    emulated, with the limits of {CLOCK.card.spec.name}"
    )
    return True


def close() -> None:
    """Nothing to release."""


@contextmanager
def defer_cleanup() -> Iterator[None]:
    """Nothing to defer: device arrays are freed like any Python object."""
    yield


@contextmanager
def profiling() -> Iterator[None]:
    """There is no profiler to switch on: labkit.inspect(kernel[grid, block], ...) looks into a launch instead."""
    yield


def profile_start() -> None:
    """There is no profiler to start."""


def profile_stop() -> None:
    """There is no profiler to stop."""


def is_cuda_array(obj: Any) -> bool:
    """Whether ``obj`` is a device array of the emulator, or memory of a real GPU."""
    from labkit.compute.emulator.device_array import DeviceArray

    return isinstance(obj, DeviceArray) or hasattr(obj, "__cuda_array_interface__")


def as_cuda_array(obj: Any, sync: bool = True) -> Any:
    """A device array that shares the memory of another library's array."""
    from labkit.compute.emulator.device_array import as_device_view

    return as_device_view(obj)


def from_cuda_array_interface(desc: Any, owner: Any = None, sync: bool = True) -> NoReturn:
    """Memory of real GPUs cannot be reached from here."""
    raise LabkitError(
        "cuda.from_cuda_array_interface describes memory of a real GPU, and there is none here: copy the array to the "
        "host and use cuda.to_device."
    )


def needs_toolkit(name: str, instead: str) -> Callable[..., NoReturn]:
    """A function of numba.cuda that ends in a sentence."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise NotEmulated(f"{name} needs CUDA's compiler, which the emulator does without: {instead}.")

    refuse.__name__ = name.rsplit(".", 1)[-1]
    return refuse


_PTX = "install numba-cuda[cu13], which compiles to PTX without a GPU too, and call its numba.cuda"
compile = needs_toolkit("cuda.compile", _PTX)
compile_all = needs_toolkit("cuda.compile_all", _PTX)
compile_ptx = needs_toolkit("cuda.compile_ptx", _PTX)
compile_for_current_device = needs_toolkit("cuda.compile_for_current_device", _PTX)
compile_ptx_for_current_device = needs_toolkit("cuda.compile_ptx_for_current_device", _PTX)
declare_device = needs_toolkit(
    "cuda.declare_device", "it links CUDA C++ code; write the function in Python with @cuda.jit(device=True)"
)
CUSource = needs_toolkit("cuda.CUSource", "write the function in Python with @cuda.jit(device=True)")
open_ipc_handle = needs_toolkit(
    "cuda.open_ipc_handle", "only a real GPU's memory can be shared between processes"
)
