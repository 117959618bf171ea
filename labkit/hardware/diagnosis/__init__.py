"""What is wrong with the machine that a report tells of, and what to do: rules over the readers of `reports`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from labkit.hardware.diagnosis.bandwidth import bandwidth
from labkit.hardware.diagnosis.case import Case
from labkit.hardware.diagnosis.errors import errors
from labkit.hardware.diagnosis.finding import SEVERITIES, Finding, Reading
from labkit.hardware.diagnosis.health import health
from labkit.hardware.diagnosis.links import links
from labkit.hardware.diagnosis.nccl import nccl
from labkit.hardware.diagnosis.peers import peers
from labkit.hardware.diagnosis.stack import stack
from labkit.hardware.reports import Found, Report, ReportError, decode, find
from labkit.hardware.reports.text import quote

__all__ = ["Finding", "Reading", "diagnose", "diagnose_file", "doctor_from", "explain"]

RULES: tuple[Callable[[Case], Iterable[Finding]], ...] = (
    stack,
    errors,
    health,
    links,
    peers,
    nccl,
    bandwidth,
)
KNOWN = (
    "nvidia-smi (also -q, topo -m, nvlink -s), torch.utils.collect_env, errors, nccl-tests, NCCL logs and "
    "topology files, p2p tests"
)


def diagnose(text: str) -> Reading:
    """Read every report in `text` and say what is wrong.

    Parameters
    ----------
    text : str
        What somebody pasted: any number of reports, and anything around them.

    Returns
    -------
    Reading
        Findings come worst first; each quotes a line of `text`. When nothing is recognised, the reading has no
        reports and one note that says so.

    Raises
    ------
    ReportError
        When `text` is not a string.
    """
    found = find(text)
    findings = [*explain(found.reports, found.listed), *_limits(found, text)]
    return Reading(tuple(found.reports), tuple(findings))


def explain(reports: Iterable[Report], listed: tuple[str, ...] = ()) -> tuple[Finding, ...]:
    """The findings on reports already read, worst first; `listed` names the machine's GPUs, if they do not."""
    case = Case(tuple(reports), listed)
    found: dict[str, Finding] = {}
    for rule in RULES:
        for finding in rule(case):
            found.setdefault(finding.message, finding)  # said once, with the first line that shows it
    return tuple(sorted(found.values(), key=lambda finding: SEVERITIES.index(finding.severity)))


def doctor_from(path: str, as_json: bool) -> int:
    """``labkit doctor --from FILE``: print what the reports in a file say is wrong (``-``: standard input).

    Returns 0 when nothing is wrong, 1 for warnings or when nothing was recognised, 2 for errors.
    """
    reading = diagnose_file(path)
    print(json.dumps(reading.to_dict(), indent=2) if as_json else reading)
    worst = {finding.severity for finding in reading.findings}
    return 2 if "error" in worst else 1 if "warning" in worst or not reading.recognised else 0


def diagnose_file(path: str) -> Reading:
    """The reading of a file, or of standard input for ``-``; of one that is no text, a reading that says so.

    Raises
    ------
    ReportError
        When the file cannot be opened.
    """
    data = load(path)
    try:
        return diagnose(decode(data))
    except ReportError as error:
        return Reading((), (Finding("note", str(error), ""),))


def load(path: str) -> bytes:
    """The bytes of a file, or of standard input for ``-``."""
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ReportError(
            f"{path!r} cannot be read ({reason}): name a file with what the tool printed, or '-'."
        ) from None


def _limits(found: Found, text: str) -> Iterable[Finding]:
    """What was not understood, and where reading stopped."""
    if not text.strip():
        yield Finding("note", f"There is nothing to read here: the text is empty. Known are {KNOWN}.", "")
        return
    strange_line, strange = found.strange or (1, quote(text))
    if not found.reports:
        text = (
            f"Nothing was recognised in {found.lines} line{'s' * (found.lines != 1)}, from line "
            f"{strange_line} on. Known are {KNOWN}."
        )
        yield Finding("note", text, strange)
        return
    for report in found.reports:
        if report.cut:
            at, line = found.last or (found.lines, "")
            text = (
                f"The report of {report.title} is cut: facts are from the part that is there. The last line "
                "understood is line "
                f"{at} of {found.lines}."
            )
            yield Finding("note", text, line)
