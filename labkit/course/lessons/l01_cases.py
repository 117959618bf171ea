"""Lesson 01: the launches and calls of every check, with the values they should give, computed by NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from labkit.course import seeds
from labkit.course.checks import Call, Launch
from labkit.course.compare import untouched
from labkit.course.gates import Gate, counter

BREAK_EVEN = (
    "cpu_s_per_element",
    "gpu_s_per_element",
    "launch_s",
    "copy_latency_s",
    "copy_bytes_per_s",
    "bytes_per_element",
)

# (blocks, threads a block, elements): a grid that fits, one that does not, one element, none, spare blocks.
_COVERING = ((4, 32, 128), (8, 128, 1000), (1, 64, 1), (1, 32, 0), (1, 96, 77), (12, 64, 500))
# Fewer threads than elements, one thread, one block, more threads than elements, one element, none.
_ANY_SHAPE = (
    (8, 64, 2048),
    (4, 32, 1000),
    (1, 1, 37),
    (1, 96, 250),
    (4, 64, 3),
    (3, 5, 1),
    (2, 32, 0),
    (7, 33, 4099),
)
# (rows, columns) and (threads along x, along y). The grid covers the longer side both ways, so that x may be
# the row or the column.
_IMAGES: tuple[tuple[tuple[int, int], tuple[int, int]], ...] = (
    ((32, 32), (16, 16)),
    ((20, 37), (8, 8)),
    ((45, 18), (16, 4)),
    ((1, 1), (4, 4)),
    ((1, 9), (8, 2)),
)
_IMAGES += (((7, 1), (8, 8)), ((2, 2), (2, 2)), ((0, 5), (4, 4)))

_WARP = 32


def shared_out(elements: int) -> tuple[Gate, ...]:
    """The threads share the elements out: then a warp stores 32 in one request, or in some if it adds up in place.

    One thread that does it all needs a request for each element, and so do threads that all do everything.
    """
    why = (
        "one thread does what all should share, or every thread does everything: let each thread take its own "
        "elements, by cuda.grid, and no others."
    )
    words = f"requests to store {elements:,} elements"
    target = elements * 16 // _WARP
    return (Gate(words, counter("global_store_requests"), target, why, told=False),)


def vector_add() -> Iterator[Launch]:
    for number, (blocks, threads, size) in enumerate(_COVERING):
        a, b = _floats((101, number), (2, size))
        arguments = {"a": a, "b": b, "out": untouched((size,), np.float32)}
        gates = shared_out(size) if size == blocks * threads else ()
        yield Launch((blocks,), (threads,), arguments, {"out": a + b}, _elements(size), gates)


def saxpy() -> Iterator[Launch]:
    for number, (blocks, threads, size) in enumerate(_ANY_SHAPE):
        x, y = _floats((102, number), (2, size))
        a = float(np.float32(1.5 + number))
        expected = (a * x.astype(np.float64) + y).astype(np.float32)
        arguments = {"a": a, "x": x, "y": y, "out": untouched((size,), np.float32)}
        gates = shared_out(size) if size == 4 * blocks * threads else ()
        yield Launch((blocks,), (threads,), arguments, {"out": expected}, _elements(size), gates)


def blur() -> Iterator[Launch]:
    for number, (shape, block) in enumerate(_IMAGES):
        image = _floats((103, number), shape)
        grid = tuple(max(1, math.ceil(max(shape) / threads)) for threads in block)
        arguments = {"image": image, "out": untouched(shape, np.float32)}
        gates = shared_out(image.size) if shape == (32, 32) else ()
        size = f"{shape[0]} x {shape[1]} pixels"
        yield Launch(grid, block, arguments, {"out": blurred(image)}, size, gates)


def blurred(image: np.ndarray) -> np.ndarray:
    """The mean of the 3 x 3 pixels around every pixel; beyond the edge, pixels at the edge repeat."""
    rows, columns = image.shape
    if not image.size:
        return image.copy()
    around = np.pad(image.astype(np.float64), 1, mode="edge")
    nine = [around[i : i + rows, j : j + columns] for i in range(3) for j in range(3)]
    return np.mean(nine, axis=0).astype(np.float32)


def amdahl_table(random: np.random.Generator) -> dict[str, list[float]]:
    """Seconds with 1 to 32 workers: a serial share between 4 % and 30 %, times that scatter by about 1 %."""
    share, alone = random.uniform(0.04, 0.3), random.uniform(4, 40)
    workers = [1, 2, 4, 8, 16, 32]
    scatter = random.normal(1, 0.01, len(workers))
    seconds = [alone * (share + (1 - share) / n) * s for n, s in zip(workers, scatter, strict=True)]
    return {"workers": list(workers), "seconds": [round(float(s), 3) for s in seconds]}


def amdahl(table: dict[str, list[float]]) -> Iterator[Call]:
    tables = [table, *(amdahl_table(seeds.generator("01.amdahl", who)) for who in ("first", "second"))]
    tables.append({"workers": [1, 3, 6], "seconds": [12.0, 5.0, 3.5]})
    for one in tables:
        yield Call(dict(one), 1 / serial_share(one["workers"], one["seconds"]))


def serial_share(workers: list[float], seconds: list[float]) -> float:
    """The s that fits t = s + (1 - s) / n best by least squares, t being seconds over those of one worker."""
    n, t = np.asarray(workers, float), np.asarray(seconds, float)
    t = t / t[0]
    u, y = 1 - 1 / n, t - 1 / n
    return float(u @ y / (u @ u))


def break_even_table(random: np.random.Generator) -> dict[str, float]:
    """A CPU of some nanoseconds an element, a faster GPU behind a launch and a link."""
    return {
        "cpu_s_per_element": round(random.uniform(2e-9, 6e-9), 11),
        "gpu_s_per_element": round(random.uniform(2e-11, 9e-11), 12),
        "launch_s": round(random.uniform(4e-6, 1.2e-5), 7),
        "copy_latency_s": round(random.uniform(1.5e-5, 3e-5), 6),
        "copy_bytes_per_s": round(random.uniform(1.2e10, 2.4e10), -8),
        "bytes_per_element": 12,
    }


def break_even(table: dict[str, float]) -> Iterator[Call]:
    """Typical figures, the learner's own, an exact tie, a GPU that never wins, and one that wins at once."""
    tick = 2.0**-20  # times that binary fractions hold exactly, so that a tie is a tie
    cases = (
        (4e-9, 5e-11, 7e-6, 2e-5, 1.6e10, 12),
        tuple(table.values()),
        (8 * tick, 1 * tick, 600 * tick, 100 * tick, 2.0**20, 2),  # gain 5 ticks, 700 to pay: a tie at 140
        (2 * tick, 1 * tick, 64 * tick, 0.0, 2.0**20, 1),  # the copies eat up the whole gain
        (1e-9, 5e-11, 7e-6, 2e-5, 1.2e10, 12),  # the copies cost more than the gain
        (1.0, 0.25, 0.125, 0.125, 16.0, 4),  # wins with a single element
    )
    for figures in cases:
        yield Call(dict(zip(BREAK_EVEN, figures, strict=True)), smallest_size(*figures))


def smallest_size(
    cpu: float, gpu: float, launch: float, latency: float, rate: float, size: float
) -> int | None:
    """The answer in exact arithmetic."""
    gain = Fraction(cpu) - Fraction(gpu) - Fraction(size) / Fraction(rate)
    return math.floor((Fraction(launch) + Fraction(latency)) / gain) + 1 if gain > 0 else None


def _floats(seed: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 9.5, shape).astype(np.float32)


def _elements(size: int) -> str:
    return "1 element" if size == 1 else f"{size:,} elements"
