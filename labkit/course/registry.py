"""All exercises by name. A lesson keeps its own in ``lessons/lNN.py``: texts, checks, wrong answers."""

from __future__ import annotations

import difflib
import functools
import html
import importlib
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from labkit.course import answers, lessons
from labkit.course.checks import Check
from labkit.course.result import Advice, CheckResult
from labkit.course.wrong import Wrong
from labkit.errors import LabkitError

KINDS = ("core", "stretch", "claim")


@dataclass(frozen=True, repr=False)
class Exercise:
    """One exercise. ``task`` is one or two sentences; the notebook has the whole text.

    Attributes
    ----------
    name : str
        Lesson and a word, e.g. ``"01.saxpy"``; it never changes.
    function : str
        What the answer is called in the learner's notebook.
    kind : str
        ``"core"``, ``"stretch"`` or ``"claim"``.
    minutes : int
        What it takes most people.
    """

    name: str
    title: str
    function: str
    kind: str
    minutes: int
    task: str
    hints: tuple[str, ...]
    plan: Check = field(compare=False)
    wrong: tuple[Wrong, ...] = ()
    praise: str = "Right."
    table: Callable[[Any], Any] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        assert self.kind in KINDS

    @property
    def lesson(self) -> str:
        return self.name.split(".")[0]

    def check(self, answer: Any = None, *, seconds: float | None = None) -> CheckResult:
        """Check an answer, by default whatever the notebook calls :attr:`function`.

        Parameters
        ----------
        answer
            The kernel, function or data; a kernel without its ``[grid, block]``.
        seconds
            Wall time the answer may run, 10 s unless the environment's ``LABKIT_CHECK_SECONDS`` says
            otherwise.

        Returns
        -------
        CheckResult
            An answer that is wrong, or that misbehaves, is a result too; nothing is raised for it.
        """
        from labkit.course import run_check, store
        from labkit.course.sandbox import Limits

        answer = answers.look_up(self.function) if answer is None else answer
        result = run_check.run_check(self, answer, Limits.usual(seconds))
        return store.record(result)

    def hint(self, step: int | None = None) -> Advice:
        """The next hint, or hint number ``step``; the last one is repeated."""
        from labkit.course import advice

        return advice.hint(self, step)

    def solution(self, reveal: bool = False) -> Advice:
        """The solution: after a pass, at the second call, or at once with ``reveal=True``."""
        from labkit.course import advice

        return advice.solution(self, reveal)

    def data(self) -> Any:
        """This learner's own table: made from a seed, the same at every call, different for every learner.

        Raises
        ------
        LabkitError
            When the exercise has no table.
        """
        from labkit.course import seeds

        if self.table is None:
            raise LabkitError(
                f"Exercise {self.name} has no table of its own; its task says what it works on."
            )
        return self.table(seeds.generator(self.name))

    def __repr__(self) -> str:
        return (
            f"{self.name}: {self.title} ({self.kind}, about {self.minutes} min)\n{self.task}\n"
            f"Answer in a cell that defines '{self.function}'; then .check(), .hint() or .solution()."
        )

    def _repr_html_(self) -> str:
        return (
            f"<div class='labkit-exercise'><b>{html.escape(self.title)}</b> "
            f"<code>{html.escape(self.name)}</code> <span style='opacity:.7'>{self.kind}, about "
            f"{self.minutes} min</span><div>{html.escape(self.task)}</div></div>"
        )

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """A panel with buttons where widgets can be shown; its text where they cannot."""
        from labkit.widgets import check_panel

        return {"text/plain": repr(self), "text/html": self._repr_html_(), **check_panel.view(self)}

    def to_dict(self) -> dict[str, Any]:
        """What ``labkit exercises --json`` lists."""
        names = ("name", "title", "lesson", "function", "kind", "minutes", "task")
        return {name: getattr(self, name) for name in names} | {
            "hints": len(self.hints),
            "wrong": len(self.wrong),
        }


@functools.cache
def _all() -> dict[str, Exercise]:
    found: dict[str, Exercise] = {}
    for module in sorted(
        m.name for m in pkgutil.iter_modules(lessons.__path__) if re.fullmatch(r"l\d\d", m.name)
    ):
        for one in importlib.import_module(f"{lessons.__name__}.{module}").EXERCISES:
            assert one.name not in found, one.name
            found[one.name] = one
    return found


def exercise(name: str) -> Exercise:
    """The exercise called ``name``; LabkitError with the nearest name when there is none."""
    known = _all()
    if isinstance(name, str) and name in known:
        return known[name]
    raise LabkitError(
        f"There is no exercise {name!r}.{_nearest(name, known)} labkit.exercises() lists them all."
    )


def _nearest(name: object, known: dict[str, Exercise]) -> str:
    if not isinstance(name, str):
        return " A name is a text such as '01.saxpy'."
    words = {full.split(".")[1] for full in known}
    near = difflib.get_close_matches(name.lower(), [*known, *sorted(words)], 1, 0.5)
    meant = [full for full in known if near and near[0] in (full, full.split(".")[1])]
    return f" Did you mean {' or '.join(map(repr, meant))}?" if meant else ""


class Exercises(tuple[Exercise, ...]):
    """Exercises in the order of the course, shown as a list."""

    def __repr__(self) -> str:
        return "\n".join(f"{e.name:<16} {e.kind:<8} {e.minutes:>3} min  {e.title}" for e in self)


def exercises(lesson: str | None = None) -> Exercises:
    """All exercises, or those of one lesson; LabkitError for a lesson without any."""
    chosen = Exercises(e for e in _all().values() if lesson in (None, e.lesson))
    if not chosen:
        known = ", ".join(sorted({e.lesson for e in _all().values()}))
        raise LabkitError(f"There is no lesson {lesson!r} with exercises; there are: {known}.")
    return chosen
