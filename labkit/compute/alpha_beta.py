"""T = alpha + n / beta, measured on this machine and fitted to a table."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from labkit.compute.curves import Curve
from labkit.compute.device_model.moves import Move
from labkit.errors import LabkitError

REPEATS = 7


def fit(curve: Curve) -> Move:
    """The alpha and beta whose *relative* errors over the curve have the least sum of squares.

    Relative, because times of small and large moves differ by many powers of ten: without it the largest few would
    decide alone. An alpha below zero, which noise can give, is taken as zero.
    """
    if len(curve.sizes) < 2:
        raise LabkitError(
            "A straight line through fewer than two points is no fit: measure two sizes or more."
        )
    sizes, seconds = np.asarray(curve.sizes, float), np.asarray(curve.seconds, float)
    terms = np.column_stack([1 / seconds, sizes / seconds])
    (alpha, slope), *_ = np.linalg.lstsq(terms, np.ones(len(sizes)), rcond=None)
    if alpha < 0:
        alpha, slope = 0.0, float(terms[:, 1].sum() / (terms[:, 1] ** 2).sum())
    basis = f"fitted to {len(sizes)} sizes, {curve.how} on {curve.on}"
    return Move(f"{curve.label}, fitted", float(alpha), float(1 / slope), "modelled", basis)


def memory_copies(sizes: Sequence[int]) -> Curve:
    """Seconds of a copy within this machine's memory, by one core: the shortest of several."""
    source = np.ones(max(sizes), np.uint8)
    target = np.empty_like(source)
    seconds = [_shortest(lambda size=size: np.copyto(target[:size], source[:size]), size) for size in sizes]  # type: ignore[misc]
    return Curve(
        "memory to memory", "measured", "one core of this machine's CPU", tuple(sizes), tuple(seconds)
    )


def file_reads(folder: str | os.PathLike[str], sizes: Sequence[int], cached: bool = True) -> Curve:
    """Seconds to open a file, read it whole, and close it; from the operating system's cache, or from the disk.

    Parameters
    ----------
    cached : bool
        False asks the operating system to forget the file first. Where it cannot, or where the folder lies in memory,
        the read still comes from there.
    """
    target = bytearray(max(sizes))
    seconds = [_file_read(Path(folder) / f"{size}.bin", size, target, cached) for size in sizes]
    where = "this machine, from the cache" if cached else "this machine's disk"
    label = "file, cached" if cached else "file, from the disk"
    return Curve(label, "measured", where, tuple(sizes), tuple(seconds))


def _file_read(path: Path, size: int, target: bytearray, cached: bool) -> float:
    path.write_bytes(os.urandom(size))
    try:
        before = None if cached else partial(_forget, path)
        return _shortest(partial(_read, path, target), size, before)
    finally:
        path.unlink()


def _read(path: Path, target: bytearray) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with memoryview(target) as view:
            done = 0
            while (got := os.readv(descriptor, [view[done:]])) > 0:
                done += got
    finally:
        os.close(descriptor)


def _forget(path: Path) -> None:
    if not hasattr(os, "posix_fadvise"):
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def _shortest(action: Callable[[], object], size: int, before: Callable[[], object] | None = None) -> float:
    """The shortest of some runs; very short ones are done several times in a row, so that the clock can see them."""
    times = 1 if before else max(1, min(100, 2**18 // max(1, size)))
    found = []
    for _ in range(REPEATS):
        if before is not None:
            before()
        begin = time.perf_counter()
        for _ in range(times):
            action()
        found.append((time.perf_counter() - begin) / times)
    return min(found)
