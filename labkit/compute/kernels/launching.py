"""Launch shapes for the kernels here: how many blocks of how many threads cover an array."""

from __future__ import annotations

THREADS = 256
"""Threads of a one-dimensional block: eight warps, few enough that several blocks fit on a multiprocessor."""

IMAGE_BLOCK = (32, 8)
"""Threads (x, y) of a block over an image: a whole warp along a row, so that its accesses are neighbours."""


def line(n: int, threads: int = THREADS, most: int | None = None) -> tuple[int, int]:
    """(blocks, threads) with a thread for each of ``n`` elements, or for ``most`` blocks of them.

    A launch needs at least one block, also for no elements. ``most`` is for kernels with a grid-stride loop,
    which visit all elements with any number of blocks.
    """
    blocks = max(1, -(-n // threads))
    return (blocks if most is None else min(blocks, most)), threads


def image(shape: tuple[int, ...], block: tuple[int, int] = IMAGE_BLOCK) -> tuple[tuple, tuple]:
    """((blocks x, y), (threads x, y)) with a thread for each element of a (rows, columns) array.

    CUDA's x runs along a row, that is along the array's last axis.
    """
    rows, columns = shape
    return (max(1, -(-columns // block[0])), max(1, -(-rows // block[1]))), block
