"""Hints, one step at a time, and the solution once it is due."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from labkit.course import sources, store
from labkit.course.result import PASSED, Advice
from labkit.errors import LabkitError

if TYPE_CHECKING:
    from labkit.course.registry import Exercise

# What has been shown since the kernel started, so that "Restart and run all" gives the same text again.
_lock = threading.Lock()
_hints: dict[str, int] = {}
_asked: set[str] = set()


def hint(exercise: Exercise, step: int | None) -> Advice:
    """Hint number ``step`` (1 is the first), or the one after the last that was shown."""
    count = len(exercise.hints)
    if step is not None and not (isinstance(step, int) and 1 <= step <= count):
        raise LabkitError(f"Exercise {exercise.name} has hints 1 to {count}; there is no hint {step!r}.")
    with _lock:
        shown = step or min(_hints.get(exercise.name, 0) + 1, count)
        _hints[exercise.name] = shown
    last = " That was the last hint; solution() shows one way to do it." if shown == count else ""
    return Advice(exercise.name, f"hint {shown} of {count}", exercise.hints[shown - 1] + last)


def solution(exercise: Exercise, reveal: bool) -> Advice:
    """The solution's code, or what has to happen before it is shown."""
    with _lock:
        due = reveal or exercise.name in _asked
        _asked.add(exercise.name)
    if due or store.outcome(exercise.name) == PASSED:
        return Advice(exercise.name, "one solution", sources.text("solutions", exercise.name), code=True)
    text = "It opens once your answer passes. To see it now, ask again, or call solution(reveal=True)."
    return Advice(exercise.name, "solution", text)
