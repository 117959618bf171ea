"""What a diagnosis says."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from labkit.hardware.html import table
from labkit.hardware.reports.base import Report

SEVERITIES = ("error", "warning", "note")
_COLOURS = {"error": "#e0483e", "warning": "#d08a00", "note": "#8a8f98"}


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or worth knowing.

    `severity`: ``error`` (it cannot work so), ``warning`` (it works badly, or will fail), ``note``. `message` says
    what it means and what to do; `evidence` is the line of the report it rests on.
    """

    severity: str
    message: str
    evidence: str


@dataclass(frozen=True, repr=False)
class Reading:
    """What a text holds, and what is wrong with the machine it tells of."""

    reports: tuple[Report, ...]
    findings: tuple[Finding, ...]

    @property
    def recognised(self) -> bool:
        return bool(self.reports)

    def to_dict(self) -> dict[str, Any]:
        """``{"reports": [{"kind", "facts", "cut"}], "findings": [{"severity", "message", "evidence"}]}``."""
        reports = [report.to_dict() for report in self.reports]
        return {"reports": reports, "findings": [asdict(finding) for finding in self.findings]}

    def __repr__(self) -> str:
        lines = [report.headline() + (" (cut)" if report.cut else "") for report in self.reports]
        for finding in self.findings:
            lines.append(f"  {finding.severity:<7}  {finding.message}")
            if finding.evidence:
                lines.append(f"           > {finding.evidence}")
        return "\n".join(lines) or "nothing was recognised"

    def _repr_html_(self) -> str:
        parts = [report._repr_html_() for report in self.reports]
        rows = [_row(finding) for finding in self.findings]
        if rows:
            parts.append(table(("severity", "what it means and what to do", "evidence"), rows))
        return "".join(parts)


def _row(finding: Finding) -> tuple[str, str, str]:
    colour = _COLOURS[finding.severity]
    mark = f'<span aria-hidden="true" style="color:{colour}">&#9679;</span>&nbsp;{finding.severity}'
    return mark, escape(finding.message), f"<code>{escape(finding.evidence)}</code>"
