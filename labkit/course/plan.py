"""The plan card: requirement, hardware, software, test. Written in lesson 00, revised by later ones.

It is one small JSON file beside the learner's progress; every revision keeps the earlier ones.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from html import escape
from pathlib import Path
from typing import Any

from labkit.course import store
from labkit.errors import LabkitError

_QUESTIONS = {
    "requirement": "What has to come out, how much of it, by when?",
    "hardware": "Which processor, memory and links does that take, by which number?",
    "software": "Which driver, CUDA and library versions, and do they fit each other?",
    "test": "What will be measured, and from which value on is it accepted?",
}


@dataclass(frozen=True)
class Plan:
    """One revision of the card; empty entries are still open."""

    requirement: str = ""
    hardware: str = ""
    software: str = ""
    test: str = ""
    lesson: str = ""

    @property
    def open(self) -> tuple[str, ...]:
        """The entries that are still to be filled."""
        return tuple(name for name in _QUESTIONS if not getattr(self, name).strip())

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __repr__(self) -> str:
        lines = [f"{name:<12} {getattr(self, name) or '(open) ' + _QUESTIONS[name]}" for name in _QUESTIONS]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from labkit.hardware.html import table

        rows = [
            (f"<b>{name}</b>", escape(getattr(self, name)) or f"<i>{escape(_QUESTIONS[name])}</i>")
            for name in _QUESTIONS
        ]
        return table((), rows, "Plan card" + (f", as of lesson {self.lesson}" if self.lesson else ""))


def file() -> Path:
    """Where the card is kept."""
    return store.folder() / "plan.json"


def revisions() -> tuple[Plan, ...]:
    """Every revision, oldest first; none when there is no card yet, or its file cannot be read."""
    known = {field.name for field in fields(Plan)}
    try:
        cards = json.loads(file().read_text(encoding="utf-8"))
        return tuple(Plan(**{key: str(card[key]) for key in known & set(card)}) for card in cards)
    except (OSError, ValueError, TypeError):
        return ()


def plan(lesson: str = "", **entries: str) -> Plan:
    """The card as it stands; with entries (requirement, hardware, software, test), a new revision of it.

    Raises
    ------
    LabkitError
        For an entry the card does not have, one that is no text, or when it cannot be kept.
    """
    for name, value in entries.items():
        if name not in _QUESTIONS or not isinstance(value, str):
            raise LabkitError(
                f"A plan has the entries {', '.join(_QUESTIONS)}, each a text; not {name}={value!r}."
            )
    earlier = revisions()
    last = earlier[-1] if earlier else Plan()
    if not entries:
        return last
    new = Plan(**{**last.to_dict(), **entries, "lesson": lesson})
    if new == last:
        return last
    try:
        file().parent.mkdir(parents=True, exist_ok=True)
        file().write_text(
            json.dumps([card.to_dict() for card in (*earlier, new)], indent=1), encoding="utf-8"
        )
    except OSError as error:
        raise LabkitError(f"The plan cannot be kept in {file()}: {error.strerror}.") from error
    return new
