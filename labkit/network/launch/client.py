"""The notebook's end of the fork server: started once, reused by every run, gone with the kernel."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any

from labkit.compute import child
from labkit.errors import LabkitError
from labkit.network.launch import wire

START_S = 90.0  # importing torch from a cold disk
_MODULE = "labkit.network.launch.server"


class Gone(LabkitError):
    """The server has ended: by itself after a long rest, or because something killed it."""


class ForkServer:
    """One server process and the socket to it.

    Parameters
    ----------
    command : sequence of str, optional
        What starts it; the number of its end of the socket is added.
    files : sequence of int
        Descriptors that the command needs besides.
    environment : mapping, optional
        This process's own without it.
    """

    def __init__(
        self,
        command: Sequence[str] | None = None,
        files: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        for package in ("torch", "cloudpickle"):
            if importlib.util.find_spec(package) is None:
                raise LabkitError(f"Ranks need {package}: pip install 'gpu-labkit[train]'.")
        self.channel, theirs = wire.pair()
        self._words: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by forget)
        self.hello: dict[str, Any] | None = None
        with theirs:
            self.process = subprocess.Popen(
                [*(command or child.command(_MODULE)), str(theirs.fileno())],
                pass_fds=[theirs.fileno(), *files],
                stdin=subprocess.DEVNULL,
                stdout=self._words,
                stderr=self._words,
                env=environment or child.environment(),
                start_new_session=True,  # Ctrl-C reaches the notebook, which decides
            )

    @property
    def alive(self) -> bool:
        """Whether it can be asked for ranks: its end of the socket closes before the process is gone."""
        if self.process.poll() is not None:
            return False
        unread = select.select([self.channel], [], [], 0)[0]
        return not unread or bool(self.channel.recv(1, socket.MSG_PEEK))

    def wait_ready(self) -> dict[str, Any]:
        """What the server said of itself, waiting until torch is imported."""
        if self.hello is None:
            if not select.select([self.channel], [], [], START_S)[0]:
                raise LabkitError(f"Importing PyTorch took more than {START_S:g} s: is this machine busy?")
            hello, _ = wire.receive(self.channel)
            if hello is None:
                raise LabkitError(f"The process that starts ranks ended at once: {self._last_words()}")
            if "error" in hello:
                raise LabkitError(f"PyTorch cannot be imported ({hello['error']}): labkit doctor tells more.")
            self.hello = hello
        return self.hello

    def _last_words(self) -> str:
        self._words.seek(0)
        lines = self._words.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"exit status {self.process.wait(5)}"

    def tell(self, message: dict[str, Any], files: list[int] | tuple[int, ...] = ()) -> None:
        try:
            wire.send(self.channel, message, files)
        except OSError:
            raise Gone("The process that starts ranks has ended: run the cell again.") from None

    def forget(self) -> None:
        """Close this process's copy of what belongs to its parent."""
        self.channel.close()
        self._words.close()

    def stop(self) -> None:
        """End the server and everything below it, and remove its folder."""
        self.forget()  # which the server notices
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.hello is not None:  # already gone, unless the server was killed
            shutil.rmtree(self.hello["folder"], ignore_errors=True)


_server: ForkServer | None = None
_lock = threading.Lock()


def server() -> ForkServer:
    """The server of this process; a new one when the last has ended."""
    global _server
    with _lock:
        if _server is not None and not _server.alive:
            _server.stop()
            _server = None
        if _server is None:
            _server = ForkServer()
        return _server


def stop() -> None:
    """End the server, for those who want its memory back; the next run starts another."""
    global _server
    with _lock:
        if _server is not None:
            _server.stop()
            _server = None


def _after_fork() -> None:
    """A forked child must not keep the parent's server alive by holding its socket."""
    global _server, _lock
    _lock = threading.Lock()
    if _server is not None:
        _server.forget()
        _server = None


atexit.register(stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def send_signal(to: ForkServer, number: int, ranks: list[int] | None = None, group: bool = True) -> None:
    """Have the server signal ranks (all of them by default), each with its process group."""
    with contextlib.suppress(Gone):
        to.tell({"do": "signal", "signal": int(number), "ranks": ranks, "group": group})


def end_ranks(to: ForkServer, run: int, limit_s: float = 4.0) -> None:
    """Have the server kill whatever is left below it, and wait until it has."""
    with contextlib.suppress(Gone):
        to.tell({"do": "end", "run": run})
        limit = time.monotonic() + limit_s
        while (left := limit - time.monotonic()) > 0:
            if not select.select([to.channel], [], [], left)[0]:
                break
            message, _ = wire.receive(to.channel)
            if message is None or (message.get("ended") and message["run"] == run):
                return
        os.killpg(to.process.pid, signal.SIGKILL)  # a server that no longer answers takes its ranks along
