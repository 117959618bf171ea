"""The exceptions learners meet: one sentence each, shown without a traceback of labkit's internals."""

from __future__ import annotations


class LabkitError(Exception):
    """A mistake that its message explains: what happened, where, and what to do next.

    In a notebook only the message is shown; a script sees an ordinary traceback.
    """

    def _render_traceback_(self) -> list[str]:
        """IPython's hook for exceptions that draw themselves."""
        return [f"{type(self).__name__}: {self}"]


class KernelError(LabkitError):
    """A kernel did something the device forbids, or something that cannot be run.

    Attributes
    ----------
    kind : str
        What went wrong, e.g. ``"out-of-bounds"``, ``"launch-limit"``, ``"unsupported"``.
    line : int or None
        Line in the learner's cell or file (1-based).
    block, thread : tuple of int or None
        ``(x, y, z)`` index of the block, and of the thread within it, that did it first.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        line: int | None = None,
        block: tuple[int, int, int] | None = None,
        thread: tuple[int, int, int] | None = None,
    ):
        super().__init__(message)
        self.kind = kind
        self.line = line
        self.block = block
        self.thread = thread


class LaunchInterrupted(KeyboardInterrupt):
    """Ctrl-C or the Stop button has ended a kernel; in a notebook only the sentence is shown."""

    def __init__(self, kernel: str):
        super().__init__(f"Kernel '{kernel}' was stopped; the arrays it writes may be partly written.")

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]
