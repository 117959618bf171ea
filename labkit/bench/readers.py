"""How fast pasted reports are read, diagnosis included: MB of text a second, for each kind of large log."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable

from labkit.bench import Figure
from labkit.errors import LabkitError
from labkit.hardware.diagnosis import diagnose

MB = 1_000_000


def figures(quick: bool) -> Iterable[Figure]:
    """An NCCL log, a sweep of nccl-tests, a training log that is no report at all, one endless line."""
    size, repeats = (MB, 1) if quick else (8 * MB, 3)
    for name, make, expected in (
        ("NCCL log of 64 ranks", nccl_log, "nccl_log"),
        ("nccl-tests, run after run", nccl_tests, "nccl_tests"),
        ("training log with an error in it", training_log, "python_error"),
        ("one line without end", endless, None),
    ):
        text = make(size)
        rate = statistics.median(_rate(text, expected) for _ in range(repeats))
        yield Figure(
            f"readers: {name}", rate, "MB/s", "at least", 1.0, f"{len(text) / MB:.0f} MB, median of {repeats}"
        )


def _rate(text: str, expected: str | None) -> float:
    start = time.perf_counter()
    reading = diagnose(text)
    seconds = time.perf_counter() - start
    kinds = {report.kind for report in reading.reports}
    if expected and expected not in kinds:
        raise LabkitError(
            f"The text holds a {expected}, and only {sorted(kinds)} were read: the time means nothing."
        )
    return len(text) / MB / seconds


def _grow(size: int, line: Callable[[int], str]) -> str:
    parts, length, i = [], 0, 0
    while length < size:
        parts.append(line(i))
        length += len(parts[-1]) + 1
        i += 1
    return "\n".join(parts) + "\n"


def nccl_log(size: int) -> str:
    """Lines as 64 ranks on 8 hosts write them, in turns."""

    def line(i: int) -> str:
        rank, channel = i % 64, i // 64 % 24
        head = f"node-{rank // 8}:{4000 + rank}:{5000 + rank} [{rank % 8}] NCCL INFO"
        if i % 7 == 3:
            return f"{head} Trees [0] {rank + 1}/-1/-1->{rank}->{rank - 1} [1] {rank + 1}/-1/-1->{rank}->{rank - 1}"
        way = "P2P/CUMEM" if rank % 8 < 7 else "NET/IB/3/GDRDMA"
        return f"{head} Channel {channel:02d}/0 : {rank}[{rank % 8}] -> {(rank + 1) % 64}[{(rank + 1) % 8}] via {way}"

    return _grow(size, line)


def nccl_tests(size: int) -> str:
    """Run after run of a sweep over 28 sizes."""

    def line(i: int) -> str:
        step = i % 30
        if step == 0:
            return (
                "# nThread 1 nGpus 8 minBytes 8 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20"
            )
        if step == 1:
            return "#       size         count      type   redop    root     time   algbw   busbw #wrong"
        value = 2 ** (step + 1)
        return (
            f"{value:12d} {value // 4:12d}     float     sum      -1   {20 + value / 2e5:9.2f}    1.50    2.62   "
            "   0"
        )

    return _grow(size, line)


def training_log(size: int) -> str:
    """Steps and losses, with an error now and then."""

    def line(i: int) -> str:
        if i % 5000 == 17:
            return "RuntimeError: CUDA error: an illegal memory access was encountered"
        return f"2025-01-01 10:00:00,123 INFO step {i} loss {1 / (i + 1):.5f} lr 3.0e-4 tokens/s 181223 grad norm 0.71"

    return _grow(size, line)


def endless(size: int) -> str:
    """No line end at all."""
    return "[0] value 0x1234 " * (size // 17)
