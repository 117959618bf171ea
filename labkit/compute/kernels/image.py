"""The two photo filters of :mod:`labkit.compute.filters`, one thread a pixel."""

from __future__ import annotations

from labkit.compute import cuda
from labkit.compute.filters import BRIGHTER, PER_CONTRAST, RADIUS, WHITE


@cuda.jit
def brighten(image, out):
    """out[row, column] = image[row, column] * 1.3, at most 1; both float32 of one shape."""
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = min(image[row, column] * BRIGHTER, WHITE)


@cuda.jit
def denoise(image, nearness, out):
    """The bilateral filter; ``nearness`` is the (7, 7) float32 table of weights by distance."""
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        here = image[row, column]
        total = WHITE - WHITE
        weights = WHITE - WHITE
        for down in range(2 * RADIUS + 1):
            near_row = min(max(row + down - RADIUS, 0), out.shape[0] - 1)
            for right in range(2 * RADIUS + 1):
                near_column = min(max(column + right - RADIUS, 0), out.shape[1] - 1)
                neighbour = image[near_row, near_column]
                difference = (neighbour - here) * PER_CONTRAST
                weight = nearness[down, right] / (difference * difference + WHITE)
                total += weight * neighbour
                weights += weight
        out[row, column] = total / weights
