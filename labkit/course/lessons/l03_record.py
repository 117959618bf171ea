"""Lesson 03, in the answer's own process: the objects answers work on, and the record of what they did."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.compute import feeding
from labkit.compute.device_model.recorder import device_timeline
from labkit.errors import LabkitError

CARD = "A100"
SIDE = 24
Answer = Callable[..., Any]


def pipeline(answer: Answer) -> Answer:
    """For ``answer(d, x, y, chunks, chunk_s)``."""
    _labkit_answer = answer

    def _labkit_recorded(size, chunks, chunk_s):
        from labkit.course.lessons.l03_record import record_pipeline

        return record_pipeline(_labkit_answer, size, chunks, chunk_s)

    return _labkit_recorded


def record_pipeline(answer: Answer, size: int, chunks: int, chunk_s: float) -> list[dict[str, Any]]:
    with device_timeline(CARD) as d:
        x, y = d.host("x", size), d.host("y", size, filled=False)
        answer(d, x, y, chunks, chunk_s)
    return [one.to_dict() for one in d.operations]


def training(answer: Answer) -> Answer:
    """For ``answer(d, x, losses, steps, step_s)``."""
    _labkit_answer = answer

    def _labkit_recorded(size, steps, step_s):
        from labkit.course.lessons.l03_record import record_training

        return record_training(_labkit_answer, size, steps, step_s)

    return _labkit_recorded


def record_training(answer: Answer, size: int, steps: int, step_s: float) -> list[dict[str, Any]]:
    with device_timeline(CARD) as d:
        x, losses = d.host("x", size), d.host("losses", 4 * steps, pinned=False, filled=False)
        answer(d, x, losses, steps, step_s)
    return [one.to_dict() for one in d.operations]


def feed(answer: Answer) -> Answer:
    """For ``answer(disk, sample_bytes, worker, workers)``, called once for every worker."""
    _labkit_answer = answer

    def _labkit_recorded(samples, per_shard, workers):
        from labkit.course.lessons.l03_record import record_feed

        return record_feed(_labkit_answer, samples, per_shard, workers)

    return _labkit_recorded


def record_feed(answer: Answer, samples: int, per_shard: int, workers: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="labkit-feed-") as folder:
        data = feeding.write(folder, images(samples), per_shard=per_shard)
        return [_one_worker(answer, data, worker, workers) for worker in range(workers)]


def _one_worker(answer: Answer, data: feeding.Dataset, worker: int, workers: int) -> dict[str, Any]:
    disk = data.disk()
    given = answer(disk, data.sample_bytes, worker, workers)
    if given is None:
        raise LabkitError("feed returned None: yield each sample, or return a list of them.")
    sums = [[len(sample), zlib.crc32(sample)] for sample in given]
    return {"samples": sums, "log": [[one.what, one.file, one.offset, one.bytes] for one in disk.log]}


def images(samples: int) -> np.ndarray:
    """The images of a check with so many samples, (samples, SIDE, SIDE) uint8; the same for everybody."""
    return np.random.default_rng((303, samples)).integers(0, 256, (samples, SIDE, SIDE), np.uint8)
