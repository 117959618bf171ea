"""Exercises, their checks, and what a learner has passed so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labkit.course.registry import Exercise
    from labkit.course.store import Progress


def exercise(name: str) -> Exercise:
    """The exercise called ``name``, for example ``"01.saxpy"``; its ``check``, ``hint`` and ``solution`` go
    on.

    Raises
    ------
    LabkitError
        When there is none of that name; the message suggests the nearest.
    """
    from labkit.course import registry

    return registry.exercise(name)


def exercises(lesson: str | None = None) -> tuple[Exercise, ...]:
    """All exercises in the order of the course, or those of one lesson (``"01"``)."""
    from labkit.course import registry

    return registry.exercises(lesson)


def progress() -> Progress:
    """Which exercises this learner has passed, tried, or not begun."""
    from labkit.course import store

    return store.summary()
