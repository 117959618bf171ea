"""The same two filters, compiled by Numba for all cores: the fair opponent of a GPU.

The notebook's kernel never imports Numba (some 100 MiB and a second): ``python -m labkit.compute.compiled``
does, reads one line of JSON from its stdin, prints one, and is gone.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from labkit.compute import child
from labkit.compute.curves import Curve
from labkit.compute.filters import BRIGHTER, FILTERS, NEARNESS, PER_CONTRAST, RADIUS, WHITE

ENOUGH_S = 0.05  # repeat a size for this long, at least three times


def cpu_curves(sizes: Sequence[int], limit_s: float = child.LIMIT_S) -> dict[str, Curve]:
    """Time both filters on this machine's CPU, on square images of about these many pixels.

    Returns
    -------
    dict
        filter -> Curve, on all cores, compiled by Numba; by NumPy on one core where Numba is not installed,
        and the label says which.
    """
    answer = child.ask("labkit.compute.compiled", {"sizes": list(sizes)}, limit_s)
    return {
        name: Curve(
            f"CPU, {answer['by']}", "measured", "this machine's CPU", tuple(answer["sizes"]), tuple(seconds)
        )
        for name, seconds in answer["seconds"].items()
    }


def _filters() -> tuple[str, dict[str, Callable[[np.ndarray], Any]]]:
    """Who computes, and the functions that do it."""
    try:
        import numba
    except ImportError:
        return "one core, NumPy", {name: function for name, (function, _) in FILTERS.items()}
    threads = numba.get_num_threads()
    by = "one core" if threads == 1 else f"all {threads} cores"
    return f"{by}, compiled by Numba", {
        "brighten": _compiled_brighten(numba),
        "denoise": _compiled_denoise(numba),
    }


def _compiled_brighten(numba: Any) -> Callable[[np.ndarray], Any]:
    @numba.njit(parallel=True, fastmath=True)
    def brighten(image, out):
        for row in numba.prange(image.shape[0]):
            for column in range(image.shape[1]):
                out[row, column] = min(image[row, column] * BRIGHTER, WHITE)

    return _with_output(brighten)


def _compiled_denoise(numba: Any) -> Callable[[np.ndarray], Any]:
    @numba.njit(parallel=True, fastmath=True)
    def denoise(image, out):
        # The rows and columns within RADIUS of the border are left out: 1 % of the pixels of a large image.
        rows, columns = image.shape[0], image.shape[1] - 2 * RADIUS
        for row in numba.prange(RADIUS, rows - RADIUS):
            here = image[row, RADIUS : RADIUS + columns]
            total = np.zeros(columns, np.float32)
            weights = np.zeros(columns, np.float32)
            for down in range(2 * RADIUS + 1):
                for right in range(2 * RADIUS + 1):
                    near = NEARNESS[down, right]
                    # A slice, not image[row + down, column + right]: indices that cannot be negative
                    # vectorise.
                    neighbours = image[row + down - RADIUS, right : right + columns]
                    for column in range(columns):
                        difference = (neighbours[column] - here[column]) * PER_CONTRAST
                        weight = near / (difference * difference + WHITE)
                        total[column] += weight * neighbours[column]
                        weights[column] += weight
            for column in range(columns):
                out[row, column + RADIUS] = total[column] / weights[column]

    return _with_output(denoise)


def _with_output(kernel: Callable[[np.ndarray, np.ndarray], None]) -> Callable[[np.ndarray], np.ndarray]:
    outputs: dict[tuple[int, ...], np.ndarray] = {}

    def function(image: np.ndarray) -> np.ndarray:
        out = outputs.setdefault(image.shape, np.zeros_like(image))
        kernel(image, out)
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
    seconds = {name: [_seconds(function, image) for image in images] for name, function in filters.items()}
    return {"by": by, "sizes": [image.size for image in images], "seconds": seconds}


if __name__ == "__main__":
    print(json.dumps(answer(json.loads(sys.stdin.readline()))))
