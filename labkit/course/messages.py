"""The sentences that checks of every lesson share; a lesson's own are in its files under ``lessons/``."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np

from labkit.course.compare import number
from labkit.course.sandbox import Limits, Run
from labkit.course.sandbox.tensors import TensorArray, is_tensor
from labkit.course.sandbox.values import Foreign, describe

RIGHT_BY_LUCK = "the values came out right this time; on a GPU, where threads run in any order, they may not."
_EXITS = {
    "SystemExit": "return a value instead of leaving the program",
    "KeyboardInterrupt": "return a value instead of interrupting",
}


def missing(name: str) -> str:
    return f"There is no '{name}' yet: run the cell that defines it, then check again."


def stub(name: str) -> str:
    return f"'{name}' is still as it was given: replace the marked line, run the cell, and check again."


def passed(praise: str, count: int, what: str) -> str:
    several = "" if count == 1 else "es" if what.endswith("ch") else "s"
    return f"{praise} ({count} {what}{several} compared.)"


def stray(name: str, offset: int) -> str:
    side = (
        f"{-offset} elements before its start" if offset < 0 else f"at flat position {offset}, after its end"
    )
    return f"Your kernel wrote outside '{name}': {side}."


def input_changed(name: str) -> str:
    return f"Your kernel changed its input '{name}': only the output may be written."


def findings(found: list[list[Any]]) -> tuple[list[str], tuple[str, ...]]:
    """What fails an answer, and the rest as notes; each finding is (kind, line, message, severity).

    A race is one even where the sanitizer only warns of it: no exercise waits for a flag in memory.
    """
    serious = [
        severity == "error" or (kind, severity) == ("race", "warning") for kind, _, _, severity in found
    ]
    errors = [str(item[2]) for item, is_error in zip(found, serious, strict=True) if is_error]
    return errors, tuple(str(item[2]) for item, is_error in zip(found, serious, strict=True) if not is_error)


def emulator_stopped(raised: dict[str, Any]) -> str:
    said = f"{raised['type']}: {raised['message']}"
    return f"The emulator could not go on ({said}); please report the kernel that did it."


def raised(name: str, error: dict[str, Any]) -> str:
    """An exception, as one sentence with the line of the learner's cell."""
    kind, text, line = error["type"], error["message"], error["line"]
    place = f" in line {line} of its cell" if line else ""
    advice = f"; {_EXITS[kind]}" if kind in _EXITS else ""
    said = f": {text.removesuffix('.')}" if text else ""
    return f"'{name}' raised {kind}{place}{said}{advice}."


def ended(name: str, run: Run, limits: Limits) -> str:
    """Why there is no result."""
    if run.end == "timeout":
        return (
            f"'{name}' was stopped after {limits.seconds:g} s: does a loop never end? "
            "Look at what should make its condition false."
        )
    if run.end == "memory":
        return f"'{name}' was stopped when it used more than {limits.memory / 2**20:,.0f} MiB of memory."
    if run.end == "processes":
        return f"'{name}' was stopped when it had started more than 100 processes: no answer needs others."
    if run.unreadable:
        return unreadable(name, run.unreadable)
    if run.end == "exited" and run.status < 0:
        return f"The process of '{name}' was ended by {_signal(-run.status)}."
    if run.end == "exited":
        return f"'{name}' ended its process (exit status {run.status}) before it returned a value."
    return f"The process that ran '{name}' was lost, and its result with it: check again."


def too_large(name: str) -> str:
    return f"'{name}' holds more than a check can look at: give it the few values that are asked for."


def unreadable(name: str, why: str) -> str:
    return (
        f"'{name}' left a result that cannot be read ({why}): something in it wrote to the check's own files."
    )


def _signal(value: int) -> str:
    try:
        return signal.Signals(value).name
    except ValueError:
        return f"signal {value}"


def call(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={shown(value)}' for key, value in arguments.items())})"


def shown(value: Any) -> str:
    """An argument or a returned value, short enough for a line."""
    text = _shown(value)
    return text if len(text) <= 160 else text[:159] + "…"


def _shown(value: Any) -> str:
    if isinstance(value, Foreign):
        return value.text
    if isinstance(value, (list, tuple)) and len(value) <= 12:
        inside = ", ".join(shown(item) for item in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
    if isinstance(value, (list, tuple, dict)):
        return f"a {type(value).__name__} of {len(value)} items"
    if is_tensor(value):
        return f"a {describe(value)}"
    if isinstance(value, TensorArray) and value.torch_dtype:
        return f"a tensor of shape {value.shape}, dtype {value.torch_dtype}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}, dtype {value.dtype}"
    if isinstance(value, (str, bytes)) and len(value) > 60:
        return f"a text of {len(value)} characters"
    if isinstance(value, int) and value.bit_length() > 64:
        return f"an integer of {value.bit_length()} bits"
    return number(value) if isinstance(value, (int, float, np.generic)) else repr(value)
