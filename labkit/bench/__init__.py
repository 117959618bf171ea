"""``labkit bench NAME``: figures of merit, each a median, each beside its peer or its target, in one run.

A benchmark is a module of this package with ``figures(quick: bool) -> Iterable[Figure]``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass

BENCHMARKS = {
    "emulator": "the CUDA emulator against numba's simulator",
    "startup": "import time, memory of a fresh process and of a kernel that has run lesson 01",
    "readers": "readers of pasted reports: MB a second",
    "monitor": "the live plot: payload and CPU share; eight stub GPUs, against nvitop",
    "fabric": "the fabric simulator against formulas, bounds, published tables, and the clock",
    "collectives": "collectives over sizes, own and torch's, as nccl-tests prints (has options of its own: --help)",
    "cluster": "virtual nodes: up, all-reduce against its link and against a prediction",
    "ranks": "a cell's function on 4 ranks: start, failure, own all-reduce, against spawn and torch",
}


@dataclass(frozen=True)
class Figure:
    """One measured figure. ``bound`` is ``"at least"`` or ``"at most"`` the ``target``, in ``unit``."""

    name: str
    value: float
    unit: str
    bound: str | None = None
    target: float | None = None
    detail: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None when the figure has no target."""
        if self.target is None:
            return None
        return self.value >= self.target if self.bound == "at least" else self.value <= self.target


def line(figure: Figure) -> str:
    verdict = {None: "", True: "ok", False: "MISSED"}[figure.met]
    goal = f"{figure.bound} {figure.target:g} {figure.unit}" if figure.target is not None else ""
    return f"{figure.name:<44} {figure.value:>10.4g} {figure.unit:<8} {goal:<22} {verdict:<7} {figure.detail}"


def main(arguments: list[str]) -> int:
    """Run the named benchmarks; 0 when every target is met, 1 otherwise."""
    if arguments[:1] == ["collectives"]:
        return int(importlib.import_module("labkit.bench.collectives").main(arguments[1:]))
    listing = "; ".join(f"{name}: {text}" for name, text in BENCHMARKS.items())
    parser = argparse.ArgumentParser(prog="labkit bench", description=listing)
    parser.add_argument(
        "names", nargs="*", choices=[*BENCHMARKS, []], metavar="NAME", help="which (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args(arguments)
    good = True
    if not options.json:
        machine = platform.processor() or platform.machine()
        print(f"measured on this machine: {machine}, Python {platform.python_version()}")
    for name in options.names or BENCHMARKS:
        found: Iterable[Figure] = importlib.import_module(f"labkit.bench.{name}").figures(options.quick)
        for figure in found:
            good = good and figure.met is not False
            print(json.dumps(asdict(figure)) if options.json else line(figure), flush=True)
    return 0 if good else 1
