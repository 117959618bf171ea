"""Functions of one element, such as a ``@vectorize`` or ``@cuda.reduce`` body, made callable inside kernels."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable
from typing import Any

from labkit.compute.emulator.kernel import EmulatedKernel
from labkit.compute.emulator.source import Source, same_body, scope_of
from labkit.compute.emulator.source import capture as capture_function
from labkit.compute.emulator.values import Intrinsic
from labkit.errors import KernelError


def device_function(function: Any, signature: Any = None) -> EmulatedKernel:
    """The device function of a ``def``, a lambda, or what a decorator of numba made of one."""
    if isinstance(function, EmulatedKernel):
        return EmulatedKernel(function.source, function.py_func, True, signature)
    function = getattr(function, "py_func", function)
    source = capture_lambda(function) if _is_lambda(function) else capture_function(function)
    return EmulatedKernel(source, None, True, signature)


def _is_lambda(function: Any) -> bool:
    return inspect.isfunction(function) and function.__name__ == "<lambda>"


def capture_lambda(function: Callable) -> Source:
    """A lambda as a function of one ``return``.

    Raises
    ------
    KernelError
        When its source cannot be found.
    """
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename))
    try:
        nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Lambda)]
    except SyntaxError:
        nodes = []
    for node in nodes:
        if node.lineno == code.co_firstlineno and same_body(node, code):
            body = f"def function({ast.unparse(node.args)}): return {ast.unparse(node.body)}"
            return Source("lambda", body, node.lineno, scope_of(function))
    raise KernelError(
        "The source of this lambda cannot be found: write the function with 'def' in a cell or a file.",
        kind="unsupported",
    )


def generated(text: str, **names: Any) -> EmulatedKernel:
    """A kernel from text of labkit's own; ``grid`` and the given names are there."""
    name = text[4 : text.index("(")]
    return EmulatedKernel(Source(name, text, 1, {"grid": Intrinsic("grid"), **names}))
