"""One launch of a check under observation: the sanitizer always, the counters where the check has gates."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from labkit.compute.emulator.counting import Counter
from labkit.compute.emulator.geometry import Launch
from labkit.compute.emulator.group import Group
from labkit.compute.emulator.kernel import EmulatedKernel
from labkit.compute.emulator.limits import launch_shape
from labkit.compute.emulator.memory import Array
from labkit.compute.emulator.observers import Observer, observed
from labkit.compute.emulator.program import Site
from labkit.compute.emulator.sanitizer import Sanitizer

L2_BYTES = (
    40_000_000  # of an A100, for the counters of device memory: a check's gates are the same on every machine
)


class GlobalAtomics(Observer):
    """Counts, for each line, the atomic updates of global memory; the counters hold shared ones too."""

    def __init__(self) -> None:
        self.lines: dict[str, int] = defaultdict(int)

    def begin(self, sites: list[Site], shape: Launch) -> None:
        self.sites = sites

    def access(self, kind: str, array: Array, offset: Any, group: Group, site: int, value: Any) -> None:
        if kind == "atomic" and array.space == "global":
            self.lines[str(self.sites[site].line)] += group.n


def launch(kernel: EmulatedKernel, case: dict[str, Any], arguments: tuple[Any, ...]) -> dict[str, Any]:
    """Run one case; returns the findings and, where the case is counted, the counters of every line.

    Raises
    ------
    KernelError
        For what ends a plain launch too.
    """
    shape = launch_shape(tuple(case["grid"]), tuple(case["block"]), kernel.source.name)
    sanitizer, counter, atomics = Sanitizer(strict=True), Counter(L2_BYTES), GlobalAtomics()
    observers = [sanitizer, counter, atomics] if case["count"] else [sanitizer]
    observed(kernel, shape, arguments, observers, step_budget=case["step_budget"])
    found = [[f.kind, f.line, f.message, f.severity] for f in sanitizer.findings]
    lines = _lines(kernel, counter, atomics) if case["count"] else {}
    return {"findings": found, "lines": lines}


def _lines(kernel: EmulatedKernel, counter: Counter, atomics: GlobalAtomics) -> dict[str, dict[str, int]]:
    table = {
        str(line): {k: v for k, v in c.items() if v} for line, c in counter.lines(kernel.source.name).items()
    }
    for line, updates in atomics.lines.items():
        table.setdefault(line, {})["global_atomic_updates"] = updates
    return table
