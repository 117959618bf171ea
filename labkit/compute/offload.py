"""When does it pay to send work to a GPU? Launch, copies and kernel on the clock, or modelled.

T(n) = launch + start-up of the copies + n * bytes / copy rate + kernel(n)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from labkit.compute.curves import Curve
from labkit.compute.filters import BYTES, FLOP, NEARNESS
from labkit.compute.model import LAUNCH_S, modelled_time
from labkit.hardware import gpu, link, usable_gpu

COPY_START_S = 10e-6
"""Seconds before the first byte of one copy moves. Assumed: the order of magnitude of a small copy to or from
a GPU; lesson 03 measures it."""
REPEATS = 5


def over_size(
    filter: str, sizes: Sequence[int], card: str = "A100", real: bool = False
) -> tuple[Curve, Curve]:
    """Seconds of one filter on a GPU, for square images of these many pixels.

    Parameters
    ----------
    real : bool
        Measure on this machine's GPU; otherwise model ``card``, a card of the catalogue.

    Returns
    -------
    (resident, copied)
        The image already in the GPU's memory and left there; and copied there and back every time.
    """
    return measured(filter, sizes) if real else modelled(filter, sizes, card)


def per_element(filter: str, cpu: Curve, card: str = "A100") -> dict[str, float]:
    """The figures of T(n) by name: the CPU's from a measured curve (its largest size), the GPU's modelled."""
    size = cpu.sizes[-1]
    kernel = modelled_time(flops=FLOP[filter] * size, bytes=BYTES[filter] * size, gpu=card)
    return {
        "cpu_s_per_element": cpu.seconds[-1] / size,
        "gpu_s_per_element": max(kernel.compute_s, kernel.memory_s) / size,
        "launch_s": kernel.launch_s,
        "copy_latency_s": 2 * COPY_START_S,
        "copy_bytes_per_s": _slot_bytes_per_s(card),
        "bytes_per_element": BYTES[filter],
    }


def _slot_bytes_per_s(card: str) -> float:
    """What copies reach in the card's PCIe slot with pinned memory: the lower end of what was measured."""
    achieved = link(f"pcie{gpu(card).pcie.generation}").achieved_GBps
    assert achieved is not None
    return min(achieved) * 1e9


def modelled(filter: str, sizes: Sequence[int], card: str) -> tuple[Curve, Curve]:
    """Roofline for the kernel, the card's PCIe slot (as achieved with pinned memory) for the copies."""
    rate = _slot_bytes_per_s(card)
    resident, copied = [], []
    for size in sizes:
        kernel = modelled_time(flops=FLOP[filter] * size, bytes=BYTES[filter] * size, gpu=card).seconds
        resident.append(kernel)
        copied.append(kernel + 2 * COPY_START_S + BYTES[filter] * size / rate)
    assumed = f"{1e6 * LAUNCH_S:g} us a launch and {1e6 * COPY_START_S:g} us a copy assumed"
    on = f"{gpu(card).name}, peak rates, PCIe at {rate / 1e9:g} GB/s, {assumed}"
    return _pair(card, "modelled", on, sizes, resident, copied)


def _pair(
    name: str, how: str, on: str, sizes: Sequence[int], resident: Sequence[float], copied: Sequence[float]
) -> tuple[Curve, Curve]:
    return (
        Curve(f"{name}, image already there", how, on, tuple(sizes), tuple(resident)),
        Curve(f"{name}, image copied there and back", how, on, tuple(sizes), tuple(copied)),
    )


def measured(filter: str, sizes: Sequence[int]) -> tuple[Curve, Curve]:
    """Launch the kernels of :mod:`labkit.compute.kernels.image` on this machine's GPU, from Python."""
    from labkit.compute import cuda

    card = usable_gpu() if cuda.BACKEND == "gpu" else None
    name, how = (card.name, "measured") if card else ("emulator", "emulated")
    sides = [round(size**0.5) for size in sizes]
    pairs = [_seconds(filter, np.random.default_rng(side).random((side, side), np.float32)) for side in sides]
    resident, copied = zip(*pairs, strict=True)
    squares = [side * side for side in sides]
    return _pair(name, how, f"{name}, launched from Python", squares, resident, copied)


def _seconds(filter: str, image: np.ndarray) -> tuple[float, float]:
    from labkit.compute import cuda

    there, out = cuda.to_device(image), cuda.device_array_like(image)
    resident = _fastest(lambda: _launch(filter, there, out))
    return resident, _fastest(lambda: _launch(filter, cuda.to_device(image), out).copy_to_host())


def _launch(filter: str, image: Any, out: Any) -> Any:
    from labkit.compute.kernels import image as kernels

    block = (32, 8)
    grid = (-(-out.shape[1] // block[0]), -(-out.shape[0] // block[1]))
    if filter == "brighten":
        kernels.brighten[grid, block](image, out)
    else:
        kernels.denoise[grid, block](image, NEARNESS, out)
    return out


def _fastest(action: Callable[[], object]) -> float:
    from labkit.compute import cuda

    action()  # the first launch compiles
    times = []
    for _ in range(REPEATS):
        cuda.synchronize()
        begin = time.perf_counter()
        action()
        cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return min(times)
