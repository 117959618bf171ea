"""Lesson 02: the launches of every check with the values they should give, and the gates of their counters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from labkit.course.checks import Launch
from labkit.course.compare import untouched
from labkit.course.gates import Gate, counter, sectors_a_request

TILE = 32  # a block of the image exercises has 32 x 32 threads
MATMUL_TILE = 16
THREADS = 256
WARP = 32
BINS = 256

LOADS = Gate(
    "sectors a load request",
    sectors_a_request("load"),
    4,
    "the 32 lanes of a warp read down a column, a sector for each: let neighbouring lanes (threadIdx.x) read "
    "neighbours of a row.",
)
STORES = Gate(
    "sectors a store request",
    sectors_a_request("store"),
    4,
    "the 32 lanes of a warp write down a column, a sector for each: go through a tile in shared memory.",
)
CONFLICTS = Gate(
    "bank conflicts",
    counter("shared_bank_conflicts"),
    0,
    "lanes that want different words of one bank wait for each other; rows of 33 words instead of 32 move each row's "
    "words on by one bank.",
)

# Sides that are whole tiles, where the counters are exact; then ragged ones, one pixel, and thin strips.
_WHOLE = ((64, 96), (32, 32))
_RAGGED = ((45, 37), (1, 1), (70, 33), (33, 1), (1, 40))


def transpose() -> Iterator[Launch]:
    for number, shape in enumerate((*_WHOLE, *_RAGGED)):
        image = _floats((201, number), shape)
        yield _tiled(image, image.T, (LOADS, STORES) if shape in _WHOLE else ())


def rotate() -> Iterator[Launch]:
    for number, shape in enumerate((*_WHOLE, *_RAGGED)):
        image = _floats((202, number), shape)
        yield _tiled(image, np.rot90(image, -1), (LOADS, STORES, CONFLICTS) if shape in _WHOLE else ())


def _tiled(image: np.ndarray, expected: np.ndarray, gates: tuple[Gate, ...]) -> Launch:
    """A block of 32 x 32 threads for each tile of the image, x along its rows."""
    rows, columns = image.shape
    grid = (-(-columns // TILE), -(-rows // TILE))
    arguments = {"image": image, "out": untouched((columns, rows), np.float32)}
    size = f"{rows} x {columns} pixels"
    return Launch(grid, (TILE, TILE), arguments, {"out": np.ascontiguousarray(expected)}, size, gates)


# (rows of a, columns of a, columns of b): whole tiles of 16, then ragged, and a single element.
_PRODUCTS = ((64, 64, 64), (48, 32, 80), (20, 33, 17), (16, 5, 16), (1, 1, 1))


def matmul() -> Iterator[Launch]:
    for number, (m, k, n) in enumerate(_PRODUCTS):
        a, b = _floats((203, number), (m, k)), _floats((204, number), (k, n))
        expected = (a.astype(np.float64) @ b).astype(np.float32)
        arguments = {"a": a, "b": b, "c": untouched((m, n), np.float32)}
        grid = (-(-n // MATMUL_TILE), -(-m // MATMUL_TILE))
        whole = not any(side % MATMUL_TILE for side in (m, k, n))
        gates = (sectors_loaded(m, k, n),) if whole else ()
        size = f"({m}, {k}) @ ({k}, {n})"
        yield Launch(grid, (MATMUL_TILE, MATMUL_TILE), arguments, {"c": expected}, size, gates)


def sectors_loaded(m: int, k: int, n: int) -> Gate:
    """Each element of c needs k of a and k of b, and every fetched value serves 16 threads; 8 floats a sector."""
    return Gate(
        "sectors loaded from global memory",
        counter("global_load_sectors"),
        2 * m * n * k // MATMUL_TILE // 8,
        "a value is fetched from global memory more often than tiles need: a block brings each tile into shared memory "
        "once, and all its 256 threads use it.",
    )


def reduction() -> Iterator[Launch]:
    for number, (blocks, size) in enumerate(((4, 1024), (1, 256), (4, 1000), (1, 1), (2, 257), (1, 100))):
        x = _floats((205, number), (size,))
        parts = np.pad(x, (0, blocks * THREADS - size)).reshape(blocks, THREADS)
        expected = parts.sum(axis=1, dtype=np.float64).astype(np.float32)
        gates = tree(blocks) if size == blocks * THREADS else ()
        arguments = {"x": x, "out": untouched((blocks,), np.float32)}
        yield Launch((blocks,), (THREADS,), arguments, {"out": expected}, _elements(size), gates)


def tree(blocks: int) -> tuple[Gate, ...]:
    """What a tree needs a block: it parts only inside its last warp (5 levels, and the thread that writes)."""
    return (
        Gate(
            "atomic requests",
            counter("atomic_requests"),
            0,
            "atomic additions to one place queue up; a tree needs none.",
        ),
        Gate(
            "divergent branches",
            counter("divergent_branches"),
            6 * blocks,
            "in most warps some lanes add while others wait: let the first threads add, t < step, with steps of 128, "
            "64, ... 1, so that whole warps work or rest.",
        ),
        Gate(
            "bank conflicts",
            counter("shared_bank_conflicts"),
            0,
            "the lanes that add are together, but their words are 2, 4, 8 ... apart, in the same banks: add "
            "neighbours to neighbours, s[t] += s[t + step].",
        ),
        Gate(
            "shared load requests",
            counter("shared_load_requests"),
            25 * blocks,
            "one thread adds up what the others wait for: a tree halves the number of values at each level.",
        ),
    )


def histogram() -> Iterator[Launch]:
    shapes = ((8, 256, 20_000), (4, 128, 4096), (2, 64, 100), (3, 256, 1), (2, 32, 0))
    for number, (blocks, threads, size) in enumerate(shapes):
        random = np.random.default_rng((206, number))
        values = np.clip(random.normal(120, 30, size), 0, 255).astype(np.uint8)
        arguments = {"values": values, "counts": np.zeros(BINS, np.int32)}
        expected = np.bincount(values, minlength=BINS).astype(np.int32)
        gates = (private(blocks),) if size > 4000 else ()
        yield Launch((blocks,), (threads,), arguments, {"counts": expected}, _elements(size), gates)


def private(blocks: int) -> Gate:
    return Gate(
        "atomic updates of global memory",
        counter("global_atomic_updates"),
        BINS * blocks,
        "every value goes straight to global memory: let each block count into shared memory of its own, and add its "
        "256 sums to counts at the end.",
    )


def shuffle() -> Iterator[Launch]:
    for number, (blocks, threads, size) in enumerate(((4, 128, 512), (1, 32, 32), (2, 64, 100), (1, 96, 70))):
        x = _floats((207, number), (size,))
        warps = -(-size // WARP)
        expected = np.pad(x, (0, warps * WARP - size)).reshape(warps, WARP).sum(axis=1, dtype=np.float64)
        arguments = {"x": x, "out": untouched((warps,), np.float32)}
        gates = registers(warps) if size == blocks * threads else ()
        outputs = {"out": expected.astype(np.float32)}
        yield Launch((blocks,), (threads,), arguments, outputs, _elements(size), gates)


def registers(warps: int) -> tuple[Gate, ...]:
    """Nothing but registers: one load a warp, and no other memory."""
    return (
        Gate(
            "requests of shared or local memory",
            counter("shared_load_requests", "shared_store_requests", "local_requests"),
            0,
            "shuffles hand values from register to register; no array is needed.",
        ),
        Gate(
            "atomic requests",
            counter("atomic_requests"),
            0,
            "the warp's sum ends up in lane 0, which alone writes it: no atomic is needed.",
        ),
        Gate(
            "load requests",
            counter("global_load_requests"),
            warps,
            "each lane reads its own element, all 32 in one request; the rest comes by cuda.shfl_down_sync.",
        ),
    )


# Work and traffic of the three kernels of 02.roofline, as its task describes them.
SIDE = 256
INTENSITY = {
    "saxpy": 2 / 12,
    "blur": 9 / 8,
    "matmul": 2 * SIDE**3 / (3 * 4 * SIDE**2),
}


def intensity_begun(answer: Any) -> bool:
    return any(value is not None for value in answer.values())


def _floats(seed: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 9.5, shape).astype(np.float32)


def _elements(size: int) -> str:
    return "1 element" if size == 1 else f"{size:,} elements"
