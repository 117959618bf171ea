"""Observers that watch a launch and report what is suspicious, while the kernel runs on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.compute.emulator.faults import thread_in_words, where
from labkit.compute.emulator.kernel import EmulatedKernel, run
from labkit.compute.emulator.limits import launch_shape
from labkit.compute.emulator.memory import Array, Memory


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing about a launch.

    ``kind`` is a stable word such as ``"wraparound"``; ``severity`` is ``"error"``, ``"warning"`` or ``"note"``.
    """

    kind: str
    line: int
    message: str
    severity: str

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "line": self.line, "message": self.message, "severity": self.severity}


class SanitizedMemory(Memory):
    """Memory that notices accesses which run on the device but are probably not meant."""

    def __init__(self, sites: list) -> None:
        super().__init__(sites)
        self.findings: dict[tuple[str, int], Finding] = {}

    def wrapped(self, array: Array, key: np.ndarray, axis: int, group: Any, site: int) -> None:
        place = self.sites[site]
        lane = int(np.argmax(key < 0))
        thread = thread_in_words(*group.locate(lane))
        name = array.name or place.operand
        self.findings.setdefault(
            ("wraparound", site),
            Finding(
                "wraparound",
                place.line,
                f"{where(place)}: {thread} uses the negative index {int(key[lane])} of {name}, which counts from the "
                f"end, as in Python: it reaches element {int(key[lane]) + array.shape[axis]}. If that is not meant, "
                "test for indices below 0.",
                "note",
            ),
        )


def launch(
    kernel: EmulatedKernel,
    grid: Any,
    block: Any,
    arguments: tuple,
    *,
    sharedmem: int = 0,
    step_budget: int | None = None,
    sanitize: bool = True,
) -> tuple[Finding, ...]:
    """Launch a kernel on the emulator and return the findings, in source order.

    Raises
    ------
    KernelError
        For what ends a plain launch too: out of bounds, divergent barriers, endless loops, launch limits.
    """
    shape = launch_shape(grid, block, kernel.source.name)
    memory_class = SanitizedMemory if sanitize else Memory
    memory = run(
        kernel, shape, arguments, sharedmem=sharedmem, step_budget=step_budget, memory_class=memory_class
    )
    findings = memory.findings.values() if isinstance(memory, SanitizedMemory) else ()
    return tuple(sorted(findings, key=lambda f: (f.line, f.kind)))
