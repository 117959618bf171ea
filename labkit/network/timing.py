"""Stopwatches for inside ranks: all begin together, and the median of several times counts."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

from labkit.errors import LabkitError


def median_seconds(action: Callable[[], object], repeats: int = 5) -> float:
    """Seconds that ``action()`` takes on this rank: the median of ``repeats``, after one that does not count.

    Every rank has to call it; before each turn all wait for each other.
    """
    import torch.distributed as dist

    seconds = []
    for _ in range(repeats + 1):
        dist.barrier()
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[1:])


def ping_pong(
    sizes: Sequence[int], repeats: int = 5, first: int = 0, second: int = 1
) -> list[tuple[int, float]]:
    """Sizes in bytes, and the seconds of one message of each: half of there and back.

    Every rank calls it, two of them exchange messages; what the others measure is nothing.

    Raises
    ------
    LabkitError
        For a size that is not a multiple of four, and without two ranks.
    """
    from labkit.network.context import rank_context

    if rank_context().world_size < 2:
        raise LabkitError("ping_pong needs two ranks: labkit.ranks(2).run(ping_pong, sizes).")
    if odd := [size for size in sizes if size < 4 or size % 4]:
        raise LabkitError(f"ping_pong sends numbers of four bytes: {odd[0]} is no multiple of four.")
    return [
        (size, median_seconds(partial(_there_and_back, size, first, second), repeats) / 2) for size in sizes
    ]


def _there_and_back(size: int, first: int, second: int) -> None:
    import torch

    from labkit.network.context import rank_context
    from labkit.network.p2p import recv, send

    rank = rank_context().rank
    if rank not in (first, second):
        return
    data, other = torch.zeros(size // 4), first + second - rank
    for turn in (first, second):
        send(data, other) if turn == rank else recv(data, other)
