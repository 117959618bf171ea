"""Launch shapes and their limits: what stands between the brackets of ``kernel[grid, block](...)``."""

from __future__ import annotations

import operator
from typing import Any

from labkit.compute.emulator.geometry import Dim3, Launch
from labkit.errors import KernelError

# Limits of every NVIDIA GPU since compute capability 3.0 (CUDA C++ Programming Guide, technical specifications).
MAX_THREADS_PER_BLOCK = 1024
MAX_BLOCK: Dim3 = (1024, 1024, 64)
MAX_GRID: Dim3 = (2**31 - 1, 65535, 65535)
MAX_STATIC_SHARED_BYTES = 48 * 1024
MAX_LOCAL_BYTES = 512 * 1024


def launch_shape(grid: Any, block: Any, kernel: str) -> Launch:
    """Check and normalise a launch shape.

    Raises
    ------
    KernelError
        Of kind ``launch-limit``, with the limit and what to do.
    """
    launch = Launch(_dim3(grid, "blocks in the grid", kernel), _dim3(block, "threads in a block", kernel))
    if launch.threads_per_block > MAX_THREADS_PER_BLOCK:
        raise _limit(
            kernel,
            f"{launch.threads_per_block} threads a block, but a block has at most {MAX_THREADS_PER_BLOCK}: use smaller "
            "blocks and more of them",
        )
    for k, axis in enumerate("xyz"):
        if launch.block[k] > MAX_BLOCK[k]:
            raise _limit(
                kernel, f"{launch.block[k]} threads along {axis}; at most {MAX_BLOCK[k]} are possible"
            )
        if launch.grid[k] > MAX_GRID[k]:
            raise _limit(kernel, f"{launch.grid[k]} blocks along {axis}; at most {MAX_GRID[k]} are possible")
    return launch


def _dim3(value: Any, what: str, kernel: str) -> Dim3:
    members = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    try:
        numbers = tuple(operator.index(m) for m in members)
    except TypeError:
        odd = next(m for m in members if not hasattr(m, "__index__"))
        raise _limit(
            kernel,
            f"{odd!r} ({type(odd).__name__}) as the number of {what}: use a whole number, for example "
            "(n + threads - 1) // threads blocks with '//' instead of '/'",
        ) from None
    if not 1 <= len(numbers) <= 3:
        raise _limit(kernel, f"{len(numbers)} numbers for the {what}: one, two or three are possible")
    if any(n < 1 for n in numbers):
        raise _limit(kernel, f"{value} {what}: every launch needs at least 1 along each axis")
    x, y, z = (*numbers, 1, 1, 1)[:3]
    return x, y, z


def _limit(kernel: str, what: str) -> KernelError:
    return KernelError(f"Kernel '{kernel}' cannot be launched with {what}.", kind="launch-limit")


def check_shared(total: int, kernel: str, line: int | None) -> None:
    """Refuse more static shared memory than a block can have."""
    if total > MAX_STATIC_SHARED_BYTES:
        raise KernelError(
            f"Kernel '{kernel}' asks for {total:,} bytes of shared memory a block, but at most "
            f"{MAX_STATIC_SHARED_BYTES:,} are possible: use a smaller tile.",
            kind="launch-limit",
            line=line,
        )


def check_local(total: int, kernel: str, line: int | None) -> None:
    """Refuse more local memory than a thread can have."""
    if total > MAX_LOCAL_BYTES:
        raise KernelError(
            f"Kernel '{kernel}' asks for {total:,} bytes of local arrays a thread, but at most {MAX_LOCAL_BYTES:,} are "
            "possible: use a smaller array, or a global one that the threads share.",
            kind="launch-limit",
            line=line,
        )


def all_resident(launch: Launch, kernel: str) -> int:
    """The lanes of a grid that runs as a whole, for grid-wide barriers.

    The limit is that of an A100: 108 multiprocessors of 2048 threads (NVIDIA A100 whitepaper), registers and shared
    memory aside.
    """
    threads = launch.blocks * launch.threads_per_block
    if threads > 108 * 2048:
        raise _limit(
            kernel,
            f"{launch.blocks} blocks of {launch.threads_per_block} threads and a grid-wide barrier: all blocks must be "
            f"on the device at once, which holds {108 * 2048:,} threads; use fewer blocks and a grid-stride loop",
        )
    return threads
