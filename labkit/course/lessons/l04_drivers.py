"""Lesson 04: the functions around answers that work on torch's objects; they travel as text, so they are short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Answer = Callable[..., Any]


def accumulate(answer: Answer) -> Answer:
    """For ``answer(model, loss_fn, optimizer, batches, group)``."""
    _labkit_answer = answer

    def _labkit_recorded(sizes, group, dtype):
        from labkit.course.lessons.l04_record import accumulate

        return accumulate(_labkit_answer, sizes, group, dtype)

    return _labkit_recorded


def scaling(answer: Answer) -> Answer:
    """For ``answer(weights, backward, scaler, lr, max_norm)``."""
    _labkit_answer = answer

    def _labkit_recorded(scale, patience, gradients, special):
        from labkit.course.lessons.l04_record import scaling

        return scaling(_labkit_answer, scale, patience, gradients, special)

    return _labkit_recorded


def mixed(answer: Answer) -> Answer:
    """For ``answer(master, forward, lr, scale)``."""
    _labkit_answer = answer

    def _labkit_recorded(steps, scale):
        from labkit.course.lessons.l04_record import mixed

        return mixed(_labkit_answer, steps, scale)

    return _labkit_recorded
