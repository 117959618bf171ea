"""How an inspection shows itself: as a table of source lines with their counters and findings, or as plain text."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from labkit.compute.emulator.counts import COUNTERS, Counts
from labkit.compute.emulator.findings import Finding

if TYPE_CHECKING:
    from labkit.compute.emulator.inspection import Inspection

MARKS = {"error": "✗", "warning": "!", "note": "·"}
COLOURS = {"error": "#c62828", "warning": "#b26a00", "note": "#5c6bc0"}
COLUMNS = ("warp instr.", "sectors / request", "bank conflicts", "divergent", "FLOP", "DRAM bytes")
_CELL = "padding:1px .7em;text-align:right;white-space:nowrap"
_CODE = "padding:1px .7em;text-align:left;white-space:pre;font-family:var(--jp-code-font-family,monospace)"


def summary(inspection: Inspection) -> list[str]:
    """The facts of a launch, a line each, every one with its provenance."""
    totals = inspection.totals
    lines = [
        f"{inspection.kernel}[{inspection.grid}, {inspection.block}] on the emulator; card: {inspection.gpu}"
    ]
    if inspection.sampled < 1:
        lines.append(f"sampled: {inspection.sampled:.1%} of the blocks were run, counters are scaled up")
    shown = [
        f"{per_request(totals, way)} sectors a {way} request"
        for way in ("load", "store")
        if requests(totals, way)
    ]
    if totals.shared_load_requests + totals.shared_store_requests:
        shown.append(f"{totals.shared_bank_conflicts:,} bank conflicts")
    shown.append(f"{totals.divergent_branches:,} of {totals.branches:,} branches divergent")
    how = "exact" if inspection.sampled == 1 else "scaled up from a sample"
    lines.append(f"counted (emulated, {how}): " + ", ".join(shown))
    roof = inspection.roofline
    if roof.intensity is not None:
        lines.append(
            f"intensity {roof.intensity:.3g} FLOP a byte (card's ridge {roof.ridge:.3g}): bound by {roof.bound}"
        )
    lines.append(repr(inspection.time))
    if inspection.measured_s is not None:
        lines.append(f"measured on this machine's GPU: {inspection.measured_s * 1e6:.4g} us")
    if inspection.occupancy is not None:
        lines.append(repr(inspection.occupancy))
    return lines


def requests(counts: Counts, way: str) -> int:
    return counts[f"global_{way}_requests"]


def per_request(counts: Counts, way: str) -> str:
    """Sectors a request of loads or stores, as a short number."""
    return f"{counts[f'global_{way}_sectors'] / requests(counts, way):.4g}" if requests(counts, way) else ""


def as_text(inspection: Inspection) -> str:
    rows = summary(inspection)
    for finding in inspection.findings:
        rows.append(
            f"{MARKS[finding.severity]} line {finding.line}, {finding.kind} ({finding.severity}): {finding.message}"
        )
    if not inspection.findings:
        rows.append("no findings")
    return "\n".join(rows)


def as_html(inspection: Inspection) -> str:
    by_line: dict[int, list[Finding]] = {}
    for finding in inspection.findings:
        by_line.setdefault(finding.line, []).append(finding)
    hottest = max((heat(c) for c in inspection.lines.values()), default=0)
    body = []
    for k, text in enumerate(inspection.text.splitlines()):
        number = inspection.first_line + k
        body.append(source_row(number, text, inspection.lines.get(number), hottest))
        body += [finding_row(f) for f in by_line.pop(number, [])]
    for line, counts in inspection.lines.items():
        if isinstance(line, str):
            body.append(source_row(line, "", counts, hottest))
    body += [finding_row(f) for rest in by_line.values() for f in rest]
    head = "".join(f'<th style="{_CELL};font-weight:600">{name}</th>' for name in COLUMNS)
    facts = "".join(f"<div>{escape(line)}</div>" for line in summary(inspection))
    verdict = "" if inspection.findings else "<div>no findings</div>"
    return (
        f'<figure style="margin:0;overflow-x:auto">{facts}{verdict}'
        '<table style="border-collapse:collapse;margin-top:.5em;background:transparent;color:inherit">'
        f'<thead><tr><th></th><th style="text-align:left">source, shaded by traffic</th>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table>{details(inspection.totals)}</figure>"
    )


def heat(counts: Counts) -> int:
    """What a line costs in memory: sectors moved and passes of shared memory; instructions where it moves nothing."""
    shared = counts.shared_load_requests + counts.shared_store_requests + counts.shared_bank_conflicts
    moved = counts.global_load_sectors + counts.global_store_sectors + shared + counts.atomic_requests
    return moved or counts.warp_instructions // 4


def source_row(number: int | str, text: str, counts: Counts | None, hottest: int) -> str:
    share = heat(counts) / hottest if counts and hottest else 0
    shade = f"background:rgba(230,120,30,{0.45 * share:.3f})" if share > 0.01 else ""
    cells = "".join(f'<td style="{_CELL}">{value}</td>' for value in columns(counts))
    return (
        f'<tr><td style="{_CELL};opacity:.55">{escape(str(number))}</td>'
        f'<td style="{_CODE};{shade}">{escape(text)}</td>{cells}</tr>'
    )


def columns(counts: Counts | None) -> list[str]:
    if counts is None:
        return [""] * len(COLUMNS)
    per = [f"{per_request(counts, way)} {way}" for way in ("load", "store") if requests(counts, way)]
    shared = counts.shared_load_requests + counts.shared_store_requests
    return [
        f"{counts.warp_instructions:,}" if counts.warp_instructions else "",
        ", ".join(per),
        f"{counts.shared_bank_conflicts:,}" if shared else "",
        f"{counts.divergent_branches:,} of {counts.branches:,}" if counts.branches else "",
        f"{counts.flops:,}" if counts.flops else "",
        f"{counts.dram_bytes:,}" if counts.dram_bytes else "",
    ]


def finding_row(finding: Finding) -> str:
    style = (
        f"text-align:left;padding:.2em .7em;border-left:3px solid {COLOURS[finding.severity]};white-space:normal;"
        "max-width:60em"
    )
    words = f"<b>{finding.kind}</b> ({finding.severity}): {escape(finding.message)}"
    return f'<tr><td></td><td colspan="{len(COLUMNS) + 1}" style="{style}">{words}</td></tr>'


def details(totals: Counts) -> str:
    """All counters, folded away."""
    rows = "".join(
        f'<tr><td style="text-align:left"><code>{key}</code></td><td style="{_CELL}">{totals[key]:,}</td>'
        f'<td style="text-align:left">{escape(words)}</td>'
        f'<td style="text-align:left"><code>{nsight or ""}</code></td></tr>'
        for key, (nsight, words) in COUNTERS.items()
    )
    return (
        "<details><summary>all counters (emulated), with Nsight Compute's names</summary>"
        f'<table style="border-collapse:collapse;background:transparent;color:inherit">{rows}</table></details>'
    )
