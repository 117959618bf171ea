"""Histogram: how often each of 256 values occurs. Many threads count into few places, so they must take turns."""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit import cuda
from labkit.compute.kernels import launching

BINS = 256
THREADS = 256
BLOCKS = 32
ONE = np.int32(1)


@cuda.jit
def histogram_global(values, counts):
    """Adds to counts, int32 (256,), the occurrences of values, uint8 (n,); an atomic in global memory for each.

    Lanes with the same value queue up; in a picture, where neighbours are alike, most do.
    """
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(counts, values[i], ONE)


@cuda.jit
def histogram_private(values, counts):
    """The same; each block counts in shared memory of its own, and adds 256 sums to the result at the end.

    Atomics in shared memory are fast and only the block's own threads meet there; global memory sees 256 atomics a
    block, neighbours at neighbouring addresses, whatever the picture.
    """
    own = cuda.shared.array(BINS, np.int32)
    for k in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        own[k] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(own, values[i], ONE)
    cuda.syncthreads()
    for k in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        cuda.atomic.add(counts, k, own[k])


def launch(kernel: Any, values: Any) -> Any:
    """The kernel with at most 32 blocks of 256 threads: ``launch(histogram_private, values)(values, counts)``."""
    return kernel[launching.line(values.shape[0], THREADS, BLOCKS)]


def histogram_reference(values: np.ndarray) -> np.ndarray:
    """Counts of uint8 values, int32 (256,)."""
    return np.bincount(values, minlength=BINS).astype(np.int32)
