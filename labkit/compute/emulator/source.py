"""A kernel's source: its syntax tree, its lines, and what its free names stand for."""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import linecache
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType
from typing import Any

from labkit.errors import KernelError


@dataclass(frozen=True)
class Source:
    """The text of one function and the meaning of the names it does not define.

    Attributes
    ----------
    name : str
        The function's name.
    text : str
        Its source, dedented, decorators included.
    first_line : int
        Line of ``text``'s first line in the learner's cell or file (1-based).
    names : mapping
        Free name to value; looked up when the kernel is first launched, as numba does.
    """

    name: str
    text: str
    first_line: int
    names: Mapping[str, Any] = field(repr=False, compare=False)

    @cached_property
    def tree(self) -> ast.FunctionDef:
        tree = ast.parse(self.text).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise KernelError(
                f"{self.name} is not written with 'def': a kernel needs a function of its own, "
                "so move the body into 'def kernel(...):' and decorate that.",
                kind="unsupported",
                line=self.first_line,
            )
        ast.increment_lineno(tree, self.first_line - 1)
        return tree

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        return tuple(a.arg for a in (*self.tree.args.posonlyargs, *self.tree.args.args))

    def line(self, number: int | None) -> str:
        """The text of a line, stripped; empty when it is not one of this function's."""
        lines = self.text.splitlines()
        index = (number or 0) - self.first_line
        return lines[index].strip() if 0 <= index < len(lines) else ""

    def numbered(self) -> dict[int, str]:
        """Line number to text, stripped."""
        return {self.first_line + k: text.strip() for k, text in enumerate(self.text.splitlines())}

    @cached_property
    def assigned(self) -> frozenset[str]:
        """The names that the function binds: its parameters and every name it assigns."""
        return frozenset(self.parameters) | stored_names(self.tree.body)

    @cached_property
    def free_names(self) -> tuple[str, ...]:
        """The names that the body reads and does not bind, in order of appearance."""
        nodes = (n for statement in self.tree.body for n in ast.walk(statement))
        read = dict.fromkeys(n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        return tuple(name for name in read if name not in self.assigned)


def stored_names(body: list[ast.stmt]) -> frozenset[str]:
    """The names that some statements assign, loop variables included."""
    nodes = (n for statement in body for n in ast.walk(statement))
    return frozenset(n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def scope_of(function: Callable) -> Mapping[str, Any]:
    """A function's closure, globals and builtins, read when asked."""
    return _Scope(function)


class _Scope(Mapping[str, Any]):
    """A function's closure, globals and builtins, read when asked."""

    def __init__(self, function: Callable):
        self.function = function

    def __getitem__(self, name: str) -> Any:
        code = self.function.__code__
        if name in code.co_freevars:
            return (self.function.__closure__ or ())[code.co_freevars.index(name)].cell_contents
        spaces: tuple[dict[str, Any], ...] = (self.function.__globals__, vars(builtins))
        for space in spaces:
            if name in space:
                return space[name]
        raise KeyError(name)

    def __iter__(self):
        return iter(self.function.__code__.co_names)

    def __len__(self) -> int:
        return len(self.function.__code__.co_names)


def capture(function: Callable) -> Source:
    """The source of a function, read now: a cell may be edited and run again before the kernel is launched.

    Raises
    ------
    KernelError
        When Python has no source for it (made by ``exec``, typed into ``python -c``, or a lambda).
    """
    if not inspect.isfunction(function):
        raise KernelError(
            f"cuda.jit needs a Python function, but got {type(function).__name__}: "
            "write '@cuda.jit' on the line above 'def kernel(...):'.",
            kind="unsupported",
        )
    name = function.__name__
    if name == "<lambda>":
        raise KernelError(
            "A lambda cannot be a kernel: give it a name with 'def kernel(...):'.",
            kind="unsupported",
            line=function.__code__.co_firstlineno,
        )
    try:
        lines, first_line = inspect.getsourcelines(function)
    except (OSError, TypeError):
        found = _from_history(function)
        if found is None:
            raise KernelError(
                f"The source of kernel '{name}' cannot be found (was it made by exec, or typed at a '>>>' prompt?): "
                "put it into a notebook cell or a file, because the kernel is compiled from its source.",
                kind="unsupported",
            ) from None
        lines, first_line = found
    return Source(name, textwrap.dedent("".join(lines)), max(first_line, 1), _Scope(function))


def _from_history(function: Callable) -> tuple[list[str], int] | None:
    """Look the function up in what has been run: cells under %%time and the like compile under another name."""
    candidates = ["".join(entry[2]) for entry in list(linecache.cache.values()) if len(entry) > 2]
    try:
        # the cells as they were typed: what "In" holds has magics turned into calls, and their bodies into strings
        candidates += list(get_ipython().history_manager.input_hist_raw)  # type: ignore[name-defined]
    except (NameError, AttributeError):
        pass
    for text in reversed(candidates):
        if f"def {function.__name__}" not in text:
            continue
        found = _definition_in(text, function)
        if found:
            return found
    return None


def _definition_in(text: str, function: Callable) -> tuple[list[str], int] | None:
    body = "\n".join("" if row.startswith("%") else row for row in text.splitlines())
    try:
        tree = ast.parse(body)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__:
            start = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            rows = body.splitlines(keepends=True)[start - 1 : node.end_lineno]
            if _same_code(node, function):
                return rows, start
    return None


def _same_code(node: ast.FunctionDef, function: Callable) -> bool:
    """Whether a definition is this function: same parameters and same names and constants in its code."""
    bare = copy.copy(node)
    bare.decorator_list = []
    return same_body(bare, function.__code__)


def same_body(node: ast.FunctionDef | ast.Lambda, code: CodeType) -> bool:
    """Whether a function's syntax compiles to this code."""
    statement = node if isinstance(node, ast.FunctionDef) else ast.copy_location(ast.Expr(node), node)
    constants = compile(ast.Module([statement], []), "<kernel>", "exec").co_consts
    compiled = next((c for c in constants if inspect.iscode(c) and c.co_name == code.co_name), None)
    if compiled is None:
        return False
    return (compiled.co_names, compiled.co_varnames, compiled.co_code) == (
        code.co_names,
        code.co_varnames,
        code.co_code,
    )
