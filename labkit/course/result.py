"""What a check found: one result, shown as text, as HTML, or as a dictionary for files."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any

PASSED = "passed"
FAILED = "failed"
ERROR = "error"
NOT_ATTEMPTED = "not attempted"
OUTCOMES = (PASSED, FAILED, ERROR, NOT_ATTEMPTED)

# Colours of JupyterLab's themes, with one that reads on both light and dark paper where they are not defined.
_COLOUR = {
    PASSED: "var(--jp-success-color1, #388e3c)",
    FAILED: "var(--jp-warn-color1, #e07b00)",
    ERROR: "var(--jp-error-color1, #d8453b)",
    NOT_ATTEMPTED: "var(--jp-border-color1, #8a8a8a)",
}
_SIGN = {PASSED: "✓", FAILED: "✗", ERROR: "!", NOT_ATTEMPTED: "–"}


def _printable(text: str) -> str:
    """Text that can be sent and kept: half characters, which Python's strings may hold, are written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check.

    Attributes
    ----------
    outcome : str
        ``"passed"``, ``"failed"`` (a wrong result), ``"error"`` (no result) or ``"not attempted"``.
    message : str
        What was found: for a wrong result the first wrong index, the value there and the one expected.
    why : str
        One sentence about the mistake behind it, where it is a typical one; otherwise empty.
    where : str
        The launch or call it was found in.
    printed : str
        The beginning and end of what the answer printed.
    notes : tuple of str
        Remarks that did not decide the outcome.
    counted : tuple of str
        Counters of the first launch that has gates, with the targets they met: exact, emulated.
    seconds : float or None
        Wall time that the answer ran, measured on this machine's CPU. Shown on request, never judged.
    """

    exercise: str
    outcome: str
    message: str
    why: str = ""
    where: str = ""
    printed: str = ""
    notes: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    seconds: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name in ("message", "why", "where", "printed"):
            object.__setattr__(self, name, _printable(getattr(self, name)))

    @property
    def passed(self) -> bool:
        return self.outcome == PASSED

    def __repr__(self) -> str:
        lines = [f"{self.exercise}: {self.outcome}", self.message]
        lines += [f"{label}: {text}" for label, text in self._facts()]
        if self.printed:
            lines += [
                "your answer printed:",
                *("  " + line for line in self.printed.rstrip("\n").split("\n")),
            ]
        return "\n  ".join(line for line in lines if line)

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("where", self.where), ("why", self.why)]
        facts += [("counted", line) for line in self.counted] + [("note", note) for note in self.notes]
        return [fact for fact in facts if fact[1]]

    def _repr_html_(self) -> str:
        colour = _COLOUR[self.outcome]
        rows = "".join(
            f"<div><span style='opacity:.7'>{label}:</span> {html.escape(text)}</div>"
            for label, text in self._facts()
        )
        printed = (
            f"<div style='opacity:.7'>your answer printed:</div><pre "
            f"style='margin:0;max-height:12em;overflow:auto'>{html.escape(self.printed)}</pre>"
            if self.printed
            else ""
        )
        return (
            f"<div class='labkit-check' data-outcome='{self.outcome}' role='status' "
            f"style='border-left:4px solid {colour};padding:4px 12px;margin:4px 0'>"
            f"<div><b style='color:{colour}'>{_SIGN[self.outcome]} {self.outcome}</b> "
            f"<code>{html.escape(self.exercise)}</code></div>"
            f"<div style='white-space:pre-wrap'>{html.escape(self.message)}</div>{rows}{printed}</div>"
        )

    def to_dict(self) -> dict[str, Any]:
        """All fields, for JSON; ``seconds`` is measured wall time on this machine's CPU."""
        return {
            "exercise": self.exercise,
            "outcome": self.outcome,
            "message": self.message,
            "why": self.why,
            "where": self.where,
            "printed": self.printed,
            "notes": list(self.notes),
            "counted": list(self.counted),
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class Advice:
    """A hint or a solution: text to read, with a heading; code where ``code`` is true."""

    exercise: str
    heading: str
    text: str
    code: bool = False

    def __repr__(self) -> str:
        return f"{self.exercise}: {self.heading}\n{self.text}"

    def _repr_html_(self) -> str:
        tag = "pre" if self.code else "div"
        return (
            f"<div class='labkit-advice' style='border-left:4px solid {_COLOUR[NOT_ATTEMPTED]};padding:4px "
            f"12px;margin:4px 0'><b>{html.escape(self.heading)}</b> <code>{html.escape(self.exercise)}</code>"
            f"<{tag} style='margin:4px 0 0'>{html.escape(self.text)}</{tag}></div>"
        )

    def to_dict(self) -> dict[str, Any]:
        return {"exercise": self.exercise, "heading": self.heading, "text": self.text, "code": self.code}
