"""Proof that the exercises hold: stubs are not attempted, solutions pass, wrong answers are told why.

Stubs and solutions come from the notebooks themselves, so that a change there cannot go unseen.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from labkit.course import sources
from labkit.course.registry import Exercise, exercises
from labkit.course.result import NOT_ATTEMPTED, PASSED

FEWEST_WRONG = 4
LEARNER = "author"
SECONDS = 3.0  # for one answer; those that never end use all of it


@dataclass(frozen=True)
class Proof:
    """One answer: what it is, the outcome it deserves and the words to be said, and what really came out."""

    exercise: str
    answer: str
    wanted: str
    got: str
    missing: str = ""

    @property
    def holds(self) -> bool:
        return self.wanted == self.got and not self.missing

    def __str__(self) -> str:
        line = f"{'ok' if self.holds else 'NOT OK':<7} {self.exercise:<16} {self.answer:<46} {self.got}"
        wanted = f" (wanted: {self.wanted})" if self.wanted != self.got else ""
        return line + wanted + (f"\n        not said: {self.missing}" if self.missing else "")


@dataclass(frozen=True)
class _Job:
    exercise: Exercise
    label: str
    wanted: str
    says: str
    part: str = ""
    source: str = ""

    def proof(self) -> Proof:
        exercise = self.exercise
        try:
            code = self.source or sources.text(self.part, exercise.name)
            answer = sources.answer(code, exercise.function)
        except Exception as error:  # whatever a notebook's code raises, the table says it
            return Proof(exercise.name, self.label, self.wanted, "no answer", str(error))
        result = exercise.check(answer, seconds=SECONDS)
        text = repr(result)
        missing = "" if self.says in text else f"{self.says!r} in: {text}"
        return Proof(exercise.name, self.label, self.wanted, result.outcome, missing)


def verify(
    lesson: str | None = None, answers: Sequence[str] = ("exercises", "solutions", "wrong")
) -> list[Proof]:
    """Check every answer the course knows, two at a time.

    Parameters
    ----------
    lesson
        Number of a lesson, e.g. ``"01"``; all of them by default.
    answers
        Which: the stubs in ``"exercises"``, the ``"solutions"``, the ``"wrong"`` ones of the registry.
    """
    chosen = exercises(lesson)
    jobs = [job for one in chosen for job in _jobs(one) if (job.part or "wrong") in answers]
    with _unkept(), ThreadPoolExecutor(2) as pool:
        proofs = list(pool.map(_Job.proof, jobs))
    if "wrong" in answers:
        proofs += [_few(one) for one in chosen if len(one.wrong) < FEWEST_WRONG]
    return proofs


def _jobs(exercise: Exercise) -> Iterator[_Job]:
    yield _Job(exercise, "stub", NOT_ATTEMPTED, "", part="exercises")
    yield _Job(exercise, "solution", PASSED, "", part="solutions")
    for wrong in exercise.wrong:
        yield _Job(exercise, wrong.label, wrong.outcome, wrong.says, source=wrong.source)


def _few(exercise: Exercise) -> Proof:
    wanted = f"at least {FEWEST_WRONG} wrong answers"
    return Proof(exercise.name, "wrong answers", wanted, f"{len(exercise.wrong)} wrong answers")


@contextlib.contextmanager
def _unkept() -> Iterator[None]:
    """Keep the author's own progress out of it, and have the same seeded tables every time."""
    with tempfile.TemporaryDirectory(prefix="labkit-verify-") as folder:
        ours = {"LABKIT_HOME": folder, "LABKIT_LEARNER": LEARNER}
        before = {name: os.environ.get(name) for name in ours}
        os.environ.update(ours)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
