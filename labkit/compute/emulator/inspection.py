"""``labkit.inspect``: run a launch under observation and say what it did."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any

from labkit.compute.emulator.findings import Finding
from labkit.compute.emulator.kernel import Configured
from labkit.compute.emulator.sanitizer import sanitized
from labkit.compute.emulator.source import Source
from labkit.errors import LabkitError

MARKS = {"error": "✗", "warning": "!", "note": "·"}


@dataclass(frozen=True)
class Inspection:
    """What one launch did, as the emulator saw it: ``findings`` are complete, worst first.

    ``ok`` tells that no finding is an error. The text, the HTML view (source with the findings in place) and
    ``to_dict()`` show the same.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    findings: tuple[Finding, ...]
    source: Source = field(repr=False, compare=False)

    @property
    def ok(self) -> bool:
        return not any(f.severity == "error" for f in self.findings)

    def __repr__(self) -> str:
        head = f"Inspection of {self.kernel}[{self.grid}, {self.block}] (emulated): "
        if not self.findings:
            return head + "no findings"
        rows = [
            f"  {MARKS[f.severity]} line {f.line}, {f.kind} ({f.severity}): {f.message}"
            for f in self.findings
        ]
        return "\n".join([head + f"{len(self.findings)} finding(s)", *rows])

    def to_dict(self) -> dict[str, Any]:
        return {
            "version": 1,
            "provenance": "emulated",
            "kernel": self.kernel,
            "grid": list(self.grid),
            "block": list(self.block),
            "findings": [f.to_dict() for f in self.findings],
        }

    def _repr_html_(self) -> str:
        by_line: dict[int, list[Finding]] = {}
        for finding in self.findings:
            by_line.setdefault(finding.line, []).append(finding)
        rows = [
            _source_row(number, text, by_line.pop(number, []))
            for number, text in enumerate_lines(self.source)
        ]
        rows += [_finding_row(finding) for rest in by_line.values() for finding in rest]
        verdict = "no findings" if not self.findings else f"{len(self.findings)} finding(s)"
        title = f"{self.kernel}[{self.grid}, {self.block}], emulated: {verdict}"
        return (
            f'<figure style="margin:0;overflow-x:auto"><figcaption>{html.escape(title)}</figcaption>'
            f'<table style="border-collapse:collapse;text-align:left">{"".join(rows)}</table></figure>'
        )


def enumerate_lines(source: Source) -> list[tuple[int, str]]:
    return [(source.first_line + k, text) for k, text in enumerate(source.text.splitlines())]


def _source_row(number: int, text: str, findings: list[Finding]) -> str:
    cell = "text-align:left;padding:0 .6em;white-space:pre;font-family:var(--jp-code-font-family,monospace)"
    row = f'<tr><td style="{cell};opacity:.5">{number}</td><td style="{cell}">{html.escape(text)}</td></tr>'
    return row + "".join(_finding_row(finding) for finding in findings)


def _finding_row(finding: Finding) -> str:
    colour = {"error": "#c62828", "warning": "#b26a00", "note": "#5c6bc0"}[finding.severity]
    style = (
        f"text-align:left;padding:.2em .6em;border-left:3px solid {colour};white-space:normal;max-width:60em"
    )
    words = f"<b>{finding.kind}</b> ({finding.severity}): {html.escape(finding.message)}"
    return f'<tr><td></td><td style="{style}">{words}</td></tr>'


def inspect(launch: Any, *arguments: Any, step_budget: int | None = None) -> Inspection:
    """Run ``inspect(kernel[grid, block], *arguments)`` on the emulator with the sanitizer on.

    The launch goes on where it can after a mistake, so one run tells all of them; arrays are left as it leaves them.

    Raises
    ------
    LabkitError
        When ``launch`` is not a kernel with its launch shape.
    """
    configured = as_configured(launch)
    kernel, shape = configured.kernel, configured.shape
    findings = sanitized(
        kernel, shape, arguments, strict=False, sharedmem=configured.sharedmem, step_budget=step_budget
    )
    return Inspection(kernel.source.name, shape.grid, shape.block, findings, kernel.source)


def as_configured(launch: Any) -> Configured:
    """A launch of the emulator, also from a launch of numba's own kernel."""
    if isinstance(launch, Configured):
        return launch
    dispatcher = getattr(launch, "dispatcher", None)
    original = getattr(dispatcher, "py_func", None)
    if original is not None:
        from labkit.compute.emulator.kernel import jit

        return jit(original)[launch.griddim, launch.blockdim, 0, launch.sharedmem]
    raise LabkitError(
        f"labkit.inspect needs a kernel with its launch shape, but got {type(launch).__name__}: "
        "write labkit.inspect(kernel[blocks, threads], argument, ...)."
    )
