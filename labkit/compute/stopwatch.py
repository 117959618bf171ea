"""How long one launch takes on this machine's GPU, by CUDA events."""

from __future__ import annotations

from statistics import median
from typing import Any

import numpy as np

REPEATS = 7


def measured_seconds(cuda: Any, launch: Any, arguments: tuple) -> float:
    """Median seconds of ``launch(*arguments)`` on the device behind ``cuda`` (numba.cuda, or what stands in for it).

    The launch runs once to warm up and then ``REPEATS`` times, on copies of its arrays that are on the device already:
    copies between host and device are not part of the time, and the caller's arrays stay as they are.
    """
    on_device = tuple(cuda.to_device(a) if isinstance(a, np.ndarray) else a for a in arguments)
    launch(*on_device)
    return median(_once(cuda, launch, on_device) for _ in range(REPEATS))


def _once(cuda: Any, launch: Any, arguments: tuple) -> float:
    begin, end = cuda.event(timing=True), cuda.event(timing=True)
    begin.record()
    launch(*arguments)
    end.record()
    end.synchronize()
    return float(cuda.event_elapsed_time(begin, end)) / 1e3


def on_host(argument: Any) -> Any:
    """An argument as the emulator can read it: an array of a real GPU is copied to the host."""
    is_on_gpu = hasattr(argument, "__cuda_array_interface__") and hasattr(argument, "copy_to_host")
    return argument.copy_to_host() if is_on_gpu else argument
