"""Heat: the temperature of a plate, step by step, each point moving towards the mean of its four neighbours.

Explicit finite differences of the heat equation. ``rate`` is diffusivity * time step / spacing**2, without unit; above
1/4 errors grow from step to step. now, after: float32 (rows, columns), in kelvin; the border keeps its temperature.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit import cuda
from labkit.compute.kernels import launching

TILE = 16
WITH_HALO = TILE + 2
BLOCK = (TILE, TILE)
FOUR = np.float32(4)


@cuda.jit
def heat_down(rate, now, after):
    """One step, x along columns: neighbouring lanes are a whole row apart.

    A warp of a 16 x 16 block is then 16 rows of 2 points: each of its 5 loads touches 16 sectors, one a row, or more.
    """
    y, x = cuda.grid(2)
    if y < now.shape[0] and x < now.shape[1]:
        here = now[y, x]
        if 0 < y < now.shape[0] - 1 and 0 < x < now.shape[1] - 1:
            around = now[y - 1, x] + now[y + 1, x] + now[y, x - 1] + now[y, x + 1]
            here += rate * (around - FOUR * here)
        after[y, x] = here


@cuda.jit
def heat_along(rate, now, after):
    """The same, x along rows: loads of neighbours by neighbours. The L1 cache answers 4 of the 5."""
    x, y = cuda.grid(2)
    if y < now.shape[0] and x < now.shape[1]:
        here = now[y, x]
        if 0 < y < now.shape[0] - 1 and 0 < x < now.shape[1] - 1:
            around = now[y - 1, x] + now[y + 1, x] + now[y, x - 1] + now[y, x + 1]
            here += rate * (around - FOUR * here)
        after[y, x] = here


@cuda.jit
def heat_tile(rate, now, after):
    """The same through shared memory: 16 x 16 points and the halo of one around them, 18 x 18 without the corners.

    One load a point and one more for those at the tile's edge. On cards with a large L1 cache it gains little over
    ``heat_along``; it gains more the wider the stencil is. A warp uses two rows of the tile, 18 words apart: the last
    two words of the second are in the banks of the first two of the first, a conflict in most requests.
    """
    tile = cuda.shared.array((WITH_HALO, WITH_HALO), np.float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x + 1, cuda.threadIdx.y + 1
    exists = y < now.shape[0] and x < now.shape[1]
    if exists:
        tile[ty, tx] = now[y, x]
        if tx == 1 and x > 0:
            tile[ty, 0] = now[y, x - 1]
        if tx == TILE and x + 1 < now.shape[1]:
            tile[ty, TILE + 1] = now[y, x + 1]
        if ty == 1 and y > 0:
            tile[0, tx] = now[y - 1, x]
        if ty == TILE and y + 1 < now.shape[0]:
            tile[TILE + 1, tx] = now[y + 1, x]
    cuda.syncthreads()
    if exists:
        here = tile[ty, tx]
        if 0 < y < now.shape[0] - 1 and 0 < x < now.shape[1] - 1:
            around = tile[ty - 1, tx] + tile[ty + 1, tx] + tile[ty, tx - 1] + tile[ty, tx + 1]
            here += rate * (around - FOUR * here)
        after[y, x] = here


def launch(kernel: Any, plate: Any) -> Any:
    """The kernel with blocks of 16 x 16 points: ``launch(heat_tile, now)(rate, now, after)``."""
    rows, columns = plate.shape
    shape = (columns, rows) if kernel is heat_down else (rows, columns)
    return kernel[launching.image(shape, BLOCK)]


def simulate(plate: np.ndarray, rate: float, steps: int, kernel: Any = heat_along) -> np.ndarray:
    """The plate after some steps; it stays on the device, and two arrays take turns as before and after."""
    now, after = cuda.to_device(plate), cuda.device_array_like(plate)
    for _ in range(steps):
        launch(kernel, now)(np.float32(rate), now, after)
        now, after = after, now
    return now.copy_to_host()


def heat_reference(plate: np.ndarray, rate: float, steps: int = 1) -> np.ndarray:
    """The plate after some steps."""
    now = plate.copy()
    for _ in range(steps):
        inner = now[1:-1, 1:-1]
        around = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:]
        now[1:-1, 1:-1] = inner + np.float32(rate) * (around - FOUR * inner)
    return now
