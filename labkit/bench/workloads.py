"""The kernels that the emulator's benchmark runs, in text both labkit and numba's simulator can be given."""

from __future__ import annotations

import math

import numpy as np

try:
    from cuda_under_test import cuda  # a peer process puts its own here
except ImportError:
    from labkit import cuda

TILE = 16


@cuda.jit
def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = a * x[i] + y[i]


@cuda.jit
def matmul(a, b, c):
    tile_a = cuda.shared.array((TILE, TILE), np.float32)
    tile_b = cuda.shared.array((TILE, TILE), np.float32)
    x, y = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    total = 0.0
    for k in range(cuda.gridDim.x):
        tile_a[tx, ty] = a[x, ty + k * TILE]
        tile_b[tx, ty] = b[tx + k * TILE, y]
        cuda.syncthreads()
        for m in range(TILE):
            total += tile_a[tx, m] * tile_b[m, ty]
        cuda.syncthreads()
    c[x, y] = total


@cuda.jit
def reduction(x, out):
    partial = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    partial[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    step = 128
    while step > 0:
        if t < step:
            partial[t] += partial[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, partial[0])


@cuda.jit
def mandelbrot(image, limit):
    x, y = cuda.grid(2)
    if x < image.shape[1] and y < image.shape[0]:
        cr = -2.0 + 3.0 * x / image.shape[1]
        ci = -1.5 + 3.0 * y / image.shape[0]
        zr = 0.0
        zi = 0.0
        n = 0
        while n < limit and zr * zr + zi * zi < 4.0:
            t = zr * zr - zi * zi + cr
            zi = 2.0 * zr * zi + ci
            zr = t
            n += 1
        image[y, x] = n


@cuda.jit
def stencil(a, out):
    i, j = cuda.grid(2)
    if 0 < i < a.shape[0] - 1 and 0 < j < a.shape[1] - 1:
        out[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])


@cuda.jit
def naive_matmul(a, b, c):
    i, j = cuda.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape, np.float32)


def launches() -> dict[str, tuple]:
    """Name to (kernel, grid, block, arguments, output, expected output)."""
    x, y, a, b = numbers(16384), numbers(16384), numbers(64, 64), numbers(64, 64)
    picture, plate = np.zeros((128, 128), np.int32), numbers(256, 256)
    inner = np.zeros_like(plate)
    inner[1:-1, 1:-1] = 0.25 * (plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:])
    out, c, total, cooled = np.zeros_like(x), np.zeros_like(a), np.zeros(1, np.float32), np.zeros_like(plate)
    return {
        "saxpy 16k": (saxpy, 64, 256, (2.0, x, y, out), out, 2 * x + y),
        "tiled matmul 64": (matmul, (4, 4), (16, 16), (a, b, c), c, a @ b),
        "tree reduction 8k": (reduction, 32, 256, (x[:8192], total), total, x[:8192].sum()),
        "Mandelbrot 128x128x100": (mandelbrot, (8, 8), (16, 16), (picture, 100), picture, None),
        "stencil 256x256": (stencil, (16, 16), (16, 16), (plate, cooled), cooled, inner),
    }


def check(name: str, output: np.ndarray, expected: np.ndarray | None) -> None:
    """A benchmark of a wrong result is worth nothing."""
    if expected is None:
        # the corner lies outside the set, the middle within
        right = output[0, 0] < 5 and output[64, 80] == 100
    else:
        right = np.allclose(output, expected, rtol=1e-3)
    if not right:
        raise AssertionError(f"{name}: wrong result")


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))
