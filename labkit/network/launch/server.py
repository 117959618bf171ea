"""The fork server: torch imported once, every rank forked from it in milliseconds.

It adopts every orphan below it, so that a grandchild, or a rank that left for a group of its own, is found
and ended too. When the notebook's kernel goes, however it goes, the socket between them closes; the server
then kills all that is left, removes its folder, and exits. It never touches a GPU: a process that has may
not be forked.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from typing import Any

from labkit.network.launch import family, wire
from labkit.network.launch.signals import STACK

IDLE_S = 600.0  # an idle server keeps some 100 MB; the next run starts another
_PR_SET_CHILD_SUBREAPER = 36
_PRELOAD = (
    "numpy",
    "cloudpickle",
    "torch",
    "torch.distributed",
    "torch.profiler",
    "torch.nn.functional",
    "labkit.network.collectives",
    "labkit.network.launch.worker",
)
_GPU_FILE = "/dev/nvidiactl"
# What every rank's first optimizer would import, for a second. It asks which GPUs there are, and who has asked may
# not be forked: where there is one, ranks import it themselves.
_WITHOUT_GPU = ("torch._dynamo",)


def main(kind: type[Server] | None = None, preload: tuple[str, ...] = ()) -> None:
    """``python -m labkit.network.launch.server FD``: serve the kernel at the other end of a socket."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the kernel's to handle, which then tells us
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(STACK, signal.SIG_IGN)  # also in ranks, until they are ready for it
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    folder = tempfile.mkdtemp(prefix="labkit-ranks-")  # readable by its owner alone
    try:
        hello = _preload(folder, *preload)
        wire.send(channel, {**hello, "folder": folder})
        if "error" not in hello:
            (kind or Server)(channel).serve()
    finally:
        family.end_descendants()
        shutil.rmtree(folder, ignore_errors=True)


def _preload(folder: str, *more: str) -> dict[str, Any]:
    try:
        with _compiler_folder(folder):
            for name in (*_PRELOAD, *(() if os.path.exists(_GPU_FILE) else _WITHOUT_GPU), *more):
                importlib.import_module(name)
    except ImportError as error:
        return {"error": f"{type(error).__name__}: {error}"}
    import torch

    warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
    gc.collect()
    gc.freeze()  # what is here already is never collected in a rank, so its pages stay shared
    return {"torch": torch.__version__, "nccl": torch.distributed.is_nccl_available()}


@contextlib.contextmanager
def _compiler_folder(folder: str) -> Iterator[None]:
    """torch's compiler makes a folder when it is imported, and this one goes with the server."""
    name = "TORCHINDUCTOR_CACHE_DIR"
    before = os.environ.get(name)
    os.environ.setdefault(name, folder)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)


class Server:
    """Forks ranks, passes signals on, tells who has ended."""

    def __init__(self, channel: socket.socket):
        self.channel = channel
        self.ranks: dict[int, tuple[int, int]] = {}  # process -> its run and rank, those alive
        self.selector = selectors.DefaultSelector()
        self.awake, self.wake = os.pipe()
        for end in (self.awake, self.wake):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wake, warn_on_full_buffer=False)
        self.selector.register(channel, selectors.EVENT_READ)
        self.selector.register(self.awake, selectors.EVENT_READ)
        self.idle_s = IDLE_S

    def serve(self) -> None:
        """Until the kernel is gone, or nothing has been asked for a long time."""
        actions = {"start": self._start, "signal": self._signal, "end": self._end, "rest": self._rest}
        while True:
            ready = {key.fileobj for key, _ in self.selector.select(None if self.ranks else self.idle_s)}
            if not ready:
                return
            if self.awake in ready:
                os.read(self.awake, 4096)
                self._reap()
            if self.channel in ready:
                message, files = wire.receive(self.channel)
                if message is None:
                    return
                actions[message["do"]](message, files)

    def _tell(self, **message: Any) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            wire.send(self.channel, message)

    def _start(self, message: dict[str, Any], files: list[int]) -> None:
        server = os.getpid()
        process = os.fork()
        if process == 0:
            self._become_rank(message, files, server)
        self.ranks[process] = message["run"], message["rank"]
        for file in files:
            os.close(file)
        self._tell(run=message["run"], started=message["rank"], process=process)

    def _become_rank(self, message: dict[str, Any], files: list[int], server: int) -> None:
        from labkit.network.launch import worker

        try:
            self._shed()
            worker.main(message, files, server)
        finally:
            os._exit(70)  # reached only if the worker could not even report

    def _shed(self) -> None:
        """In a fresh child: leave behind what makes a server."""
        signal.set_wakeup_fd(-1)
        for number, action in (
            (signal.SIGCHLD, signal.SIG_DFL),
            (signal.SIGTERM, signal.SIG_DFL),
            (signal.SIGINT, signal.default_int_handler),
        ):
            signal.signal(number, action)
        self.selector.close()
        for end in (self.awake, self.wake, self.channel.detach()):
            os.close(end)

    def _signal(self, message: dict[str, Any], files: list[int]) -> None:
        only = message.get("ranks")
        for process, (_, rank) in self.ranks.items():
            if only is None or rank in only:
                family.signal_group(process, message["signal"], group=message.get("group", True))

    def _end(self, message: dict[str, Any], files: list[int]) -> None:
        """Nothing below this process survives."""
        for process in self.ranks:
            family.signal_group(process, signal.SIGKILL)
        limit = time.monotonic() + 3.0
        while family.kill_descendants() and time.monotonic() < limit:
            self._reap()
            time.sleep(0.002)
        self._reap()
        self._tell(run=message["run"], ended=True)

    def _rest(self, message: dict[str, Any], files: list[int]) -> None:
        """From now on, leave after so many seconds without a wish."""
        self.idle_s = message["seconds"]

    def _reap(self) -> None:
        while True:
            try:
                process, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not process:
                return
            run, rank = self.ranks.pop(process, (None, None))
            if rank is not None:
                code = os.waitstatus_to_exitcode(status)
                self._tell(run=run, exited=rank, status=code, peak=usage.ru_maxrss * 1024)


if __name__ == "__main__":
    main()
