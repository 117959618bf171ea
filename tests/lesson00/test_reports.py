"""The pasted reports: each has one fault, and labkit's own diagnosis finds the same one in the same line."""

from __future__ import annotations

import pytest

from labkit.course import sources
from labkit.course.checks import Call
from labkit.course.lessons import l00_why as why
from labkit.course.lessons.l00_reports import FAULTS, REPORTS, Pasted
from labkit.hardware.diagnosis import diagnose

_SAYS = {
    "driver too old": "is older than",
    "build without CUDA": "built for the CPU only",
    "card too new": "too new for this build",
    "card too old": "too old for this build",
}
EACH = pytest.mark.parametrize("report", REPORTS, ids=lambda one: f"{one.fault}, {one.card}")


def test_every_fault_is_among_the_reports() -> None:
    assert {report.fault for report in REPORTS} == set(FAULTS)


@EACH
def test_the_diagnosis_agrees(report: Pasted) -> None:
    reading = diagnose(report.text)
    errors = [finding for finding in reading.findings if finding.severity == "error"]
    assert _SAYS[report.fault] in errors[0].message
    assert errors[0].evidence.strip() in report.lines
    others = [says for fault, says in _SAYS.items() if fault != report.fault]
    assert not any(says in finding.message for finding in errors for says in others)


@EACH
def test_the_solution_finds_each(report: Pasted) -> None:
    solve = sources.answer(sources.text("solutions", "00.report"), "find_fault")
    assert why.report(Call({"report": report.text}, report), solve(report.text)) is None


@EACH
def test_every_line_of_proof_is_a_line_of_the_report(report: Pasted) -> None:
    assert set(report.lines) <= set(report.text.splitlines())
    for line in report.lines:
        spaced = f"  {line.replace(' ', '  ')} "
        for fault in (report.fault, report.fault.upper()):
            assert why.report(Call({"report": report.text}, report), (fault, spaced)) is None


@EACH
def test_every_wrong_fault_gets_a_reason(report: Pasted) -> None:
    for fault in set(FAULTS) - {report.fault}:
        trouble = why.report(Call({"report": report.text}, report), [fault, report.lines[0]])
        assert trouble is not None
        assert trouble[1]
