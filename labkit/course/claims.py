"""How the claim of a lesson is judged: verdict, number with its unit, and what it leaves out, in that order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from labkit.course import explain
from labkit.course.messages import shown

Trouble = tuple[str, str] | None
Range = tuple[float, float]
KEYS = ("verdict", "number", "unit", "left_out")
VERDICTS = ("true", "mostly true", "misleading", "false", "unsourced")
_OPTIONS = f"{', '.join(map(repr, VERDICTS[:-1]))} or {VERDICTS[-1]!r}"


def claim_begun(claim: Any) -> bool:
    """Whether any entry of the claim has been filled in."""
    return not all(map(claim_blank, claim.values()))


def claim_blank(value: Any) -> bool:
    """Whether an entry of the claim still has to be filled in."""
    return value is None or (isinstance(value, str) and not value.strip())


def around(value: float, share: float) -> Range:
    """The range from that share of a positive ``value`` below it to as much above."""
    return value * (1 - share), value * (1 + share)


@dataclass(frozen=True)
class Figure:
    """The number a claim comes to; ranges hold their ends, and the first reason that fits is given.

    Parameters
    ----------
    units
        Names of units, in small letters and without spaces, and what one of each is worth.
    unit_hint
        Follows "The unit is ...;" where it is none of those.
    right
        Ranges of numbers that are right, times what their unit is worth.
    wrong
        What is said of others; ``{value}`` and ``{unit}`` stand for what was given.
    whys
        (low, high, why) of numbers that typical mistakes lead to.
    loosely
        Whether a unit need only contain one of the names.
    """

    units: Mapping[str, float]
    unit_hint: str
    right: tuple[Range, ...]
    wrong: str
    whys: tuple[tuple[float, float, str], ...] = ()
    loosely: bool = False

    def __call__(self, value: Any, unit: Any) -> Trouble:
        """What is wrong with a number and its unit, and why; or nothing."""
        if trouble := explain.not_a_number(value):
            return f"The number is {trouble}; it should be a plain number, with its unit under 'unit'.", ""
        if (worth := self._worth(unit)) is None:
            return f"The unit is {shown(unit)}; {self.unit_hint}", ""
        size = float(value) * worth
        if any(low <= size <= high for low, high in self.right):
            return None
        why = next((why for low, high, why in self.whys if low <= size <= high), "")
        return self.wrong.format(value=shown(value), unit=unit), why

    def _worth(self, unit: Any) -> float | None:
        given = str(unit).lower().replace(" per second", "/s").replace(" ", "")
        fits = (name for name in self.units if name == given or (self.loosely and name in given))
        return next((self.units[name] for name in fits), None)


@dataclass(frozen=True)
class Judge:
    """What a lesson expects of its claim; called with the learner's dictionary, it says what is wrong, and why.

    Parameters
    ----------
    verdicts
        Those that are accepted.
    number
        What is wrong with a number and its unit: a `Figure`, or a function of the lesson's own.
    left_out
        Words, in small letters, one of which has to be under 'left_out'.
    asked
        Follows "Under 'left_out', name" where none of them is.
    hint
        The sentence after that.
    reasons
        Why a verdict is not the best; those that are not among them get ``otherwise``.
    blank
        What is said of an entry that is still empty; ``{key}`` is its name.
    """

    verdicts: tuple[str, ...]
    number: Callable[[Any, Any], Trouble]
    left_out: tuple[str, ...]
    asked: str
    hint: str
    reasons: Mapping[str, str] = field(default_factory=dict)
    otherwise: str = ""
    blank: str = "claim has nothing under '{key}' yet."

    def __call__(self, answer: Mapping[str, Any]) -> Trouble:
        """What is wrong with the claim, and why; or nothing."""
        for key in KEYS:
            if claim_blank(answer.get(key)):
                return self.blank.format(key=key), ""
        return (
            self._verdict(answer["verdict"])
            or self.number(answer["number"], answer["unit"])
            or self._left_out(answer["left_out"])
        )

    def _verdict(self, given: Any) -> Trouble:
        verdict = str(given).strip().lower().replace("_", " ")
        if verdict in self.verdicts:
            return None
        if verdict not in VERDICTS:
            return f"The verdict is {shown(given)}; it should be {_OPTIONS}.", ""
        return f"'{verdict}' is not the best verdict.", self.reasons.get(verdict, self.otherwise)

    def _left_out(self, given: Any) -> Trouble:
        text = " ".join(map(str, given)) if isinstance(given, (list, tuple)) else str(given)
        if any(word in text.lower() for word in self.left_out):
            return None
        return f"Under 'left_out', name {self.asked}", self.hint
