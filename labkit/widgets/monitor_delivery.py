"""When samples may be sent to the live plot: only while somebody is known to look.

A Jupyter server keeps every message for a closed browser tab, without bound. So the view acknowledges what it
draws, and without an acknowledgement for 30 s sending stops until a view comes back. Acknowledgements travel
the same way as cells: while a long cell runs the kernel cannot read them, and that time must not count.
"""

from __future__ import annotations

import time
from typing import Any

SILENCE = 30.0  # seconds without an acknowledgement that the kernel could have read
BUSY_LIMIT = 1800.0  # seconds without one, whatever the kernel was doing: some 4 MB at two samples a second


class Delivery:
    """The rule, without the messages. All times are ``time.monotonic()``."""

    def __init__(self, now: float):
        self._last = now
        self._silent = 0.0
        self._unheard = 0.0

    def heard(self) -> bool:
        """A view has acknowledged or asked. True when sending was paused, so that it missed samples."""
        paused = self.paused
        self._silent = self._unheard = 0.0
        return paused

    def pass_time(self, now: float, kernel_answers: bool) -> None:
        """Count the time since the last call, as silence if the kernel could have read a message in it."""
        elapsed, self._last = max(0.0, now - self._last), now
        if self.paused:
            return  # or the pause itself would count against the view that ends it
        self._unheard += elapsed
        if kernel_answers:
            self._silent += elapsed

    @property
    def paused(self) -> bool:
        return self._silent >= SILENCE or self._unheard >= BUSY_LIMIT

    @property
    def doubtful(self) -> bool:
        """Whether an acknowledgement is late enough to ask if the kernel is busy."""
        return self._unheard >= SILENCE / 2


class Pulse:
    """Whether the kernel's main thread reads messages: it is asked to run a tiny function in between."""

    def __init__(self, loop: Any):
        self._loop = loop
        self._asked_at: float | None = None

    def answers(self) -> bool:
        """True when nothing is asked, or the last question was answered; asks the next one."""
        if self._asked_at is not None:
            return False
        self._asked_at = time.monotonic()
        self._loop.add_callback(self._answer)
        return True

    def _answer(self) -> None:
        self._asked_at = None


class NoKernel:
    """Outside a Jupyter kernel nothing keeps messages from being read."""

    def answers(self) -> bool:
        return True


def kernel_pulse() -> Pulse | NoKernel:
    """The pulse of the kernel this process is, if it is one."""
    kernel = running_kernel()
    loop = getattr(kernel, "io_loop", None)
    return NoKernel() if loop is None else Pulse(loop)


def running_kernel() -> Any:
    """The ipykernel of this process, or None; never starts or imports one."""
    import sys

    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None)
