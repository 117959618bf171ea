"""Matrix product with tiles in shared memory, for matrices whose sides are no multiples of the tile."""

import math

import numpy as np
from numba import cuda, float32

SIDE = 16


@cuda.jit
def naive(a, b, out):
    row, column = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        out[row, column] = total


@cuda.jit
def tiled(a, b, out):
    left = cuda.shared.array(shape=(SIDE, SIDE), dtype=float32)
    right = cuda.shared.array(shape=(SIDE, SIDE), dtype=float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0.0)
    for tile in range((a.shape[1] + SIDE - 1) // SIDE):
        left[ty, tx] = 0
        right[ty, tx] = 0
        if y < a.shape[0] and tx + tile * SIDE < a.shape[1]:
            left[ty, tx] = a[y, tx + tile * SIDE]
        if x < b.shape[1] and ty + tile * SIDE < b.shape[0]:
            right[ty, tx] = b[ty + tile * SIDE, x]
        cuda.syncthreads()
        for k in range(SIDE):
            total += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = total


rng = np.random.default_rng(3)
a = rng.random((37, 23), dtype=np.float32)
b = rng.random((23, 41), dtype=np.float32)
d_a, d_b = cuda.to_device(a), cuda.to_device(b)
threads = (SIDE, SIDE)
for kernel, shape in ((naive, (37, 41)), (tiled, (41, 37))):
    d_out = cuda.device_array((37, 41), np.float32)
    grid = tuple(math.ceil(n / SIDE) for n in shape)
    kernel[grid, threads](d_a, d_b, d_out)
    np.testing.assert_allclose(d_out.copy_to_host(), a @ b, rtol=1e-5)
print("matmul", "agrees")
