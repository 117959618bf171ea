"""What did the learner hand in: a kernel, a function, something else? And has it been begun at all?"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Sequence
from types import FunctionType
from typing import Any

from labkit.compute.emulator.source import capture
from labkit.course.pack import attribute, unwrap
from labkit.course.sandbox.values import describe, type_name
from labkit.errors import LabkitError

KERNEL = "kernel"
CONFIGURED = "configured kernel"
DEVICE_FUNCTION = "device function"
FUNCTION = "function"
OTHER = "other"
_LAUNCHERS = ("Configured", "_LaunchConfiguration")  # what kernel[grid, block] is: the emulator's, numba's


class Missing:
    """Stands for an answer that is defined nowhere."""


def look_up(name: str) -> Any:
    """The learner's object called ``name``, from the notebook's cells or the running script; else Missing."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    scope = shell.user_ns if shell is not None else vars(sys.modules["__main__"])
    return scope.get(name, Missing)


def kind(answer: Any) -> str:
    """Which of the kinds above ``answer`` is; runs none of its code."""
    made_by = str(attribute(type(answer), "__module__"))
    if "cuda" in made_by.split(".") or made_by.startswith("labkit.compute"):
        if attribute(answer, "py_func") is None:
            return CONFIGURED if type_name(answer) in _LAUNCHERS else OTHER
        device = getattr(answer, "device", False) or getattr(answer, "targetoptions", {}).get("device", False)
        return DEVICE_FUNCTION if device else KERNEL
    if type(unwrap(answer)) is FunctionType:
        return FUNCTION
    return OTHER


def complaint(name: str, wanted: str, answer: Any) -> str:
    """Why ``answer`` is not the ``wanted`` kernel or function called ``name``; empty when it is."""
    found = kind(answer)
    if found == wanted:
        return ""
    if found == CONFIGURED:
        return f"'{name}' came with its [grid, block]; hand in the kernel alone, as in check({name})."
    if found == DEVICE_FUNCTION:
        return f"'{name}' is a device function, and a kernel is asked for: leave out device=True."
    if found == FUNCTION:
        return f"'{name}' is a Python function, and a kernel is asked for: write @cuda.jit above its def."
    if found == KERNEL:
        return f"'{name}' is a kernel, and a Python function is asked for: take @cuda.jit away."
    what = _described(answer)
    how = (
        f"write it with @cuda.jit above  def {name}(...)"
        if wanted == KERNEL
        else f"write it as  def {name}(...)"
    )
    return f"'{name}' should be a {wanted}, and this is {what}; {how}."


def other_form(name: str, form: str, answer: Any) -> str:
    """Say that data of another type than ``form`` was handed in."""
    return f"'{name}' should be a {form}, and this is {_described(answer)}."


def _described(answer: Any) -> str:
    article = "an" if type_name(answer)[0] in "aeiou" else "a"
    return f"{article} {type_name(answer)} ({describe(answer, 40)})"


def wrong_signature(name: str, function: Any, parameters: Sequence[str]) -> str:
    """Why ``function`` cannot be called with ``parameters`` by position; empty when it can."""
    function = unwrap(function)
    try:
        signature = inspect.signature(function, follow_wrapped=False)
        signature.bind(*parameters)
    except TypeError:
        wanted, own = ", ".join(parameters), str(signature)
        return f"{name}({wanted}) is asked for, and yours is {name}{own}: take the same parameters."
    except ValueError:
        return f"'{name}' has no parameters that can be read: write it with def."
    return ""


def is_stub(answer: Any) -> bool:
    """Whether a kernel or function still has an empty body: a docstring, ``pass``, ``...`` or None."""
    function = unwrap(answer)
    try:
        body = capture(function).tree.body
    except (LabkitError, SyntaxError):
        return False
    return all(_says_nothing(line) for line in body)


def _says_nothing(line: ast.stmt) -> bool:
    if isinstance(line, ast.Pass) or (isinstance(line, ast.Return) and line.value is None):
        return True
    if isinstance(line, ast.Expr):
        return isinstance(line.value, ast.Constant)
    if isinstance(line, (ast.Return, ast.Assign)):
        return isinstance(line.value, ast.Constant) and line.value.value is None
    return False
