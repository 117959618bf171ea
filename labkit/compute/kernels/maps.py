"""Map: each output element depends on its own input elements and on nothing else.

There is nothing to share and nothing to wait for, so memory decides: which addresses the 32 lanes of a warp ask for
together, and whether all lanes of a warp go the same way at a branch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labkit import cuda
from labkit.compute.kernels import launching

BLOCKS = 16  # of the loops below, which visit all elements with any number of blocks
TURNS = 8
HALF, ONE = np.float32(0.5), np.float32(1)


@cuda.jit
def saxpy(a, x, y, out):
    """out = a * x + y, one thread an element; x, y, out float32 of shape (n,).

    Neighbouring lanes touch neighbouring elements: the 128 bytes a warp asks for are 4 sectors of 32 bytes.
    """
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]


@cuda.jit
def saxpy_stride(a, x, y, out):
    """The same for any launch shape: each thread goes on by the width of the grid.

    In every turn the lanes of a warp are again neighbours, so accesses stay as good as in ``saxpy``, and what a
    thread works out once serves many elements.
    """
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = a * x[i] + y[i]


@cuda.jit
def saxpy_runs(a, x, y, out):
    """The same as one would split it among CPU cores: each thread takes a run of neighbouring elements.

    On a GPU this is the slow way. In every turn the lanes of a warp are a whole run apart, so with runs of 8 or more
    float32 a warp touches 32 sectors to use 4 bytes of each.
    """
    run = (out.size + cuda.gridsize(1) - 1) // cuda.gridsize(1)
    first = cuda.grid(1) * run
    for i in range(first, min(first + run, out.size)):
        out[i] = a * x[i] + y[i]


@cuda.jit
def lengths_of_structures(points, out):
    """Length of each vector of an array of structures: points float32 (n, 3), out float32 (n,).

    x, y, z of a point lie together, so the x of 32 points span 384 bytes: each of the three loads touches 12 sectors.
    """
    i = cuda.grid(1)
    if i < out.size:
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        out[i] = math.sqrt(x * x + y * y + z * z)


@cuda.jit
def lengths_of_arrays(points, out):
    """The same of a structure of arrays: points float32 (3, n). Each of the three loads touches 4 sectors."""
    i = cuda.grid(1)
    if i < out.size:
        x, y, z = points[0, i], points[1, i], points[2, i]
        out[i] = math.sqrt(x * x + y * y + z * z)


@cuda.jit(device=True)
def root(x):
    """The square root of a float32 in (0, 4), by Newton's method."""
    guess = ONE
    for _ in range(TURNS):
        guess = HALF * (guess + x / guess)
    return guess


@cuda.jit(device=True)
def logistic(x):
    """A float32 in (0, 1) after some turns of the logistic map with growth rate 2."""
    for _ in range(TURNS):
        x = (x + x) * (ONE - x)
    return x


@cuda.jit
def alternate_divergent(x, out):
    """Even elements get ``root``, odd ones ``logistic``; x float32 (n,) in (0, 1), out likewise.

    Even and odd lanes of every warp disagree at the branch, so every warp runs both sides one after the other.
    """
    i = cuda.grid(1)
    if i < out.size:
        if i % 2 == 0:
            out[i] = root(x[i])
        else:
            out[i] = logistic(x[i])


@cuda.jit
def alternate_uniform(x, out):
    """The same with the elements dealt out anew: the first half of the threads takes the even ones.

    All lanes of a warp agree, but for the one warp in the middle. The price: a warp's elements are now 8 bytes apart,
    so it touches 8 sectors instead of 4. Worth it when the branches are long and memory is not the limit.
    """
    i = cuda.grid(1)
    if i < out.size:
        evens = (out.size + 1) // 2
        if i < evens:
            out[2 * i] = root(x[2 * i])
        else:
            odd = 2 * (i - evens) + 1
            out[odd] = logistic(x[odd])


def launch(kernel: Any, out: Any) -> Any:
    """The kernel with a launch shape for an output of n elements: ``launch(saxpy, out)(a, x, y, out)``."""
    most = BLOCKS if kernel in (saxpy_stride, saxpy_runs) else None
    return kernel[launching.line(out.shape[0], most=most)]


def saxpy_reference(a: float, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """a * x + y in float32."""
    return np.float32(a) * x + y


def lengths_reference(points: np.ndarray) -> np.ndarray:
    """Lengths of the vectors (n, 3) -> (n,)."""
    return np.sqrt((points * points).sum(axis=1))


def alternate_reference(x: np.ndarray) -> np.ndarray:
    """Square roots of the even elements, the logistic map of the odd ones."""
    grown = x.copy()
    for _ in range(TURNS):
        grown = (grown + grown) * (ONE - grown)
    return np.where(np.arange(x.size) % 2 == 0, np.sqrt(x), grown)
