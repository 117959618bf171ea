"""The Python that can run on a device: checked when a kernel is decorated, with the line and what to write instead."""

from __future__ import annotations

import ast

from labkit.compute.emulator.source import Source
from labkit.errors import KernelError

INSTEAD: dict[type[ast.AST], str] = {
    ast.Try: "a 'try' block; the device has no exceptions: test the condition with 'if'",
    ast.TryStar: "a 'try' block; the device has no exceptions: test the condition with 'if'",
    ast.Raise: "'raise'; the device has no exceptions: write an error code into an array",
    ast.With: "a 'with' block; do that on the host, around the launch",
    ast.AsyncWith: "a 'with' block; do that on the host, around the launch",
    ast.ClassDef: "a class; use arrays and plain functions",
    ast.FunctionDef: "a function inside the kernel; define it outside with @cuda.jit(device=True)",
    ast.AsyncFunctionDef: "an async function; threads of a kernel already run side by side",
    ast.Lambda: "a lambda; define a function outside with @cuda.jit(device=True)",
    ast.ListComp: "a list comprehension; the device has no lists: use a loop and cuda.local.array",
    ast.SetComp: "a set comprehension; use a loop and an array",
    ast.DictComp: "a dictionary comprehension; use a loop and arrays",
    ast.GeneratorExp: "a generator; use a loop",
    ast.List: "a list; the device has no lists: use a tuple or cuda.local.array",
    ast.Set: "a set; use an array",
    ast.Dict: "a dictionary; use arrays",
    ast.Yield: "'yield'; a kernel writes its results into an array",
    ast.YieldFrom: "'yield'; a kernel writes its results into an array",
    ast.Await: "'await'; threads of a kernel already run side by side",
    ast.JoinedStr: "a formatted string; the device has no strings",
    ast.Import: "'import'; import outside the kernel",
    ast.ImportFrom: "'import'; import outside the kernel",
    ast.Global: "'global'; a kernel cannot assign to globals: pass an array and write into it",
    ast.Nonlocal: "'nonlocal'; a kernel cannot assign to outer names: pass an array and write into it",
    ast.Delete: "'del'; nothing needs to be freed inside a kernel",
    ast.Starred: "'*arguments'; name each argument",
    ast.NamedExpr: "':='; assign on a line of its own",
    ast.Match: "'match'; use if and elif",
    ast.AsyncFor: "'async for'; use 'for'",
}


def check(source: Source) -> None:
    """Refuse what no kernel can contain.

    Raises
    ------
    KernelError
        Of kind ``unsupported``, naming the construct, the line, and what to write instead.
    """
    arguments = source.tree.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
        raise unsupported(
            source, source.tree, "*args, **kwargs or default values; name each parameter plainly"
        )
    for position, statement in enumerate(source.tree.body):
        if position == 0 and _is_docstring(statement):
            continue
        for node in ast.walk(statement):
            if type(node) in INSTEAD:
                raise unsupported(source, node, INSTEAD[type(node)])


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def unsupported(source: Source, node: ast.AST, what: str) -> KernelError:
    """The error for a construct: ``what`` completes "a kernel cannot use ..."."""
    line = getattr(node, "lineno", source.first_line)
    text = source.line(line)
    shown = f" ({text})" if text else ""
    return KernelError(
        f"Kernel '{source.name}', line {line}{shown}: a kernel cannot use {what}.",
        kind="unsupported",
        line=line,
    )
