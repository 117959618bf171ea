"""What the doctor found: records that show themselves as text, as a table, and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from labkit.hardware.html import LINE, table

# How a state is marked: a colour that reads on white and on black, and always the word beside it.
_COLOURS = {"ok": "#2e9e5b", "warning": "#d08a00", "error": "#e0483e", "missing": "#8a8f98"}

GPU, EMULATOR, BROKEN = 0, 1, 2


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    `state`: ``ok``; ``warning`` (works, but not as well as it could); ``missing`` (optional, and not there);
    ``error`` (the lessons cannot run before it is mended). `means` and `do` say what follows from it and the
    one command or sentence that helps; both may be empty when all is well.
    """

    name: str
    state: str
    found: str
    means: str = ""
    do: str = ""


@dataclass(frozen=True)
class Report:
    """All findings on one machine; `backend` is ``gpu``, ``emulator``, or empty when lessons cannot run."""

    headline: str
    backend: str
    findings: tuple[Finding, ...]

    @property
    def status(self) -> int:
        """Exit status of the command: 0 with a usable GPU, 1 on the emulator, 2 when lessons cannot run."""
        if any(finding.state == "error" for finding in self.findings):
            return BROKEN
        return GPU if self.backend == "gpu" else EMULATOR

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as ``labkit doctor --json`` prints it."""
        findings = [asdict(finding) for finding in self.findings]
        return {
            "headline": self.headline,
            "backend": self.backend,
            "status": self.status,
            "findings": findings,
        }

    def __repr__(self) -> str:
        width = max((len(finding.name) for finding in self.findings), default=0)
        return "\n".join([self.headline, *(_text(finding, width) for finding in self.findings)])

    def _repr_html_(self) -> str:
        rows = [_row(finding) for finding in self.findings]
        head = ("state", "what", "found", "what it means", "what to do")
        unfold = " open" if any(finding.state in ("error", "warning") for finding in self.findings) else ""
        summary = f'<summary style="cursor:pointer;font-weight:600">{escape(self.headline)}</summary>'
        return f'<details{unfold} style="color:inherit">{summary}{table(head, rows)}</details>'


def _text(finding: Finding, width: int) -> str:
    margin = " " * (width + 13)
    lines = [f"  {finding.state:<7}  {finding.name:<{width}}  {finding.found}"]
    lines += [margin + text for text in (finding.means, finding.do and f"-> {finding.do}") if text]
    return "\n".join(lines)


def _row(finding: Finding) -> tuple[str, ...]:
    colour = _COLOURS[finding.state]
    mark = f'<span aria-hidden="true" style="color:{colour}">&#9679;</span>&nbsp;{escape(finding.state)}'
    do = escape(finding.do)
    return mark, escape(finding.name), escape(finding.found), escape(finding.means), _code(do)


def _code(remedy: str) -> str:
    """Commands (they start in lower case) set as code, sentences as they are."""
    style = f"background:transparent;color:inherit;border:{LINE};border-radius:3px;padding:1px 4px"
    return f'<code style="{style}">{remedy}</code>' if remedy[:1].islower() else remedy
