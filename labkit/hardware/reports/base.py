"""What every reader and every report have in common."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from math import isfinite
from typing import Any, ClassVar

from labkit.hardware.html import table
from labkit.hardware.reports.text import quote

Table = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]

# What tools print where they have no value.
_NOTHING = re.compile(
    r"\[?(n/?a|none|not (available|supported|found)|could not collect|unknown|unknown error|err!|no cuda|null"
    r"|deprecated.*|requested functionality.*|\[?not supported\]?|insufficient permissions|gpu is lost)\]?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


@dataclass(frozen=True, kw_only=True, repr=False)
class Report:
    """What one tool said. What it did not say is None; nothing is guessed.

    `cut`: the report does not reach its end. `quotes`: the line that a fact was read from, by a short key.
    """

    kind: ClassVar[str] = ""
    title: ClassVar[str] = ""
    cut: bool = False
    quotes: Mapping[str, str] = field(default_factory=dict, compare=False)

    def facts(self) -> dict[str, Any]:
        """Everything that was read, as plain data."""
        mine = {part.name for part in fields(self)} - {"cut", "quotes"}
        return {name: value for name, value in asdict(self).items() if name in mine}

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "facts": self.facts(), "cut": self.cut}

    def headline(self) -> str:
        """One line for people."""
        return self.title

    def table(self) -> Table:
        """Head and rows for people, as text."""
        return (), ()

    def quote(self, *keys: str) -> str:
        """The first line known under one of `keys`, else the report's first line."""
        for key in (*keys, "first"):
            if key in self.quotes:
                return self.quotes[key]
        return next(iter(self.quotes.values()), "")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.headline()}{', cut' if self.cut else ''})"

    def _repr_html_(self) -> str:
        from html import escape

        head, rows = self.table()
        cells = [tuple(escape(cell) for cell in row) for row in rows]
        return table(head, cells, self.headline() + (" (cut)" if self.cut else ""))


class Reader(ABC):
    """Takes the lines of one report, one after another, and makes the report of them."""

    kind: ClassVar[str] = ""

    def __init__(self) -> None:
        self.quotes: dict[str, str] = {}
        self.before: tuple[str, ...] = ()  # the two lines before the first

    @classmethod
    @abstractmethod
    def starts(cls, line: str) -> bool:
        """Whether a report of this kind may start with this line."""

    @abstractmethod
    def take(self, line: str) -> bool:
        """Read the line, if it belongs to this report; False when it does not."""

    @abstractmethod
    def finish(self) -> Report | None:
        """The report; None when what seemed to be one was not."""

    def keep(self, key: str, line: str) -> None:
        """Remember a line as evidence; the first one under a key stays."""
        text = quote(line)
        if text:
            self.quotes.setdefault("first", text)
            self.quotes.setdefault(key, text)


def word(text: str | None) -> str | None:
    """A value as printed; None where the tool had none."""
    stripped = (text or "").strip()
    return None if not stripped or _NOTHING.fullmatch(stripped) else stripped


def number(text: str | None) -> float | None:
    """The first number of a value such as ``"70.12 W"``; None where there is none."""
    try:
        plain = float(text or "")  # most values are numbers and nothing else
    except ValueError:
        pass
    else:
        return plain if isfinite(plain) else None
    value = word(text)
    match = _NUMBER.search(value.replace(",", "")) if value else None
    found = float(match[0]) if match else None
    return found if found is not None and isfinite(found) else None


def whole(text: str | None) -> int | None:
    """The first number as an integer, when it is one of reasonable size."""
    if text and len(text) < 18 and text.isdecimal():
        return int(text)
    value = number(text)
    return int(value) if value is not None and abs(value) < 1e18 and value == int(value) else None


def show(value: object) -> str:
    """A fact in a table cell."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (tuple, list)):
        return ", ".join(map(show, value)) or "none"
    return str(value)
