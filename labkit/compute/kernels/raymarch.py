"""Ray march: a scene rendered from a function that tells how far the nearest surface is.

From a point at distance d from everything, a ray may go d ahead without hitting anything (John Hart, Sphere tracing,
1996). Rays that graze a surface take many small steps, rays into the open a few large ones: work differs from pixel to
pixel.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labkit import cuda
from labkit.compute.kernels import launching

STEPS = 64
NEAR, FAR = np.float32(1e-3), np.float32(20)
ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)
BALL = tuple(np.float32(n) for n in (0, 0, 3))  # centre x, y, z of a ball of radius 1
FLOOR = np.float32(-1)  # height of an endless floor
LIGHT = tuple(np.float32(n) for n in (-0.48, 0.8, -0.36))  # where light comes from, length 1
AMBIENT = np.float32(0.1)


@cuda.jit(device=True)
def distance(x, y, z):
    """From a point to the nearest surface."""
    dx, dy, dz = x - BALL[0], y - BALL[1], z - BALL[2]
    return min(math.sqrt(dx * dx + dy * dy + dz * dz) - ONE, y - FLOOR)


@cuda.jit(device=True)
def direction(x, y, width, height):
    """The ray (of length 1) through a pixel, from an eye at the origin that looks along z."""
    across = (np.float32(x) + HALF - HALF * np.float32(width)) / np.float32(height)
    up = (HALF * np.float32(height) - np.float32(y) - HALF) / np.float32(height)
    shorter = ONE / math.sqrt(across * across + up * up + ONE)
    return across * shorter, up * shorter, shorter


@cuda.jit(device=True)
def shade(t, dx, dy, dz):
    """Brightness where a ray of length t ends: how squarely the light falls, dimmer far away; black in the open."""
    if t >= FAR:
        return ZERO
    x, y, z = t * dx, t * dy, t * dz
    nx, ny, nz = ZERO, ONE, ZERO
    if y - FLOOR > NEAR + NEAR:  # above the floor: on the ball, whose normal points away from its centre
        nx, ny, nz = x - BALL[0], y - BALL[1], z - BALL[2]
    facing = max(nx * LIGHT[0] + ny * LIGHT[1] + nz * LIGHT[2], ZERO)
    return (AMBIENT + (ONE - AMBIENT) * facing) * (ONE - t / FAR)


@cuda.jit
def render_fixed(out):
    """out float32 (rows, columns), brightness 0 to 1. Every ray takes 64 steps; those that have arrived stand still.

    No branch in the loop, so no lane waits for another; but most of the work is done after the answer is known.
    """
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        dx, dy, dz = direction(x, y, out.shape[1], out.shape[0])
        t = ZERO
        for _ in range(STEPS):
            ahead = distance(t * dx, t * dy, t * dz)
            t += ahead if ahead >= NEAR and t < FAR else ZERO
        out[y, x] = shade(t, dx, dy, dz)


@cuda.jit
def render(out):
    """The same picture; a ray stops when it has arrived.

    A warp goes on until its last ray stops. Rays of a warp are neighbours and mostly end together: divergence costs
    less than the steps it saves. The exception shows at the ball's outline.
    """
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        dx, dy, dz = direction(x, y, out.shape[1], out.shape[0])
        t = ZERO
        for _ in range(STEPS):
            ahead = distance(t * dx, t * dy, t * dz)
            if ahead < NEAR or t >= FAR:
                break
            t += ahead
        out[y, x] = shade(t, dx, dy, dz)


def launch(kernel: Any, out: Any) -> Any:
    """The kernel with blocks of 8 x 8 pixels, so that a warp is a patch of 8 x 4: ``launch(render, out)(out)``."""
    return kernel[launching.image(out.shape, (8, 8))]


def render_reference(rows: int, columns: int) -> np.ndarray:
    """The picture, all rays at once."""
    y, x = np.indices((rows, columns)).astype(np.float32)
    across, up = (
        (x + HALF - columns / HALF / 4) / np.float32(rows),
        (rows / HALF / 4 - y - HALF) / np.float32(rows),
    )
    ray = np.stack([across, up, np.ones_like(up)]) / np.sqrt(across * across + up * up + ONE)
    centre, light = (np.array(v, np.float32)[:, None, None] for v in (BALL, LIGHT))
    t = np.zeros((rows, columns), np.float32)
    for _ in range(STEPS):
        ahead = np.minimum(np.linalg.norm(t * ray - centre, axis=0) - ONE, t * ray[1] - FLOOR)
        t = np.where((ahead >= NEAR) & (t < FAR), t + ahead, t)
    on_ball = t * ray[1] - FLOOR > 2 * NEAR
    normal = np.where(on_ball, t * ray - centre, np.array([0, 1, 0], np.float32)[:, None, None])
    facing = np.maximum((normal * light).sum(axis=0), 0)
    return np.where(t < FAR, (AMBIENT + (ONE - AMBIENT) * facing) * (ONE - t / FAR), 0).astype(np.float32)
