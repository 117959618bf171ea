"""The three kinds of check: a kernel launched on the emulator, a Python function called, plain data looked
at.

A check knows the cases (with fresh arrays every time) and the values they should give. The answer runs
elsewhere, in :mod:`labkit.course.sandbox`; the comparison happens here, in the process that asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labkit.course.compare import Difference
from labkit.course.gates import Gate

Explain = Callable[..., str]
STEP_BUDGET = 2_000_000  # instructions of one launch; the largest correct launch of a check needs a hundredth


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel.

    Attributes
    ----------
    grid, block : tuple of int
        Blocks, and threads in a block, along one to three axes.
    arguments : dict
        Name and value of every argument, in order.
    expected : dict
        The outputs among them, and the values they should have afterwards.
    size : str
        The problem's size in words, e.g. ``"1000 elements"``.
    gates : tuple of Gate
        What the launch's counters may be at most; without gates nothing is counted.
    """

    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: dict[str, Any]
    expected: dict[str, np.ndarray]
    size: str
    gates: tuple[Gate, ...] = ()

    @property
    def threads(self) -> int:
        return int(np.prod(self.grid)) * int(np.prod(self.block))

    def __str__(self) -> str:
        grid, block = (" x ".join(map(str, shape)) for shape in (self.grid, self.block))
        return f"grid {grid}, block {block} ({_count(self.threads, 'thread')}), {self.size}"


@dataclass(frozen=True)
class KernelCheck:
    """Launch the answer on the emulator, sanitizer on, compare every output element, and hold counters to their gates.

    ``explain(launch, name, got, difference)`` gives the sentence for a typical mistake, or an empty one.
    """

    parameters: Sequence[str]
    launches: Callable[[], Iterable[Launch]]
    explain: Callable[[Launch, str, np.ndarray, Difference], str]


@dataclass(frozen=True)
class Call:
    """One call of a Python function: its arguments by name, and what it should return."""

    arguments: dict[str, Any]
    expected: Any


@dataclass(frozen=True)
class FunctionCheck:
    """Call the answer and judge what it returns.

    ``calls(data)`` gives the calls, ``data`` being the learner's own table; ``judge(call, returned)`` gives
    nothing for a right value, else what is wrong with it and, where it is a typical mistake, why. A torch tensor
    that is returned comes as a :class:`~labkit.course.sandbox.tensors.TensorArray`. ``loads`` names modules that
    the answer's process imports before its time begins: ``"torch"``, and ``"torch.optim"`` where optimizers are
    used; an answer that mentions torch needs no such entry, a driver that does needs it.
    """

    parameters: Sequence[str]
    calls: Callable[[Any], Iterable[Call]]
    judge: Callable[[Call, Any], tuple[str, str] | None]
    loads: tuple[str, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class DataCheck:
    """Look at plain data of type ``form``: ``judge`` says what is wrong, ``begun`` tells it from a stub."""

    judge: Callable[[Any], tuple[str, str] | None]
    begun: Callable[[Any], bool]
    form: type = dict


Check = KernelCheck | FunctionCheck | DataCheck


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
