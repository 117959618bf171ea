"""Laplace's equation on a plate, until it stands still: a stencil, and the largest change by an atomic maximum."""

import numba
import numpy as np
from numba import cuda

TILE = 8


@numba.cuda.jit("float64(float64, float64, float64, float64)", device=True)
def mean(a, b, c, d):
    return 0.25 * (a + b + c + d)


@cuda.jit
def relax(plate, new, change):
    biggest = cuda.shared.array((TILE, TILE), dtype=numba.float64)
    i, j = cuda.grid(2)
    ty, tx = cuda.threadIdx.x, cuda.threadIdx.y
    n, m = plate.shape
    biggest[ty, tx] = 0.0
    if 1 <= i < n - 1 and 1 <= j < m - 1:
        new[i, j] = mean(plate[i - 1, j], plate[i + 1, j], plate[i, j - 1], plate[i, j + 1])
        biggest[ty, tx] = abs(new[i, j] - plate[i, j])
    cuda.syncthreads()
    step = TILE // 2
    while step > 0:
        if ty < step:
            biggest[ty, tx] = max(biggest[ty, tx], biggest[ty + step, tx])
        cuda.syncthreads()
        step //= 2
    if ty == 0:
        cuda.atomic.max(change, 0, biggest[0, tx])


plate = np.zeros((34, 30))
plate[:, 0] = 1.0
d_plate, d_new = cuda.to_device(plate), cuda.to_device(plate)
stream = cuda.stream()
for _ in range(2000):
    change = cuda.to_device(np.zeros(1), stream=stream)
    relax[(5, 4), (TILE, TILE), stream](d_plate, d_new, change)
    d_plate, d_new = d_new, d_plate
    if change.copy_to_host(stream=stream)[0] < 1e-4:
        break
plate = d_plate.copy_to_host()
inner = plate[1:-1, 1:-1]
neighbours = (plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]) / 4
assert np.abs(inner - neighbours).max() < 1e-4
assert inner.min() > 0
assert inner.max() < 1
print("laplace", "agrees")
