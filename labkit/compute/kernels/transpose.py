"""Transpose: nothing but moving, and still the textbook case of memory access.

Rows of the input become columns of the output. Read along rows and the writes go down a column, one sector for each
lane; shared memory, where a column costs no more than a row, turns the corner.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit import cuda
from labkit.compute.kernels import launching

TILE = 32
PADDED = TILE + 1
ROWS = 8  # rows of a tile that a block moves at a time: each thread moves TILE / ROWS elements
BLOCK = (TILE, ROWS)


@cuda.jit
def copy(a, out):
    """out = a, both float32 (rows, columns): the speed limit, because a transpose cannot move less."""
    x = cuda.blockIdx.x * TILE + cuda.threadIdx.x
    top = cuda.blockIdx.y * TILE + cuda.threadIdx.y
    for y in range(top, min(top + TILE, a.shape[0]), ROWS):
        if x < a.shape[1]:
            out[y, x] = a[y, x]


@cuda.jit
def transpose_naive(a, out):
    """out = a.T; a float32 (rows, columns), out (columns, rows).

    A warp reads 32 neighbours of a row (4 sectors) and writes them a whole row of ``out`` apart (32 sectors).
    """
    x = cuda.blockIdx.x * TILE + cuda.threadIdx.x
    top = cuda.blockIdx.y * TILE + cuda.threadIdx.y
    for y in range(top, min(top + TILE, a.shape[0]), ROWS):
        if x < a.shape[1]:
            out[x, y] = a[y, x]


@cuda.jit
def transpose_tile(a, out):
    """The same through a 32 x 32 tile in shared memory: reads and writes of global memory both go along rows.

    But the tile is read down its columns, whose elements are 32 words apart: all in one of the 32 banks. The 32 lanes
    are served one after the other, 31 conflicts a request.
    """
    tile = cuda.shared.array((TILE, TILE), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = cuda.blockIdx.x * TILE, cuda.blockIdx.y * TILE
    for k in range(ty, TILE, ROWS):
        if left + tx < a.shape[1] and top + k < a.shape[0]:
            tile[k, tx] = a[top + k, left + tx]
    cuda.syncthreads()
    for k in range(ty, TILE, ROWS):
        if top + tx < out.shape[1] and left + k < out.shape[0]:
            out[left + k, top + tx] = tile[tx, k]


@cuda.jit
def transpose_padded(a, out):
    """The same with rows of 33 words, one more than are used: a column now visits all 32 banks, without a conflict."""
    tile = cuda.shared.array((TILE, PADDED), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = cuda.blockIdx.x * TILE, cuda.blockIdx.y * TILE
    for k in range(ty, TILE, ROWS):
        if left + tx < a.shape[1] and top + k < a.shape[0]:
            tile[k, tx] = a[top + k, left + tx]
    cuda.syncthreads()
    for k in range(ty, TILE, ROWS):
        if top + tx < out.shape[1] and left + k < out.shape[0]:
            out[left + k, top + tx] = tile[tx, k]


def launch(kernel: Any, a: Any) -> Any:
    """The kernel with a block of (32, 8) threads for each 32 x 32 tile of ``a``."""
    grid, _ = launching.image(a.shape, (TILE, TILE))
    return kernel[grid, BLOCK]


def transpose_reference(a: np.ndarray) -> np.ndarray:
    """a.T, moved in memory."""
    return np.ascontiguousarray(a.T)
