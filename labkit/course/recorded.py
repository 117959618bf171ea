"""Checks of answers that work on an object: a modelled card, a counted disk.

Such an object cannot travel to the process that runs the answer, and an answer's word about it would be worth little.
So the object is made there, and what comes back is the plain record of what was done with it, which is judged here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labkit.course.checks import FunctionCheck


@dataclass(frozen=True)
class RecordedCheck(FunctionCheck):
    """A function check whose calls hold plain figures; ``around`` gives the function that makes the object from them.

    ``around(answer)`` returns a function of the calls' arguments that runs in the answer's process and returns plain
    data. Its names start with an underscore and ``labkit``, so that they meet none of the answer's own.
    """

    around: Callable[[Callable[..., Any]], Callable[..., Any]]
