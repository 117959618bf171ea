"""Matrix product: the more often a value is used once it has been fetched, the less memory matters.

c = a @ b with a (m, k), b (k, n), c (m, n), all float32 and of any size. 2 m n k operations on m k + k n + m n numbers:
the four forms do the same arithmetic and differ in how often they fetch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit import cuda
from labkit.compute.kernels import launching

TILE = 16
BLOCK = (TILE, TILE)
EACH = 4  # elements of c that a thread of matmul_registers makes
TALL = EACH * TILE
ZERO = np.float32(0)


@cuda.jit
def matmul_rows(a, b, c):
    """One thread an element, neighbouring lanes on neighbouring rows: the wrong way round.

    ``a[i, k]`` and ``c[i, j]`` of neighbouring lanes are a whole row apart: a warp of a 16 x 16 block touches a sector
    for each of 16 rows.
    """
    i, j = cuda.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = ZERO
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


@cuda.jit
def matmul_columns(a, b, c):
    """The same with x and y exchanged: neighbouring lanes on neighbouring columns.

    ``a[i, k]`` is one address for the lanes of a row (a broadcast), ``b[k, j]`` and ``c[i, j]`` are neighbours. Still
    every operand of every multiplication is fetched.
    """
    j, i = cuda.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = ZERO
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


@cuda.jit
def matmul_tiled(a, b, c):
    """A block of 16 x 16 threads brings tiles of a and b into shared memory, and uses each value 16 times.

    Two barriers a tile: none may read before all have written, and none may overwrite before all have read.
    """
    tile_a = cuda.shared.array((TILE, TILE), np.float32)
    tile_b = cuda.shared.array((TILE, TILE), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    j, i = cuda.grid(2)
    total = ZERO
    for first in range(0, a.shape[1], TILE):
        tile_a[ty, tx] = ZERO
        tile_b[ty, tx] = ZERO
        if i < a.shape[0] and first + tx < a.shape[1]:
            tile_a[ty, tx] = a[i, first + tx]
        if first + ty < b.shape[0] and j < b.shape[1]:
            tile_b[ty, tx] = b[first + ty, j]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if i < c.shape[0] and j < c.shape[1]:
        c[i, j] = total


@cuda.jit
def matmul_registers(a, b, c):
    """As ``matmul_tiled``, and each thread makes 4 elements of a column: 64 x 16 elements of c a block.

    A value of b goes from shared memory into a register once for 4 multiplications. The four totals are a local array
    whose indices are known once the loops are unrolled, so the compiler keeps them in registers.
    """
    tile_a = cuda.shared.array((TALL, TILE), np.float32)
    tile_b = cuda.shared.array((TILE, TILE), np.float32)
    totals = cuda.local.array(EACH, np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    j = cuda.blockIdx.x * TILE + tx
    top = cuda.blockIdx.y * TALL + ty
    for part in range(EACH):
        totals[part] = ZERO
    for first in range(0, a.shape[1], TILE):
        for part in range(EACH):
            i = top + part * TILE
            tile_a[ty + part * TILE, tx] = ZERO
            if i < a.shape[0] and first + tx < a.shape[1]:
                tile_a[ty + part * TILE, tx] = a[i, first + tx]
        tile_b[ty, tx] = ZERO
        if first + ty < b.shape[0] and j < b.shape[1]:
            tile_b[ty, tx] = b[first + ty, j]
        cuda.syncthreads()
        for k in range(TILE):
            value = tile_b[k, tx]
            for part in range(EACH):
                totals[part] += tile_a[ty + part * TILE, k] * value
        cuda.syncthreads()
    for part in range(EACH):
        i = top + part * TILE
        if i < c.shape[0] and j < c.shape[1]:
            c[i, j] = totals[part]


def launch(kernel: Any, c: Any) -> Any:
    """The kernel with blocks of 16 x 16 threads over the output: ``launch(matmul_tiled, c)(a, b, c)``."""
    rows, columns = c.shape
    if kernel is matmul_rows:
        rows, columns = columns, rows
    if kernel is matmul_registers:
        rows = -(-rows // EACH)
    return kernel[launching.image((rows, columns), BLOCK)]


def matmul_reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b, accumulated in float64."""
    return (a.astype(np.float64) @ b).astype(np.float32)
