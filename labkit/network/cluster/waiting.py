"""What is to happen to a cluster while something else runs on it: after a while, or once something is true."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

from labkit.errors import LabkitError

_LOOK_S = 0.01


class Waiting:
    """A thread that waits for its moment; `cancel` ends it before."""

    def __init__(
        self, pause_s: float, ready: Callable[[], bool], action: Callable[..., Any], args: Sequence[Any]
    ):
        self._pause_s, self._ready, self._action, self._args = pause_s, ready, action, args
        self._cancelled = threading.Event()
        threading.Thread(target=self._wait, daemon=True).start()

    def cancel(self) -> None:
        self._cancelled.set()

    def _wait(self) -> None:
        while not self._cancelled.wait(self._pause_s):
            if self._ready():
                with contextlib.suppress(LabkitError, OSError):  # a cluster that has gone by then is no error
                    self._action(*self._args)
                return


def after(seconds: float, action: Callable[..., Any], args: Sequence[Any]) -> Waiting:
    """Do it so many seconds from now."""
    return Waiting(seconds, lambda: True, action, args)


def when(ready: Callable[[], bool], action: Callable[..., Any], args: Sequence[Any]) -> Waiting:
    """Do it once ``ready()`` is true, which is asked a hundred times a second."""
    return Waiting(_LOOK_S, ready, action, args)
