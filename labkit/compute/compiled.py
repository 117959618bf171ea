"""The same two filters, compiled by Numba, on one core or on all, whichever is faster: a GPU's fair opponent.

The notebook's kernel never imports Numba (some 100 MiB and a second): ``python -m labkit.compute.compiled``
does, reads one line of JSON from its stdin, prints one, and is gone.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from labkit.compute import child
from labkit.compute.curves import Curve
from labkit.compute.filters import BRIGHTER, FILTERS, NEARNESS, PER_CONTRAST, RADIUS, WHITE
from labkit.compute.scaling import cores

ENOUGH_S = 0.05  # repeat a size for this long, at least three times


def cpu_curves(sizes: Sequence[int], limit_s: float = child.LIMIT_S) -> dict[str, Curve]:
    """Time both filters on this machine's CPU, on square images of about these many pixels.

    Returns
    -------
    dict
        filter -> Curve, compiled by Numba, on one core or on all; by NumPy on one core where Numba is not
        installed. The label says which.
    """
    answer = child.ask("labkit.compute.compiled", {"sizes": list(sizes)}, limit_s)
    return {
        name: Curve(
            f"CPU, {answer['by']}", "measured", "this machine's CPU", tuple(answer["sizes"]), tuple(seconds)
        )
        for name, seconds in answer["seconds"].items()
    }


def _filters() -> tuple[str, dict[str, list[Callable[[np.ndarray], Any]]]]:
    """Who computes, and the functions that do it: one for a single core, one for all of them."""
    try:
        import numba
    except ImportError:
        return "one core, NumPy", {name: [function] for name, (function, _) in FILTERS.items()}
    # NumPy's rules for division: Python's test for zero in the inner loop would keep it from being vectorised.
    compile = numba.njit(nogil=True, fastmath=True, error_model="numpy")
    kernels = {"brighten": compile(_brighten_rows), "denoise": compile(_denoise_rows)}
    by = "one core" if cores() == 1 else f"up to {cores()} cores"
    both = {name: [_on(kernel, threads) for threads in {1, cores()}] for name, kernel in kernels.items()}
    return f"{by}, compiled by Numba", both


def _brighten_rows(image, out, first, last):
    for row in range(first, last):
        for column in range(image.shape[1]):
            out[row, column] = min(image[row, column] * BRIGHTER, WHITE)


def _denoise_rows(image, out, first, last):
    """Rows and columns within RADIUS of the border are left out: 1 % of the pixels of a large image."""
    columns = image.shape[1] - 2 * RADIUS
    total, weights = np.zeros(columns, np.float32), np.zeros(columns, np.float32)
    for row in range(max(first, RADIUS), min(last, image.shape[0] - RADIUS)):
        here = image[row, RADIUS : RADIUS + columns]
        total[:], weights[:] = np.float32(0), np.float32(0)
        for down in range(2 * RADIUS + 1):
            for right in range(2 * RADIUS + 1):
                near = NEARNESS[down, right]
                # A slice, not image[row + down, column + right]: indices that cannot be negative vectorise.
                neighbours = image[row + down - RADIUS, right : right + columns]
                for column in range(columns):
                    difference = (neighbours[column] - here[column]) * PER_CONTRAST
                    weight = near / (difference * difference + WHITE)
                    total[column] += weight * neighbours[column]
                    weights[column] += weight
        for column in range(columns):
            out[row, column + RADIUS] = total[column] / weights[column]


def _on(kernel: Callable[..., None], threads: int) -> Callable[[np.ndarray], np.ndarray]:
    """The kernel as a function of an image: its rows divided among threads, its output made once a size."""
    outputs: dict[tuple[int, ...], np.ndarray] = {}
    pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def function(image: np.ndarray) -> np.ndarray:
        out = outputs.setdefault(image.shape, np.zeros_like(image))
        edges = [image.shape[0] * part // threads for part in range(threads + 1)]
        if pool is None:
            kernel(image, out, 0, image.shape[0])
        else:
            list(pool.map(lambda first, last: kernel(image, out, first, last), edges[:-1], edges[1:]))
        return out

    return function


def _seconds(function: Callable[[np.ndarray], Any], image: np.ndarray) -> float:
    function(image)  # compiles on the first size, and warms the caches on every size
    times: list[float] = []
    while len(times) < 3 or sum(times) < ENOUGH_S:
        begin = time.perf_counter()
        function(image)
        times.append(time.perf_counter() - begin)
    return min(times)


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Run in the child: time every filter at every size."""
    by, filters = _filters()
    sides = sorted({max(2 * RADIUS + 1, round(size**0.5)) for size in question["sizes"]})
    images = [np.random.default_rng(side).random((side, side), np.float32) for side in sides]
    seconds = {
        name: [min(_seconds(function, image) for function in functions) for image in images]
        for name, functions in filters.items()
    }
    return {"by": by, "sizes": [image.size for image in images], "seconds": seconds}


if __name__ == "__main__":
    print(json.dumps(answer(json.loads(sys.stdin.readline()))))
