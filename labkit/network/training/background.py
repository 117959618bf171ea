"""Collectives that go on behind the computation: one thread that does them, one after the other.

While one is under way, the rank's other communication has to wait for it: all ranks must talk in one order.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from labkit.network.p2p import endpoint


class Handle:
    """A collective that has been started."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._error: BaseException | None = None

    def wait(self) -> None:
        """Until its result is there; what went wrong in it is raised here."""
        if not self._done.is_set():
            with endpoint().noting("wait"):
                self._done.wait()
        if self._error is not None:
            raise self._error

    def done(self) -> bool:
        return self._done.is_set()

    def _finish(self, error: BaseException | None) -> None:
        self._error = error
        self._done.set()


class Background:
    """``start(ring_all_reduce, tensor)`` returns at once; ``handle.wait()`` when the result is needed.

    With NCCL the collective is started on a stream of its own instead, by the thread that calls.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Handle, Callable[..., Any], tuple[Any, ...]] | None]
        self._jobs = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self, collective: Callable[..., Any], *args: Any) -> Handle:
        """Queue a collective behind those already started; all ranks start the same ones in the same order."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="labkit-background", daemon=True)
            self._thread.start()
        handle = Handle()
        self._jobs.put((handle, collective, args))
        return handle

    def close(self) -> None:
        """End the thread, after what has been started."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        here: Any = endpoint()
        while (job := self._jobs.get()) is not None:
            handle, collective, args = job
            began = time.time_ns()
            try:
                collective(*args)
            except BaseException as error:
                handle._finish(error)
            else:
                if getattr(here, "tracing", False):
                    here.flights.append((f"labkit:{collective.__name__}", began, time.time_ns()))
                handle._finish(None)


class StreamHandle:
    """torch's own asynchronous work, with the division of labour of `Handle`."""

    def __init__(self, work: Any):
        self._work = work

    def wait(self) -> None:
        self._work.wait()

    def done(self) -> bool:
        return bool(self._work.is_completed())
