"""What an inspected launch has to say: findings, each with its kind, line and sentence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from labkit.errors import KernelError

KINDS = (
    "race",
    "out-of-bounds",
    "wraparound",
    "uninitialized",
    "divergent-barrier",
    "inactive-lane",
    "launch-limit",
    "needs-forward-progress",
    "step-budget",
)
SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing about a launch.

    ``kind`` is one of ``KINDS`` (or the kind of the error that ended the launch), ``line`` the line in the learner's
    cell or file, ``severity`` one of ``SEVERITIES``: an error is wrong on some device or in some run, a warning is
    probably not meant, a note runs as written.
    """

    kind: str
    line: int
    message: str
    severity: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def from_error(error: KernelError) -> Finding:
    """The finding for a mistake that ended the launch."""
    return Finding(error.kind, error.line or 0, str(error), "error")


def in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """Worst first, then by line."""
    return tuple(sorted(findings, key=lambda f: (SEVERITIES.index(f.severity), f.line, f.kind)))
