"""Ctrl-C, noted at once and acted upon between two messages: an exception amid one would garble the rest."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """While this context lasts, SIGINT makes ``pending`` true and ``wake`` readable, and raises nothing.

    In a thread other than the main one, where Python delivers no signals, it does nothing. An interrupt that
    nobody took is raised at the end.
    """

    def __init__(self) -> None:
        self.pending = False
        self.wake, self._bell = os.pipe()
        os.set_blocking(self._bell, False)
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        if not self.pending:
            self.pending = True
            os.write(self._bell, b"!")

    def heard(self) -> None:
        """Silence the bell; ``pending`` stays."""
        os.read(self.wake, 1)

    def raise_pending(self) -> None:
        """KeyboardInterrupt, if there was one since the last call."""
        if self.pending:
            self.pending = False
            raise KeyboardInterrupt

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        missed = self.pending and error is None
        for end in (self.wake, self._bell):
            os.close(end)
        if missed:
            raise KeyboardInterrupt
