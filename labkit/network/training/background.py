"""Collectives that go on behind the computation: one thread that does them, one after the other.

All ranks must talk in one order, so while some are under way the rank's own sends and receives wait for them
(`labkit.network.endpoint` asks): whatever a program does next, no two conversations cross.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from labkit.network.p2p import endpoint


class Handle:
    """A collective that has been started."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._error: BaseException | None = None

    def done(self) -> None:
        """Until it has ended, well or not."""
        if not self._done.is_set():
            with endpoint().noting("wait"):
                self._done.wait()

    def wait(self) -> None:
        """Until its result is there; what went wrong in it is raised here."""
        self.done()
        if self._error is not None:
            raise self._error

    def _finish(self, error: BaseException | None) -> None:
        self._error = error
        self._done.set()


class Background:
    """``start(ring_all_reduce, tensor)`` returns at once; ``handle.wait()`` when the result is needed.

    A rank has one, `background`: two would talk across each other. With NCCL, torch's own asynchronous
    collectives are what to use: they run on a stream of their own.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Handle, Callable[..., Any], tuple[Any, ...]]]
        self._jobs = queue.SimpleQueue()
        self._last: Handle | None = None
        here: Any = endpoint()
        self._thread = threading.Thread(
            target=self._work, args=(here,), name="labkit-background", daemon=True
        )
        self._thread.start()
        here.behind = self

    def start(self, collective: Callable[..., Any], *args: Any) -> Handle:
        """Queue a collective behind those already started; all ranks start the same ones in the same order."""
        handle = self._last = Handle()
        self._jobs.put((handle, collective, args))
        return handle

    def give_way(self) -> None:
        """Return when everything started so far is done; at once for the thread that does it."""
        last = self._last
        if last is not None and threading.current_thread() is not self._thread:
            last.done()

    def _work(self, here: Any) -> None:
        while True:
            handle, collective, args = self._jobs.get()
            began = time.time_ns()
            try:
                collective(*args)
            except BaseException as error:
                handle._finish(error)
            else:
                if getattr(here, "tracing", False):
                    here.flights.append((f"labkit:{collective.__name__}", began, time.time_ns()))
                handle._finish(None)


@cache
def background() -> Background:
    """The one of this rank."""
    return Background()


class StreamHandle:
    """torch's own asynchronous work, to be waited for like a `Handle`."""

    def __init__(self, work: Any):
        self._work = work

    def wait(self) -> None:
        self._work.wait()
