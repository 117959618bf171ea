"""Stencil: each output element depends on a few neighbours of its place, here on a window of a signal.

Neighbouring outputs need almost the same inputs: the question is who reads them again, and from which memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit import cuda
from labkit.compute.kernels import launching

RADIUS = 4
THREADS = 128
TILE = THREADS + 2 * RADIUS
ZERO = np.float32(0)
SHARE = np.float32(1 / (2 * RADIUS + 1))


@cuda.jit
def mean_naive(x, out):
    """out[i] = mean of x[i - 4] ... x[i + 4]; beyond the ends, end values repeat. Both float32 (n,).

    Each thread reads its 9 inputs from global memory: 9 load requests a warp where 1 would fetch the same bytes. The L1
    cache answers most of them, but every request is an instruction that waits for it.
    """
    i = cuda.grid(1)
    if i < out.size:
        total = ZERO
        for offset in range(-RADIUS, RADIUS + 1):
            total += x[min(max(i + offset, 0), x.size - 1)]
        out[i] = total * SHARE


@cuda.jit
def mean_shared(x, out):
    """The same; a block of 128 threads first brings the 136 values it needs (its own and the halo) into shared memory.

    Each value is read from global memory once a block. The barrier is what makes it right: a thread reads what its
    neighbours have brought.
    """
    tile = cuda.shared.array(TILE, np.float32)
    before = cuda.blockIdx.x * THREADS - RADIUS
    for k in range(cuda.threadIdx.x, TILE, THREADS):
        tile[k] = x[min(max(before + k, 0), x.size - 1)]
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < out.size:
        total = ZERO
        for offset in range(2 * RADIUS + 1):
            total += tile[cuda.threadIdx.x + offset]
        out[i] = total * SHARE


def launch(kernel: Any, out: Any) -> Any:
    """The kernel with blocks of 128 threads over n >= 1 elements: ``launch(mean_shared, out)(x, out)``."""
    return kernel[launching.line(out.shape[0], THREADS)]


def mean_reference(x: np.ndarray) -> np.ndarray:
    """The sliding mean of a float32 signal (n,), ends repeated."""
    around = np.pad(x, RADIUS, mode="edge")
    return np.lib.stride_tricks.sliding_window_view(around, 2 * RADIUS + 1).mean(axis=1)
