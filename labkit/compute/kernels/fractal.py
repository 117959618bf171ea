"""Fractal: the Mandelbrot set, where the work of a pixel is not known before it is done.

A pixel is the complex number c; z = z * z + c starts at 0, and the count of turns until |z| > 2 gives the colour.
Lanes of a warp turn until the last of them is out: neighbours that need like numbers of turns keep a warp busy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit import cuda
from labkit.compute.kernels import launching

ROW_BLOCK = (256, 1)
SQUARE_BLOCK = (16, 16)  # a warp is then 16 x 2 pixels: they lie closer, so their turns differ less
ZERO, SIXTEENTH, QUARTER, ONE, TWO, FOUR = (np.float32(n) for n in (0, 1 / 16, 1 / 4, 1, 2, 4))


@cuda.jit
def mandelbrot_double(left, top, step, limit, out):
    """out[y, x] = turns, at most ``limit``, of c = (left + x * step) + (top + y * step) i; out int32 (rows, columns).

    As one writes it in Python: every number is float64. A GPU made for graphics or inference does 32 or 64 float32
    operations in the time of one of these.
    """
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        real = left + x * step
        imaginary = top + y * step
        a = 0.0
        b = 0.0
        turns = 0
        while turns < limit and a * a + b * b <= 4.0:
            a, b = a * a - b * b + real, 2.0 * a * b + imaginary
            turns += 1
        out[y, x] = turns


@cuda.jit(device=True)
def escape(real, imaginary, limit):
    """Turns of one c in float32."""
    a, b = ZERO, ZERO
    turns = 0
    while turns < limit and a * a + b * b <= FOUR:
        a, b = a * a - b * b + real, TWO * a * b + imaginary
        turns += 1
    return turns


@cuda.jit
def mandelbrot(left, top, step, limit, out):
    """The same in float32 throughout (left, top, step float32): constants too, or float64 comes back with the first."""
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = escape(left + np.float32(x) * step, top + np.float32(y) * step, limit)


@cuda.jit
def mandelbrot_skip(left, top, step, limit, out):
    """The same counts; pixels in the two largest parts of the set, known by formula, do not turn at all.

    The heart-shaped part and the disc to its left hold most of the set's area, and their pixels would all turn to the
    limit. A better algorithm beats a better launch.
    """
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        real, imaginary = left + np.float32(x) * step, top + np.float32(y) * step
        aside = real - QUARTER
        height = imaginary * imaginary
        q = aside * aside + height
        in_heart = q * (q + aside) < QUARTER * height
        in_disc = (real + ONE) * (real + ONE) + height < SIXTEENTH
        if in_heart or in_disc:
            out[y, x] = limit
        else:
            out[y, x] = escape(real, imaginary, limit)


def launch(kernel: Any, out: Any, block: tuple[int, int] = SQUARE_BLOCK) -> Any:
    """The kernel with square blocks, or ``ROW_BLOCK`` to compare: ``launch(mandelbrot, out)(left, ..., out)``."""
    return kernel[launching.image(out.shape, block)]


def mandelbrot_reference(left: float, top: float, step: float, limit: int, shape: tuple) -> np.ndarray:
    """The counts in the precision of ``left``, ``top`` and ``step``: float32 scalars give those of ``mandelbrot``."""
    kind = np.asarray(step).dtype.type
    y, x = np.indices(shape).astype(kind)
    real, imaginary = left + x * step, top + y * step
    a, b, turns = np.zeros_like(real), np.zeros_like(real), np.zeros(shape, np.int32)
    for _ in range(limit):
        on = a * a + b * b <= 4
        turns += on
        a, b = np.where(on, a * a - b * b + real, a), np.where(on, kind(2) * a * b + imaginary, b)
    return turns
