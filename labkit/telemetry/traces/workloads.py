"""Three runs of two workers on photographs, each held up by something else, recorded by the monitor.

``python -m labkit.telemetry.traces.workloads`` records them anew. Other programs on the machine show in the
lines of the processor, so each run waits for a quiet second, and one that was quieter than the recording that is
there takes its place.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from labkit.compute.host import Workers
from labkit.telemetry import machine, sampler
from labkit.telemetry.own import OwnMetrics
from labkit.telemetry.recording import Recording
from labkit.telemetry.recording_file import load
from labkit.telemetry.series import Reading
from labkit.telemetry.traces import FOLDER
from labkit.telemetry.traces import names as names_kept

REST_S, WORK_S = 3.0, 14.0
QUIET = 12.0  # per cent of the processor that other programs may take
ATTEMPTS, PATIENCE_S = 6, 30.0
LINK_BYTES_S = 6e6  # what the paced link carries: photographs come one by one
Jobs = list[tuple[str, int]]  # filter, and side of the image in pixels


class Recorder:
    """The monitor's sampler and a recording, without a plot."""

    def __init__(self) -> None:
        self.recording = Recording(0.5, machine=machine.described())
        self._began = time.monotonic()
        self.own = OwnMetrics()
        sampler.shared().subscribe(self, 0.5)

    def take(self, now: float, readings: list[Reading]) -> None:
        every = readings + self.own.readings()
        values = {one.series: one.value for one in every}
        self.recording.append(now - self._began, values, {one.series: one.reason for one in every})

    def stop(self) -> None:
        sampler.shared().unsubscribe(self)

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        number = self.recording.begin(name, time.monotonic() - self._began)
        yield
        self.recording.end(number, time.monotonic() - self._began)


class Crew:
    """Two workers, each with a list of photographs of its own, and what is counted of them."""

    def __init__(self, lists: tuple[Jobs, Jobs], link: bool):
        self._lists = [list(jobs) for jobs in lists]
        self._link = link
        self._busy = [0.0, 0.0]  # seconds of work so far
        self._since: list[float | None] = [None, None]
        self._done = 0
        self._received = 0
        self._until = time.monotonic() + WORK_S

    def work(self, tell: Callable[[str, float], None]) -> None:
        """Let both work until the time is over, and tell twice a second what they do."""
        with Workers(1) as one, Workers(1) as two:
            threads = [
                threading.Thread(target=self._serve, args=(number, crew))
                for number, crew in enumerate((one, two))
            ]
            for thread in threads:
                thread.start()
            before = (time.monotonic(), 0.0, 0, 0)
            while any(thread.is_alive() for thread in threads):
                time.sleep(0.5)
                before = self._tell(tell, before)

    def _tell(
        self, tell: Callable[[str, float], None], before: tuple[float, float, int, int]
    ) -> tuple[float, float, int, int]:
        now = time.monotonic()
        running = sum(now - since for since in self._since if since is not None)
        after = (now, sum(self._busy) + running, self._done, self._received)
        seconds, busy, done, received = (new - old for old, new in zip(before, after, strict=True))
        tell("workers busy", min(2.0, max(0.0, busy / seconds)))
        tell("images/s", done / seconds)
        tell("images waiting", sum(map(len, self._lists)))
        tell("received MB/s", received / seconds / 1e6)
        return after

    def _serve(self, number: int, crew: Workers) -> None:
        jobs = self._lists[number]
        while jobs and time.monotonic() < self._until:
            filter, side = jobs[0]
            image = np.full((side, side), 0.5, np.float32)
            if self._link:
                self._fetch(image.nbytes)
            jobs.pop(0)
            self._since[number] = begin = time.monotonic()
            crew.run(filter, image)
            self._since[number] = None
            self._busy[number] += time.monotonic() - begin
            self._done += 1

    def _fetch(self, size: int) -> None:
        """Bytes through a socket of this machine, no faster than the link."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            left = socket.create_connection(server.getsockname())
            right = server.accept()[0]
        with left, right:
            piece = bytes(32768)
            begin, got = time.monotonic(), 0
            while got < size:
                left.sendall(piece)
                seen = 0
                while seen < len(piece):
                    seen += len(right.recv(len(piece)))
                got += seen
                self._received += seen
                time.sleep(max(0.0, begin + got / LINK_BYTES_S * 2 - time.monotonic()))  # two share the link


RUNS: dict[str, tuple[tuple[Jobs, Jobs], bool]] = {
    "run-1": (([("denoise", 1024)] * 400, [("denoise", 1024)] * 400), False),
    "run-2": (([("denoise", 512)] * 400, [("denoise", 512)] * 400), True),
    "run-3": (([("denoise", 1024)] * 400, [("denoise", 1024)] * 6), False),
}


def record(name: str) -> Recording:
    """One run: rest, work, rest."""
    lists, link = RUNS[name]
    recorder = Recorder()
    time.sleep(REST_S)
    with recorder.span("work"):
        Crew(lists, link).work(lambda key, value: recorder.own.set(key, value, "measured"))
    time.sleep(REST_S)
    recorder.stop()
    return recorder.recording


def disturbance(recording: Recording) -> float:
    """The share of the processor that other programs took before and after the work, in per cent."""
    times, _ = recording.samples()
    (work,) = recording.spans
    resting = (times < work.start - 0.5) | (times > (work.end or 0.0) + 1.0)
    return float(np.nanmean(recording.values("cpu")[resting]))


def main(names: list[str]) -> int:
    """Record the named runs (all by default): the best of several, until other programs were quiet."""
    import psutil

    for name in names or RUNS:
        best = disturbance(load(FOLDER / f"{name}.npz")) if name in names_kept() else 100.0
        for _ in range(ATTEMPTS):
            limit = time.monotonic() + PATIENCE_S
            while psutil.cpu_percent(1.0) > QUIET and time.monotonic() < limit:
                pass
            recording = record(name)
            others = disturbance(recording)
            print(f"{name}: other programs took {others:.0f} % of the processor", flush=True)
            if others < best:
                best = others
                recording.save(FOLDER / f"{name}.npz")
            if best <= QUIET:
                break
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
