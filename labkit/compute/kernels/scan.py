"""Scan: running totals, out[i] = x[0] + ... + x[i], the step inside sorting, compaction and sampling.

Each block scans its own 256 elements and writes their total; the totals are scanned in turn, and a second pass adds to
each block what lies before it. x, out and totals are int32, so every form gives the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit import cuda
from labkit.compute.kernels import launching

THREADS = 256
WARP = 32
WARPS = THREADS // WARP
ALL_LANES = 0xFFFFFFFF
ZERO = np.int32(0)


@cuda.jit
def scan_steps(x, out, totals):
    """Hillis and Steele (1986): at step s each element adds the one s places before it; 8 steps of 256 additions.

    Short, and every lane works to the end; but n log n additions where a loop needs n. Two buffers: none may overwrite
    what a neighbour has yet to read.
    """
    ahead = cuda.shared.array((2, THREADS), np.int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    now = 0
    ahead[now, t] = x[i] if i < x.size else ZERO
    cuda.syncthreads()
    step = 1
    while step < THREADS:
        value = ahead[now, t]
        if t >= step:
            value += ahead[now, t - step]
        now = 1 - now
        ahead[now, t] = value
        cuda.syncthreads()
        step *= 2
    if i < out.size:
        out[i] = ahead[now, t]
    if t == THREADS - 1:
        totals[cuda.blockIdx.x] = ahead[now, t]


@cuda.jit
def scan_tree(x, out, totals):
    """Blelloch (1990): up a tree of sums, then down again with what lies to the left; 2 x 255 additions.

    Fewer additions, twice the barriers, and strides of 2, 4, 8, ... words: the lanes meet in ever fewer banks.
    """
    sums = cuda.shared.array(THREADS, np.int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    own = x[i] if i < x.size else ZERO
    sums[t] = own
    step = 1
    while step < THREADS:
        cuda.syncthreads()
        right = (2 * t + 2) * step - 1
        if right < THREADS:
            sums[right] += sums[right - step]
        step *= 2
    if t == 0:  # the thread that wrote the root: no other has to wait for it
        totals[cuda.blockIdx.x] = sums[THREADS - 1]
        sums[THREADS - 1] = ZERO
    while step > 1:
        step //= 2
        cuda.syncthreads()
        right = (2 * t + 2) * step - 1
        if right < THREADS:
            left = sums[right - step]
            sums[right - step] = sums[right]
            sums[right] += left
    cuda.syncthreads()
    if i < out.size:
        out[i] = sums[t] + own


@cuda.jit(device=True)
def warp_scan(value):
    """The running total over a warp's lanes, by shuffles; all 32 lanes must call it."""
    lane = cuda.threadIdx.x % WARP
    step = 1
    while step < WARP:
        below = cuda.shfl_up_sync(ALL_LANES, value, step)
        if lane >= step:
            value = np.int32(value + below)
        step *= 2
    return value


@cuda.jit
def scan_warps(x, out, totals):
    """Each warp scans its 32 elements in registers, then one warp scans the 8 totals: two barriers in all."""
    before = cuda.shared.array(WARPS, np.int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    value = warp_scan(x[i] if i < x.size else ZERO)
    if t % WARP == WARP - 1:
        before[t // WARP] = value
    cuda.syncthreads()
    if t < WARP:
        running = warp_scan(before[t] if t < WARPS else ZERO)
        if t < WARPS:
            before[t] = running
    cuda.syncthreads()
    if t >= WARP:
        value = np.int32(value + before[t // WARP - 1])
    if i < out.size:
        out[i] = value
    if t == THREADS - 1:
        totals[cuda.blockIdx.x] = value


@cuda.jit
def add_before(out, totals):
    """The second pass: each block but the first adds the scanned total of all blocks before it."""
    i = cuda.grid(1)
    if cuda.blockIdx.x > 0 and i < out.size:
        out[i] += totals[cuda.blockIdx.x - 1]


def launch(kernel: Any, x: Any) -> Any:
    """The kernel with blocks of 256 threads: ``launch(scan_warps, x)(x, out, totals)``, totals (blocks,)."""
    return kernel[launching.line(x.shape[0], THREADS)]


def running_totals(x: Any, scan: Any = scan_warps) -> Any:
    """Running totals of an int32 array on the device, of any length: blocks, their totals, and so on up.

    Each level is 256 times shorter than the one below, so three levels do for 16 million elements.
    """
    blocks, _ = launching.line(x.shape[0], THREADS)
    out, totals = cuda.device_array(x.shape, np.int32), cuda.device_array(blocks, np.int32)
    launch(scan, x)(x, out, totals)
    if blocks > 1:
        launch(add_before, x)(out, running_totals(totals, scan))
    return out


def scan_reference(x: np.ndarray) -> np.ndarray:
    """Running totals in int32, which wrap around as on the device."""
    return x.cumsum(dtype=np.int32)
