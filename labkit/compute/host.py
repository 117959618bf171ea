"""One photograph, one process or several: what the CPU of this machine really needs, with every step timed.

The workers are processes of their own, joined by pipes: they share nothing, so pixels must travel to them and
back. That is how processes on different GPUs, and in different machines, work together too.
"""

from __future__ import annotations

import itertools
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np

from labkit.compute import child
from labkit.compute.filters import FILTERS, Filter
from labkit.compute.worker import hear, raw, read_pixels, say
from labkit.errors import LabkitError
from labkit.hardware import html

LIMIT_S = 60.0  # a crew that takes longer than this is stuck


@dataclass(frozen=True)
class Run:
    """Where the seconds of one filtered photograph went, measured on this machine's CPU.

    ``start_s`` starting the processes (Python and NumPy included), ``send_s`` copying strips to the workers,
    ``work_s`` filtering, until the slowest worker is done, ``receive_s`` copying strips back.
    ``workers`` is 0 when no process was asked: the notebook did the work itself.
    """

    filter: str
    workers: int
    pixels: int
    start_s: float
    send_s: float
    work_s: float
    receive_s: float

    @property
    def total_s(self) -> float:
        return self.start_s + self.send_s + self.work_s + self.receive_s

    @property
    def who(self) -> str:
        return {0: "no worker", 1: "1 worker"}.get(self.workers, f"{self.workers} workers")

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "total_s": self.total_s, "how": "measured", "on": "this machine's CPU"}

    def _repr_html_(self) -> str:
        return table([self])


def table(runs: Sequence[Run]) -> str:
    """HTML table of runs, one a row, milliseconds."""
    rows = []
    for run in runs:
        steps = (run.start_s, run.send_s, run.work_s, run.receive_s, run.total_s)
        rows.append([f"{run.filter}, {run.who}", *(f"{1e3 * seconds:.2f}" for seconds in steps)])
    caption = f"milliseconds for {runs[0].pixels:,} pixels, measured on this machine's CPU"
    return html.table(("", "start", "copy there", "work", "copy back", "all"), rows, caption)


def alone(filter: str, image: np.ndarray, out: np.ndarray | None = None) -> tuple[np.ndarray, Run]:
    """Filter the image in this very process: nothing to start, nothing to copy.

    ``out``, of the image's shape, receives the result and saves fetching fresh memory.
    """
    function, _ = _known(filter)
    begin = time.perf_counter()
    result = function(image, out)
    return result, Run(filter, 0, image.size, 0.0, 0.0, time.perf_counter() - begin, 0.0)


def fresh(filter: str, image: np.ndarray, workers: int) -> tuple[np.ndarray, Run]:
    """Start workers, filter one image, send the workers home: all of it on the clock (ending them
    excepted)."""
    _known(filter)
    with Workers(workers) as crew:
        result, run = crew.run(filter, image)
    return result, Run(filter, workers, image.size, crew.start_s, run.send_s, run.work_s, run.receive_s)


def best(measure: Callable[[], tuple[np.ndarray, Run]], repeats: int = 5) -> Run:
    """Repeat a measurement and keep the fastest run: other programs on the machine only ever add time."""
    return min((measure()[1] for _ in range(repeats)), key=lambda run: run.total_s)


def enlarge(image: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """An image of another size, made of copies (or of a piece) of this one; dtype float32, contiguous."""
    copies = -(-rows // image.shape[0]), -(-columns // image.shape[1])
    return np.ascontiguousarray(np.tile(image, copies)[:rows, :columns], np.float32)


class Workers:
    """A crew of worker processes that stays, so that only the first photograph pays for their start.

    >>> with Workers(2) as crew:
    ...     result, run = crew.run("denoise", image)
    """

    def __init__(self, workers: int, limit_s: float = LIMIT_S):
        if workers < 1:
            raise LabkitError(f"A crew needs at least one worker, not {workers}.")
        begin = time.perf_counter()
        self.limit_s = limit_s
        self._crew: list[subprocess.Popen[bytes]] = []
        try:
            self._crew += (_start() for _ in range(workers))
            self._within_limit(lambda: [_answer(worker) for worker in self._crew])
        except BaseException:
            self.close()
            raise
        self.start_s = time.perf_counter() - begin

    def run(self, filter: str, image: np.ndarray, out: np.ndarray | None = None) -> tuple[np.ndarray, Run]:
        """Filter an image of shape (rows, columns), float32, in strips of rows, one a worker.

        A filter that looks at neighbouring rows gets them too: each strip travels with a halo. ``out``, of
        the image's shape, receives the result and saves fetching fresh memory.
        """
        _, halo = _known(filter)
        image = np.ascontiguousarray(image, np.float32)
        strips = _strips(image.shape[0], len(self._crew), halo)
        result = np.empty_like(image) if out is None else out
        return result, self._within_limit(lambda: self._exchange(filter, image, result, strips))

    def _exchange(self, filter: str, image: np.ndarray, result: np.ndarray, strips: list[_Strip]) -> Run:
        begin = time.perf_counter()
        for worker, strip in zip(self._crew, strips, strict=True):
            pixels = image[strip.first : strip.last]
            say(_stdin(worker), filter=filter, shape=pixels.shape)
            _stdin(worker).write(raw(pixels))
            _stdin(worker).flush()
        self._all_answer()
        sent = time.perf_counter()
        self._tell_all(go=True)
        self._all_answer()
        worked = time.perf_counter()
        self._tell_all(send=True)
        for worker, strip in zip(self._crew, strips, strict=True):
            pixels = read_pixels(_stdout(worker), (strip.last - strip.first, image.shape[1]))
            result[strip.start : strip.stop] = pixels[strip.start - strip.first : strip.stop - strip.first]
        back = time.perf_counter()
        return Run(filter, len(self._crew), image.size, 0.0, sent - begin, worked - sent, back - worked)

    def _tell_all(self, **message: Any) -> None:
        for worker in self._crew:
            say(_stdin(worker), **message)

    def _all_answer(self) -> None:
        for worker in self._crew:
            _answer(worker)

    def _within_limit(self, action: Callable[[], Any]) -> Any:
        """Run one exchange; a stuck or dead worker ends it with a sentence, never with a hung notebook."""
        timer = threading.Timer(self.limit_s, self._kill)
        timer.daemon = True
        timer.start()
        try:
            return action()
        except (EOFError, BrokenPipeError, ValueError) as error:
            late = not timer.is_alive()
            self.close()
            why = f"did not answer within {self.limit_s:g} s" if late else "ended unexpectedly"
            raise LabkitError(
                f"A worker process {why}; run the cell again, with a smaller image if it repeats."
            ) from error
        finally:
            timer.cancel()

    def _kill(self) -> None:
        for worker in self._crew:
            worker.kill()

    def close(self) -> None:
        """Send the workers home; they end when their pipe closes, and are killed if they do not within 5
        s."""
        for worker in self._crew:
            for pipe in (worker.stdin, worker.stdout):
                try:
                    if pipe:
                        pipe.close()
                except BrokenPipeError:
                    pass
        for worker in self._crew:
            try:
                worker.wait(5)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
        self._crew.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True)
class _Strip:
    """Rows ``start`` to ``stop`` belong to a worker; it is sent ``first`` to ``last``, its halo included."""

    start: int
    stop: int
    first: int
    last: int


def _strips(rows: int, parts: int, halo: int) -> list[_Strip]:
    edges = [rows * part // parts for part in range(parts + 1)]
    return [
        _Strip(start, stop, max(0, start - halo), min(rows, stop + halo))
        for start, stop in itertools.pairwise(edges)
    ]


def _known(filter: str) -> tuple[Filter, int]:
    if filter not in FILTERS:
        raise LabkitError(f"There is no filter {filter!r}; there are {', '.join(FILTERS)}.")
    return FILTERS[filter]


def _start() -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    command = child.command("labkit.compute.worker")
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, env=child.environment())


def _answer(worker: subprocess.Popen[bytes]) -> dict[str, Any]:
    message = hear(_stdout(worker))
    if message is None:
        raise EOFError
    return message


def _stdin(worker: subprocess.Popen[bytes]) -> BinaryIO:
    assert worker.stdin is not None
    return worker.stdin  # type: ignore[return-value]


def _stdout(worker: subprocess.Popen[bytes]) -> BinaryIO:
    assert worker.stdout is not None
    return worker.stdout  # type: ignore[return-value]
