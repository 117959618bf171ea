"""More photo filters: smooth, find edges, take out specks. Images are float32 (rows, columns), values 0 to 1.

Beyond the border, border pixels repeat. x runs along rows, so the lanes of a warp read neighbouring pixels.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labkit import cuda
from labkit.compute.kernels import launching

RADIUS = 3
_bell = np.exp(-0.5 * np.arange(-RADIUS, RADIUS + 1) ** 2 / (RADIUS / 2) ** 2)
WEIGHTS = (_bell / _bell.sum()).astype(np.float32)
ZERO, TWO = np.float32(0), np.float32(2)


@cuda.jit(device=True)
def inside(k, length):
    """The index moved to the nearest that exists."""
    return min(max(k, 0), length - 1)


@cuda.jit
def smooth_direct(image, out):
    """Gaussian blur of radius 3 in one pass: 49 reads and 98 multiplications a pixel.

    The 7 weights are in constant memory, where all lanes of a warp read the same word at once.
    """
    weights = cuda.const.array_like(WEIGHTS)
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        total = ZERO
        for down in range(2 * RADIUS + 1):
            row = inside(y + down - RADIUS, out.shape[0])
            for right in range(2 * RADIUS + 1):
                column = inside(x + right - RADIUS, out.shape[1])
                total += weights[down] * weights[right] * image[row, column]
        out[y, x] = total


@cuda.jit
def smooth_rows(image, out):
    """The first of two passes that together blur as ``smooth_direct`` does: along rows, 7 reads a pixel.

    A Gaussian in two dimensions is a Gaussian along rows of one along columns: 14 reads and an image in between.
    """
    weights = cuda.const.array_like(WEIGHTS)
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        total = ZERO
        for right in range(2 * RADIUS + 1):
            total += weights[right] * image[y, inside(x + right - RADIUS, out.shape[1])]
        out[y, x] = total


@cuda.jit
def smooth_columns(image, out):
    """The second pass, along columns. Lanes still lie along a row, so each of the 7 reads is of neighbours."""
    weights = cuda.const.array_like(WEIGHTS)
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        total = ZERO
        for down in range(2 * RADIUS + 1):
            total += weights[down] * image[inside(y + down - RADIUS, out.shape[0]), x]
        out[y, x] = total


@cuda.jit
def edges(image, out):
    """Sobel's edge strength: the length of the gradient, from the 8 pixels around."""
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        above, below = inside(y - 1, out.shape[0]), inside(y + 1, out.shape[0])
        left, right = inside(x - 1, out.shape[1]), inside(x + 1, out.shape[1])
        across = image[above, right] + TWO * image[y, right] + image[below, right]
        across -= image[above, left] + TWO * image[y, left] + image[below, left]
        down = image[below, left] + TWO * image[below, x] + image[below, right]
        down -= image[above, left] + TWO * image[above, x] + image[above, right]
        out[y, x] = math.sqrt(across * across + down * down)


@cuda.jit
def median_sort(image, out):
    """The median of the 3 x 3 pixels around, by inserting each into a sorted list.

    How far a value has to move depends on the picture: lanes of a warp wait for the one that moves furthest. And an
    array indexed by a variable cannot be in registers: unless the compiler finds a way around that, it is in local
    memory, which is device memory behind a cache.
    """
    sorted9 = cuda.local.array(9, np.float32)
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        for n in range(9):
            value = image[inside(y + n // 3 - 1, out.shape[0]), inside(x + n % 3 - 1, out.shape[1])]
            place = n
            while place > 0 and sorted9[place - 1] > value:
                sorted9[place] = sorted9[place - 1]
                place -= 1
            sorted9[place] = value
        out[y, x] = sorted9[4]


@cuda.jit(device=True)
def sorted3(a, b, c):
    """Three numbers in order, by exchanges that are a minimum and a maximum: no branch, no memory."""
    a, b = min(a, b), max(a, b)
    b, c = min(b, c), max(b, c)
    a, b = min(a, b), max(a, b)
    return a, b, c


@cuda.jit
def median_network(image, out):
    """The same median by a fixed network of exchanges: every lane does the same, all in registers.

    Sort the three columns. The median of nine is the median of: the largest of the three lows, the median of the three
    middles, the smallest of the three highs.
    """
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        above, below = inside(y - 1, out.shape[0]), inside(y + 1, out.shape[0])
        left, right = inside(x - 1, out.shape[1]), inside(x + 1, out.shape[1])
        low1, mid1, high1 = sorted3(image[above, left], image[y, left], image[below, left])
        low2, mid2, high2 = sorted3(image[above, x], image[y, x], image[below, x])
        low3, mid3, high3 = sorted3(image[above, right], image[y, right], image[below, right])
        _, middle, _ = sorted3(mid1, mid2, mid3)
        _, median, _ = sorted3(max(low1, low2, low3), middle, min(high1, high2, high3))
        out[y, x] = median


def launch(kernel: Any, out: Any) -> Any:
    """The kernel with blocks of (32, 8) threads, one a pixel: ``launch(edges, out)(image, out)``."""
    return kernel[launching.image(out.shape)]


def _windows(image: np.ndarray, radius: int) -> np.ndarray:
    around = np.pad(image, radius, mode="edge")
    return np.lib.stride_tricks.sliding_window_view(around, (2 * radius + 1, 2 * radius + 1))


def smooth_reference(image: np.ndarray) -> np.ndarray:
    """The Gaussian blur of radius 3."""
    return np.einsum("yxij,i,j->yx", _windows(image, RADIUS), WEIGHTS, WEIGHTS)


def edges_reference(image: np.ndarray) -> np.ndarray:
    """Sobel's edge strength."""
    slope = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], np.float32)
    windows = _windows(image, 1)
    across, down = (np.einsum("yxij,ij->yx", windows, table) for table in (slope, slope.T))
    return np.hypot(across, down)


def median_reference(image: np.ndarray) -> np.ndarray:
    """The median of the 3 x 3 pixels around."""
    return np.median(_windows(image, 1), axis=(2, 3))
