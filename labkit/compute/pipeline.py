"""From files to batches, and who waits for whom: preparation on the CPU, prefetching, and a consumer.

The consumer stands in for a GPU: each batch keeps it for a given time. What is measured is how long it waits for the
next batch.
"""

from __future__ import annotations

import multiprocessing
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from labkit.compute.feeding import HEADER, LOOSE, Counts, Dataset, loose, sharded
from labkit.errors import LabkitError
from labkit.hardware.units import show_time

HOW = ("as needed", "thread", "process")
_PATIENCE_S = 60.0


@dataclass(frozen=True, repr=False)
class Fed:
    """One pass over the samples.

    Attributes
    ----------
    source, prefetch : str
        ``"loose"`` or ``"shards"``; ``"as needed"``, ``"thread"`` or ``"process"``.
    seconds, waited_s : float
        The whole pass, and how much of it the consumer waited for data: measured on this machine.
    counts : Counts
        Opens, reads and bytes: exact.
    """

    source: str
    prefetch: str
    samples: int
    seconds: float
    waited_s: float
    counts: Counts

    @property
    def samples_per_s(self) -> float:
        return self.samples / self.seconds

    @property
    def waited(self) -> float:
        """The share of the time that the consumer waited for data."""
        return self.waited_s / self.seconds

    def __repr__(self) -> str:
        return (
            f"Fed({self.source}, {self.prefetch}: {self.samples} samples in {show_time(self.seconds)}, "
            f"{self.waited:.0%} waiting, measured; {self.counts!r})"
        )

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "samples_per_s": self.samples_per_s, "waited": self.waited, "how": "measured"}


def prepare(
    samples: Iterable[bytes], shape: tuple[int, int], batch: int, effort: int = 1
) -> Iterator[np.ndarray]:
    """Batches of shape (batch, rows, columns), float32, mean 0 and deviation 1; the last one may be smaller.

    ``effort`` smooths each batch so many times: preparation that keeps the CPU busy.
    """
    gathered: list[bytes] = []
    for sample in samples:
        gathered.append(sample)
        if len(gathered) == batch:
            yield _prepared(gathered, shape, effort)
            gathered = []
    if gathered:
        yield _prepared(gathered, shape, effort)


def _prepared(samples: list[bytes], shape: tuple[int, int], effort: int) -> np.ndarray:
    pixels = np.stack([np.frombuffer(sample, np.uint8, offset=HEADER).reshape(shape) for sample in samples])
    images = pixels.astype(np.float32) / 255
    for _ in range(effort):
        images += np.roll(images, 1, axis=1) + np.roll(images, 1, axis=2)
        images /= 3
    images -= images.mean(axis=(1, 2), keepdims=True)
    images /= images.std(axis=(1, 2), keepdims=True) + np.float32(1e-6)
    return images


def feed(
    data: Dataset,
    source: str = "shards",
    prefetch: str = "as needed",
    batch: int = 64,
    step_s: float = 2e-3,
    effort: int = 1,
    depth: int = 4,
    each: Callable[[int], object] | None = None,
) -> Fed:
    """Read all samples once, prepare them, and give them to a consumer that takes ``step_s`` seconds a batch.

    Parameters
    ----------
    prefetch : {"as needed", "thread", "process"}
        Read and prepare when the consumer asks; or ahead of it, ``depth`` batches at most, in a thread or a process.
    each : callable, optional
        Called with the number of samples done after every batch.
    """
    if source not in (LOOSE, "shards") or prefetch not in HOW:
        raise LabkitError(f"Samples come from 'loose' or 'shards', prefetched {', '.join(map(repr, HOW))}.")
    make = (_by_thread if prefetch == "thread" else _by_process) if prefetch != HOW[0] else _as_needed
    begin = time.perf_counter()
    waited, done, counts = 0.0, 0, Counts(0, 0, 0)
    batches = make(data, source, batch, effort, depth)
    while True:
        asked = time.perf_counter()
        found = next(batches)
        waited += time.perf_counter() - asked
        if isinstance(found, Counts):
            counts = found
            break
        time.sleep(step_s)
        done += len(found)
        if each is not None:
            each(done)
    return Fed(source, prefetch, done, time.perf_counter() - begin, waited, counts)


def _as_needed(
    data: Dataset, source: str, batch: int, effort: int, depth: int
) -> Iterator[np.ndarray | Counts]:
    """Batches one by one, and at the end the counts."""
    disk = data.disk()
    read = loose if source == LOOSE else sharded
    yield from prepare(read(disk, data.sample_bytes), data.shape, batch, effort)
    yield disk.counts


def _by_thread(
    data: Dataset, source: str, batch: int, effort: int, depth: int
) -> Iterator[np.ndarray | Counts]:
    ready: queue.Queue[Any] = queue.Queue(depth)
    arguments = (ready, data, source, batch, effort, depth)
    thread = threading.Thread(target=_fill, args=arguments, daemon=True)
    thread.start()
    yield from _drain(ready)
    thread.join()


def _by_process(
    data: Dataset, source: str, batch: int, effort: int, depth: int
) -> Iterator[np.ndarray | Counts]:
    context = multiprocessing.get_context("spawn")
    ready = context.Queue(depth)
    process = context.Process(target=_fill, args=(ready, data, source, batch, effort, depth), daemon=True)
    process.start()
    try:
        yield from _drain(ready)
    finally:
        process.kill() if process.is_alive() else None
        process.join()


def _fill(ready: Any, data: Dataset, source: str, batch: int, effort: int, depth: int) -> None:
    """Read and prepare ahead; the queue blocks when ``depth`` batches lie ready."""
    try:
        for found in _as_needed(data, source, batch, effort, depth):
            ready.put(found)
    except Exception as error:
        ready.put(LabkitError(f"Reading ahead failed: {type(error).__name__}: {error}"))


def _drain(ready: Any) -> Iterator[np.ndarray | Counts]:
    while True:
        found = ready.get(timeout=_PATIENCE_S)
        if isinstance(found, Exception):
            raise found
        yield found
        if isinstance(found, Counts):
            return
