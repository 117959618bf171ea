"""The keeper: a small process that stands between the notebook and an answer, and outlives neither.

It forks the process that runs the answer, gives it so many seconds and so much resident memory, keeps the
first and last words of what it prints, and ends whatever it started: on Linux the keeper adopts every orphan
below it, so even a grandchild that left for a session of its own is found. When the notebook's kernel dies,
the pipe on standard input closes, and the keeper ends all and itself. It is run by path and uses the standard
library and psutil alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import signal
import sys
import time
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_POLL_S = 0.02
_FAMILY_POLL_S = 0.2  # descendants are measured less often than the worker itself
_MOST_PROCESSES = 100  # more than any answer needs, and few enough to be ended at once
_LARGEST_FILE = 512 * 2**20  # what one file may grow to, so that an endless loop does not fill the disk
_END_S = 5.0


def main(folder: str) -> None:
    """Run the job in ``folder`` and print one JSON line about how it ended."""
    with open(os.path.join(folder, "keeper.json"), encoding="utf-8") as file:
        settings = json.load(file)
    sys.path[:] = settings["path"]
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    output, printed = os.pipe()
    started, start = os.pipe()
    awake, wake = os.pipe()
    os.set_blocking(wake, False)
    keeper = os.getpid()
    worker = os.fork()
    if worker == 0:
        _become_worker(folder, keeper, printed, start)
    os.close(printed)
    os.close(start)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    report = Watch(worker, output, started, awake, settings).run()
    sys.stdout.write(json.dumps(report))
    sys.stdout.flush()


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _become_worker(folder: str, keeper: int, printed: int, start: int) -> None:
    """Turn the forked half into the worker: a session of its own, no descriptor of the keeper's."""
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for target, source in ((0, nothing), (1, printed), (2, printed)):
            os.dup2(source, target)
        os.dup2(start, 3)
        os.closerange(4, 64)
        _limit_files()
        sys.argv[:] = [""]
        from labkit.course.sandbox import worker

        worker.main(folder, 3)
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(70)
    finally:
        os._exit(0)


def _limit_files() -> None:
    """No file without end, and none with the memory of an answer that crashed."""
    import resource

    for what, most in ((resource.RLIMIT_FSIZE, _LARGEST_FILE), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(what)[1]
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


class Printed:
    """The first and the last bytes of a stream, and how many there were in all."""

    def __init__(self, keep: int) -> None:
        self.keep = keep
        self.head = b""
        self.tail = b""
        self.total = 0

    def add(self, piece: bytes) -> None:
        self.total += len(piece)
        room = self.keep - len(self.head)
        self.head += piece[:room]
        self.tail = (self.tail + piece[room:])[-self.keep :]

    def text(self) -> str:
        """What is kept, with a note of what is left out between the two ends."""
        left_out = self.total - len(self.head) - len(self.tail)
        gap = f"\n[... {left_out:,} bytes left out ...]\n".encode() if left_out else b""
        return (self.head + gap + self.tail).decode("utf-8", "replace")


class Watch:
    """One worker, watched until it and all it started have ended."""

    def __init__(self, worker: int, output: int, started: int, awake: int, settings: dict[str, Any]) -> None:
        import psutil  # after the fork, so that the worker does not wait for it

        self.psutil = psutil
        self.worker = worker
        self.process = psutil.Process(worker)
        self.parent = os.getppid()
        self.settings = settings
        self.printed = Printed(settings["printed"])
        self.end = ""
        self.peak = 0
        self.began = 0.0
        self.deadline = time.monotonic() + settings["start_s"]  # until the answer's own time begins
        self.next_family = 0.0
        self.selector = selectors.DefaultSelector()
        for source, action in (
            (0, self._lifeline),
            (output, self._output),
            (started, self._started),
            (awake, _drain),
        ):
            os.set_blocking(source, False)
            self.selector.register(source, selectors.EVENT_READ, action)
        self.output = output

    def run(self) -> dict[str, Any]:
        status = None
        while status is None:
            self._serve(_POLL_S)
            self._judge()
            ended, code = os.waitpid(self.worker, os.WNOHANG)
            status = os.waitstatus_to_exitcode(code) if ended else None
        seconds = time.monotonic() - self.began if self.began else 0.0
        self._end_all()
        self._last_words()
        return {
            "end": self.end or "exited",
            "status": status,
            "printed": self.printed.text(),
            "printed_bytes": self.printed.total,
            "peak": self.peak,
            "seconds": seconds,
            "started": bool(self.began),
        }

    def _serve(self, timeout: float) -> None:
        for key, _ in self.selector.select(timeout):
            if not key.data(key.fd):
                self.selector.unregister(key.fd)

    def _lifeline(self, source: int) -> bool:
        """Standard input, where the notebook never writes: an event means that the notebook's end closed."""
        self._stop("abandoned")
        return False

    def _output(self, source: int) -> bool:
        piece = os.read(source, 1 << 16)
        self.printed.add(piece)
        return bool(piece)

    def _started(self, source: int) -> bool:
        if os.read(source, 1):
            self.began = time.monotonic()
            self.deadline = self.began + self.settings["seconds"]
        return False

    def _judge(self) -> None:
        """End the worker when its time or its memory is used up."""
        if self.end:
            return
        if os.getppid() != self.parent:
            self._stop("abandoned")
        if time.monotonic() > self.deadline:
            self._stop("timeout")
        elif len(_below(os.getpid(), _MOST_PROCESSES)) > _MOST_PROCESSES:
            self._stop("processes")
        elif self._resident() > self.settings["memory"]:
            self._stop("memory")

    def _resident(self) -> int:
        """Resident bytes of the worker, from time to time with all its descendants."""
        now = time.monotonic()
        try:
            size = self.process.memory_info().rss
            if now >= self.next_family:
                self.next_family = now + _FAMILY_POLL_S
                size += sum(_rss(child, self.psutil) for child in self._family() if child != self.worker)
        except self.psutil.Error:
            return 0
        self.peak = max(self.peak, size)
        return int(size)

    def _family(self) -> list[int]:
        """All processes below the keeper; where the system has no list of children, every process is looked at."""
        if _LISTED:
            return _below(os.getpid(), 10 * _MOST_PROCESSES)
        return [child.pid for child in self.psutil.Process().children(recursive=True)]

    def _stop(self, why: str) -> None:
        self.end = self.end or why
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.worker, signal.SIGKILL)

    def _end_all(self) -> None:
        """End and reap everything the worker left; nothing to do, and no search, when it left nothing.

        A process that forks on and on is a step ahead of any list; ending parents first brings their children here,
        and without a pause the lists win.
        """
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.worker, signal.SIGKILL)
        give_up = time.monotonic() + _END_S
        while _reap() and time.monotonic() < give_up:
            for child in self._family():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)

    def _last_words(self) -> None:
        """Read what is still in the pipe, which holds a megabyte at most."""
        with contextlib.suppress(BlockingIOError):
            for _ in range(64):
                self._output(self.output)


_LISTED = os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def _below(process: int, most: int) -> list[int]:
    """Descendants of ``process``, parents first, and hardly more than ``most``; empty where none are listed."""
    found = _children(process) if _LISTED else []
    for child in found:  # grows on the way
        if len(found) > most:
            break
        found += _children(child)
    return found


def _children(process: int) -> list[int]:
    try:
        lists = [(task / "children").read_text() for task in Path(f"/proc/{process}/task").iterdir()]
    except OSError:  # it has ended meanwhile
        return []
    return [int(number) for text in lists for number in text.split()]


def _rss(process: int, psutil: Any) -> int:
    try:
        return int(psutil.Process(process).memory_info().rss)
    except psutil.Error:
        return 0


def _drain(source: int) -> bool:
    return bool(os.read(source, 4096))


def _reap() -> bool:
    """Collect children that have ended; True while one is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1])
