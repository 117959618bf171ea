"""Lesson 02: what is wrong with an answer, and one sentence of why where the mistake is a typical one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labkit.course import claims, explain
from labkit.course.checks import Launch
from labkit.course.compare import Difference, number
from labkit.course.lessons.l02_cases import INTENSITY, MATMUL_TILE, SIDE, THREADS, TILE

_TILES = (
    "each 32 x 32 tile is right in itself but sits in the wrong place: when the picture turns, the tile's own place "
    "turns too, blockIdx.y becomes the column."
)


def transpose(launch: Launch, name: str, got: np.ndarray, found: Difference) -> str:
    image = launch.arguments["image"]
    guesses = ((image, "the image came out as it was: out[column, row] is image[row, column]."),) * _square(
        image
    )
    return explain.guess(got, guesses) or _tiled(launch, name, got, found)


def rotate(launch: Launch, name: str, got: np.ndarray, found: Difference) -> str:
    image = launch.arguments["image"]
    guesses = [
        (
            np.rot90(image, 1),
            "this is turned the other way, counterclockwise: the first row becomes the last column.",
        ),
        (
            image.T,
            "this is the transpose: turning mirrors it as well, the first row becomes the last column.",
        ),
        (
            image.T[::-1, ::-1],
            "this is mirrored along the wrong diagonal: rows count backwards, columns do not.",
        ),
    ]
    return explain.guess(got, guesses) or _tiled(launch, name, got, found)


def _square(image: np.ndarray) -> int:
    return int(image.shape[0] == image.shape[1])


def _tiled(launch: Launch, name: str, got: np.ndarray, found: Difference) -> str:
    expected = launch.expected[name]
    if found.untouched.sum() == found.count < got.size:
        return "some pixels were not written: out has the sides of image exchanged, and so has its guard."
    if max(got.shape) > TILE and not found.wrong[:TILE, :TILE].any():
        return _TILES
    return explain.any_shape(got, expected, found)


def matmul(launch: Launch, name: str, got: np.ndarray, found: Difference) -> str:
    a, b = launch.arguments["a"], launch.arguments["b"]
    general = explain.any_shape(got, launch.expected[name], found)
    if found.untouched.sum() == found.count:
        return general
    if any(side % MATMUL_TILE for side in (*a.shape, *b.shape)):
        return general or "where a tile reaches beyond a or b, its elements have to be zero."
    guesses = (
        (
            a[:, -16:] @ b[-16:],
            "this is the product of the last tiles alone: the total has to add up over tiles.",
        ),
        (
            _by_tiles(a, b, "IxKk,KyJk"),
            "each thread goes along a row of the tile of b: k goes down a column of b.",
        ),
        (
            _by_tiles(a, b, "IkKx,KkJy"),
            "each thread goes down a column of the tile of a: k goes along a row of a.",
        ),
    )
    return explain.guess(got, guesses) or general


def _by_tiles(a: np.ndarray, b: np.ndarray, reading: str) -> np.ndarray:
    """The product, tile by tile, when the tiles (I, K) of a and (K, J) of b are read as ``reading`` says."""
    t = MATMUL_TILE
    tiles_a = a.astype(np.float64).reshape(a.shape[0] // t, t, a.shape[1] // t, t)
    tiles_b = b.astype(np.float64).reshape(b.shape[0] // t, t, b.shape[1] // t, t)
    return np.einsum(f"{reading}->IxJy", tiles_a, tiles_b).reshape(a.shape[0], b.shape[1])


def reduction(launch: Launch, name: str, got: np.ndarray, found: Difference) -> str:
    x, blocks = launch.arguments["x"], launch.grid[0]
    parts = np.pad(x, (0, blocks * THREADS - x.size)).reshape(blocks, THREADS)
    guesses = (
        (parts[:, 0], "this is the first element of each block: nothing was added."),
        (
            parts[:, ::2].sum(axis=1),
            "this is the sum of every other element: the last level of the tree is missing.",
        ),
        (np.full(blocks, x.sum()), "this is the sum of all elements: each block has a sum of its own."),
    )
    return explain.guess(got, guesses) or explain.any_shape(got, launch.expected[name], found)


def histogram(launch: Launch, name: str, got: np.ndarray, found: Difference) -> str:
    total, size = int(got.sum()), launch.arguments["values"].size
    if total == size * launch.grid[0] and launch.grid[0] > 1:
        return "every value was counted once by each block: start at cuda.grid(1), step by cuda.gridsize(1)."
    if 0 < total < size:
        return f"only {total:,} of {size:,} values were counted: two threads that add to one bin need cuda.atomic.add."
    return explain.any_shape(got, launch.expected[name], found)


def shuffle(launch: Launch, name: str, got: np.ndarray, found: Difference) -> str:
    x = launch.arguments["x"]
    first = np.pad(x, (0, -x.size % 32)).reshape(-1, 32)
    guesses = (
        (first[:, 0], "this is each warp's first element: nothing was added."),
        (first[:, :2].sum(axis=1), "this is the sum of two lanes: the step has to go 16, 8, 4, 2, 1."),
        (first[:, ::2].sum(axis=1), "this is the sum of every other lane: the step 1 is missing."),
    )
    return explain.guess(got, guesses) or explain.any_shape(got, launch.expected[name], found)


def roofline(answer: dict[str, Any]) -> tuple[str, str] | None:
    """The three intensities, each within 10 %."""
    for name, expected in INTENSITY.items():
        value: Any = answer.get(name)
        trouble = explain.not_a_number(value)
        if trouble:
            return f"The intensity of {name} is {trouble}; it should be a number, FLOP a byte.", ""
        if not math.isclose(value, expected, rel_tol=0.1):
            message = f"The intensity of {name} is not {number(float(value))} FLOP a byte."
            return message, _intensity_why(name, float(value) / expected)
    return None


def _intensity_why(name: str, ratio: float) -> str:
    guesses = {
        "saxpy": (
            (1.5, "out is written as well: 12 bytes an element."),
            (0.5, "a multiplication and an addition: 2."),
        ),
        "blur": (
            (2, "each pixel is read and another written: 8 bytes."),
            (2 / 10, "neighbours share their pixels through the cache: from DRAM each comes once."),
            (8 / 9, "eight additions and one multiplication: 9."),
        ),
        "matmul": (
            (0.5, "a multiplication and an addition for each k: 2."),
            (1.5, "three matrices cross the bus: a, b and c."),
            (
                2 * SIDE**3 / (8 * SIDE**3) / INTENSITY["matmul"],
                "with tiles and cache, each matrix is moved once.",
            ),
        ),
    }
    found = next((why for factor, why in guesses[name] if math.isclose(ratio, factor, rel_tol=0.1)), "")
    if not found and any(math.isclose(ratio, factor, rel_tol=0.1) for factor in (4, 8)):
        return "count bytes, not elements: a float32 has 4."
    if not found and math.isclose(ratio * INTENSITY[name] ** 2, 1, rel_tol=0.1):
        return "this is bytes a FLOP: the other way round."
    return found


claim = claims.Judge(
    verdicts=("mostly true",),
    reasons={
        "true": "look up both cards of 1.6 TB/s and their kind of memory: which one is HBM2e?",
        "false": "the order of magnitude is right, and so is 'more than twice' for most GDDR6 cards.",
        "misleading": "it is not quite exact, but what it suggests is right: HBM is much faster than GDDR6.",
        "unsourced": "the data sheets are in the catalogue: labkit.hardware.gpus().",
    },
    number=claims.Figure(
        units={"tb/s": 1, "gb/s": 1e-3},
        unit_hint="bandwidth is asked for, in 'TB/s' or 'GB/s'.",
        right=(claims.around(2.039, 0.01), claims.around(1.935, 0.01)),
        wrong="The HBM2e of an A100 80 GB does not give {value} {unit}.",
        whys=(
            (
                *claims.around(1.555, 0.04),
                "that is the A100 with 40 GB, whose memory is HBM2; the one with 80 GB has HBM2e.",
            ),
        ),
    ),
    left_out=(
        "card",
        "which",
        "stack",
        "bus",
        "width",
        "t4",
        "l4",
        "gddr6x",
        "peak",
        "40",
        "hbm2 ",
        "achiev",
        "measur",
    ),
    asked="what the two figures depend on.",
    hint="a kind of memory has no bandwidth; cards have one. Which cards are compared?",
)
