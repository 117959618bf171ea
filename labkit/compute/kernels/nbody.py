"""N-body: every body pulls at every other, n * n interactions of 20 operations each on 16 n bytes.

bodies is float32 (4, n): rows x, y, z and mass, so that neighbouring lanes read neighbours. acceleration is float32
(3, n). Units in which the gravitational constant is 1. ``softening`` (a length, > 0) keeps close pairs finite, and
lets a body meet itself without a test: its own pull is zero.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labkit import cuda
from labkit.compute.kernels import launching

THREADS = 128
ZERO, ONE = np.float32(0), np.float32(1)


@cuda.jit(device=True)
def pull(dx, dy, dz, mass, softening):
    """Mass over the softened distance cubed: times the offset (dx, dy, dz) it is the acceleration."""
    closeness = ONE / math.sqrt(dx * dx + dy * dy + dz * dz + softening * softening)
    return mass * closeness * closeness * closeness


@cuda.jit
def accelerate_naive(bodies, softening, acceleration):
    """Each thread reads all bodies from global memory: 16 bytes for 20 operations.

    All lanes of a warp read the same body at the same time, one sector for the 32 of them; the same sectors are fetched
    again by every warp.
    """
    i = cuda.grid(1)
    if i < bodies.shape[1]:
        x, y, z = bodies[0, i], bodies[1, i], bodies[2, i]
        ax, ay, az = ZERO, ZERO, ZERO
        for j in range(bodies.shape[1]):
            dx, dy, dz = bodies[0, j] - x, bodies[1, j] - y, bodies[2, j] - z
            strength = pull(dx, dy, dz, bodies[3, j], softening)
            ax += strength * dx
            ay += strength * dy
            az += strength * dz
        acceleration[0, i], acceleration[1, i], acceleration[2, i] = ax, ay, az


@cuda.jit
def accelerate_tiled(bodies, softening, acceleration):
    """The same; a block brings 128 bodies at a time into shared memory, each thread one, and all threads use them.

    Each body is read from global memory once a block instead of once a warp. Threads beyond the last body stay: they
    help to bring, and must come to the barriers.
    """
    tile = cuda.shared.array((4, THREADS), np.float32)
    n = bodies.shape[1]
    t, i = cuda.threadIdx.x, cuda.grid(1)
    own = min(i, n - 1)
    x, y, z = bodies[0, own], bodies[1, own], bodies[2, own]
    ax, ay, az = ZERO, ZERO, ZERO
    for first in range(0, n, THREADS):
        if first + t < n:
            for row in range(4):
                tile[row, t] = bodies[row, first + t]
        cuda.syncthreads()
        for j in range(min(THREADS, n - first)):
            dx, dy, dz = tile[0, j] - x, tile[1, j] - y, tile[2, j] - z
            strength = pull(dx, dy, dz, tile[3, j], softening)
            ax += strength * dx
            ay += strength * dy
            az += strength * dz
        cuda.syncthreads()
    if i < n:
        acceleration[0, i], acceleration[1, i], acceleration[2, i] = ax, ay, az


def launch(kernel: Any, bodies: Any) -> Any:
    """The kernel with a thread for each of n >= 1 bodies: ``launch(accelerate_tiled, bodies)(bodies, 0.1, out)``."""
    return kernel[launching.line(bodies.shape[1], THREADS)]


def accelerate_reference(bodies: np.ndarray, softening: float) -> np.ndarray:
    """Accelerations (3, n), in float64."""
    place, mass = bodies[:3].astype(np.float64), bodies[3]
    offset = place[:, None, :] - place[:, :, None]
    closeness = ((offset**2).sum(axis=0) + float(softening) ** 2) ** -1.5
    return (offset * (mass * closeness)).sum(axis=2)
