"""Reduction: many numbers become one sum.

Every form adds the sum of ``x`` to ``out[0]``; x is float32 (n,), out float32 (1,) and zero at the start. float32 sums
depend on the order, and blocks finish in any order, so the last digits differ from run to run on a GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit import cuda
from labkit.compute.kernels import launching

THREADS = 256
WARP = 32
WARPS = THREADS // WARP
BLOCKS = 32  # of sum_warps, which visits all elements with any number of blocks
ALL_LANES = 0xFFFFFFFF
ZERO = np.float32(0)


@cuda.jit
def sum_atomic(x, out):
    """Every thread adds its element to the result: n atomic operations that queue up at one address."""
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(out, 0, x[i])


@cuda.jit
def sum_interleaved(x, out):
    """A tree in shared memory, pairs 1, 2, 4, ... apart, the thread at the left of a pair adds.

    8 levels instead of 255 additions in a row. But the threads that work are spread over all warps: at the second level
    every fourth lane of every warp works, the others wait, and so on until one lane in 8 warps is left.
    """
    partial = cuda.shared.array(THREADS, np.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    partial[t] = x[i] if i < x.size else ZERO
    cuda.syncthreads()
    step = 1
    while step < THREADS:
        if t % (2 * step) == 0:
            partial[t] += partial[t + step]
        cuda.syncthreads()
        step *= 2
    if t == 0:
        cuda.atomic.add(out, 0, partial[0])


@cuda.jit
def sum_tree(x, out):
    """The same tree with pairs 128, 64, ... apart: the first threads add, the others are done.

    Down to 32 pairs whole warps work or rest, so no warp disagrees, and neighbouring lanes use neighbouring banks.
    """
    partial = cuda.shared.array(THREADS, np.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    partial[t] = x[i] if i < x.size else ZERO
    cuda.syncthreads()
    step = THREADS // 2
    while step > 0:
        if t < step:
            partial[t] += partial[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, partial[0])


@cuda.jit(device=True)
def warp_sum(value):
    """The sum over the 32 lanes of a warp, in lane 0: registers are read from lane to lane, without shared memory.

    All 32 lanes must call it.
    """
    step = WARP // 2
    while step > 0:
        value += cuda.shfl_down_sync(ALL_LANES, value, step)
        step //= 2
    return value


@cuda.jit
def sum_warps(x, out):
    """Each thread adds many elements in a register, then warps add by shuffles: one barrier and one atomic a block.

    Most of the work is now reading x, once and in order: the limit is memory, as it should be.
    """
    partial = cuda.shared.array(WARPS, np.float32)
    t = cuda.threadIdx.x
    total = ZERO
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i]
    total = warp_sum(total)
    if t % WARP == 0:
        partial[t // WARP] = total
    cuda.syncthreads()
    if t < WARP:
        total = warp_sum(partial[t] if t < WARPS else ZERO)
        if t == 0:
            cuda.atomic.add(out, 0, total)


def launch(kernel: Any, x: Any) -> Any:
    """The kernel with blocks of 256 threads over the input: ``launch(sum_tree, x)(x, out)``."""
    return kernel[launching.line(x.shape[0], THREADS, BLOCKS if kernel is sum_warps else None)]


def sum_reference(x: np.ndarray) -> np.float64:
    """The sum in float64."""
    return x.sum(dtype=np.float64)
