"""Reports on a terminal: aligned tables, and bars where a page would have a curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from labkit.hardware.diagnosis.bandwidth import Limit, limit
from labkit.hardware.diagnosis.case import Case
from labkit.hardware.diagnosis.finding import Finding, Reading
from labkit.hardware.reports.base import Report
from labkit.hardware.reports.nccl_tests import NcclTests
from labkit.hardware.units import show_bytes

_BAR = 50  # columns of the longest bar
_WIDEST = 60  # columns of a cell
_ROWS = 40  # rows of a table before it is shortened


def as_text(reading: Reading) -> str:
    """Everything a reading holds, for a terminal."""
    case = Case(reading.reports)
    parts = [part for report in reading.reports for part in _report(report, case)]
    parts.append("\n".join(_findings(reading.findings)) or "Nothing wrong was found in what is there.")
    return "\n\n".join(parts)


def _report(report: Report, case: Case) -> Iterator[str]:
    yield f"== {report.headline()}" + (" (cut)" if report.cut else "")
    head, rows = report.table()
    if rows:
        yield "\n".join(aligned(head, rows))
    if isinstance(report, NcclTests) and report.peak_GBps:
        yield "\n".join(bars(report, limit(report, case)))


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table with its columns aligned; long tables lose their middle, and say so."""
    shown = list(rows)
    if len(rows) > _ROWS:
        left_out = (f"... {len(rows) - _ROWS} rows ...", *[""] * (len(head) - 1))
        shown = [*rows[: _ROWS // 2], left_out, *rows[-_ROWS // 2 :]]
    table = [[cell[:_WIDEST] for cell in row] for row in (head, *shown)]
    widths = [max(len(row[i]) for row in table if i < len(row)) for i in range(len(head))]
    for row in table:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)).rstrip()


def bars(report: NcclTests, bound: Limit | None) -> Iterator[str]:
    """Bus bandwidth by size, a bar each; the link's limit is the full width, where it is known."""
    top = max(report.peak_GBps or 0, bound.GBps if bound else 0)
    yield "bus bandwidth, GB/s (reported by nccl-tests, not measured here)"
    for row in report.rows[-_ROWS:]:
        rate = row.best_GBps or 0
        yield f"{show_bytes(row.size_bytes):>10}  {'#' * round(_BAR * rate / top):<{_BAR}}  {rate:.4g}"
    if bound:
        mark = " " * (round(_BAR * bound.GBps / top) - 1) + "|"
        source = "from the topology file" if bound.kind == "network" else "catalogue"
        yield f"{'limit':>10}  {mark:<{_BAR}}  {bound.GBps:g}, {bound.what}, one way ({source})"


def _findings(findings: Sequence[Finding]) -> Iterator[str]:
    for finding in findings:
        yield f"{finding.severity}: {finding.message}"
        if finding.evidence:
            yield f"    > {finding.evidence}"
