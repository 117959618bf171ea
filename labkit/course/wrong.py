"""Typical wrong answers, which a lesson keeps beside its checks to prove that each is told why it is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent, indent

from labkit.course.result import OUTCOMES


@dataclass(frozen=True)
class Wrong:
    """A typical wrong answer: its source, the outcome it deserves, and words the feedback has to contain."""

    label: str
    source: str
    outcome: str
    says: str

    def __post_init__(self) -> None:
        assert self.outcome in OUTCOMES


def wrong(label: str, outcome: str, says: str, source: str) -> Wrong:
    """A wrong answer from its whole source."""
    return Wrong(label, dedent(source).strip() + "\n", outcome, says)


def kernel(signature: str, label: str, outcome: str, says: str, body: str) -> Wrong:
    """A wrong kernel from its signature and its body."""
    return wrong(label, outcome, says, f"@cuda.jit\ndef {signature}:\n" + _inside(body))


def function(signature: str, label: str, outcome: str, says: str, body: str) -> Wrong:
    """A wrong Python function from its signature and its body."""
    return wrong(label, outcome, says, f"def {signature}:\n" + _inside(body))


def _inside(body: str) -> str:
    return indent(dedent(body).strip(), "    ")
