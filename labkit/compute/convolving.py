"""Convolving n samples with k taps: by hand, directly, or through Fourier transforms; timed, and counted.

Directly every output takes k multiplications and k additions. Through the transform both sides are padded to N =
the next power of two from n + k - 1 on (so that the ends do not wrap around), transformed, multiplied and transformed
back. A transform of N complex numbers by radix 2 takes 5 N log2 N real operations, and a complex product six.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from labkit.compute.curves import Curve

ENOUGH_S = 0.03


def direct_operations(n: int, k: int) -> int:
    """Operations of n outputs from k taps each."""
    return 2 * n * k


def padded(n: int, k: int) -> int:
    """The length to transform: the next power of two from n + k - 1 on."""
    return 1 << (n + k - 2).bit_length()


def fft_operations(n: int, k: int) -> int:
    """Operations of three transforms (two there, one back) and a product, all of the padded length."""
    length = padded(n, k)
    return 3 * 5 * length * (length.bit_length() - 1) + 6 * length


def crossover(n: int) -> int | None:
    """The fewest taps, at most n, for which the transforms take fewer operations; None when there are none."""
    return next((k for k in range(1, n + 1) if fft_operations(n, k) < direct_operations(n, k)), None)


def measured(n: int, taps: Sequence[int]) -> tuple[Curve, Curve]:
    """Time n samples with each number of ``taps`` on this CPU, float32: directly by NumPy, by torch's FFT; one core."""
    import torch

    made = torch.Generator().manual_seed(0)
    x, kernels = torch.randn(n, generator=made), [torch.randn(k, generator=made) for k in taps]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        directly = [_shortest(partial(by_sums, x, kernel)) for kernel in kernels]
        transformed = [_shortest(partial(by_fft, x, kernel)) for kernel in kernels]
    finally:
        torch.set_num_threads(threads)
    return (
        Curve("directly", "measured", "this CPU, np.convolve", tuple(taps), tuple(directly)),
        Curve("by FFT", "measured", "this CPU, torch.fft", tuple(taps), tuple(transformed)),
    )


def by_sums(x: Any, kernel: Any) -> Any:
    """Every output, n + k - 1 of them, as a sum of products, by NumPy's compiled loops: torch tensors (n,), (k,)."""
    import torch

    return torch.from_numpy(np.convolve(x.numpy(), kernel.numpy()))


def by_fft(x: Any, kernel: Any) -> Any:
    """The same outputs through the transform; on a GPU these three calls are cuFFT."""
    import torch

    length = padded(len(x), len(kernel))
    product = torch.fft.rfft(x, length) * torch.fft.rfft(kernel, length)
    return torch.fft.irfft(product, length)[: len(x) + len(kernel) - 1]


def _shortest(action: Callable[[], object]) -> float:
    times: list[float] = []
    while len(times) < 2 or sum(times) < ENOUGH_S:
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)
