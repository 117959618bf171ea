"""A Python answer on its way to its own process: its source, and the source or value of every name it refers
to.

The answer's process starts from a clean interpreter, so a check sees what the answer's text says, not what
earlier cells happened to leave behind in its modules.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import inspect
import sys
import textwrap
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.compute.emulator.source import capture
from labkit.course.sandbox import tensors, values
from labkit.errors import LabkitError

LIMIT = 64 * 2**20
_TOO_LARGE = (
    "'{name}' refers to {size} of data ({what}), and a check carries at most 64 MiB: use a smaller '{what}'."
)


def pack(function: Callable[..., Any], name: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A description for JSON, and arrays, from which :mod:`labkit.course.sandbox.unpack` rebuilds
    ``function``.

    Raises
    ------
    LabkitError
        When the function refers to more than 64 MiB of data, or to something that cannot travel.
    """
    packer = _Packer(name)
    try:
        package = packer.source(function)
    except _NoSource:
        package = {"pickle": packer.pickled(function, name)}
    return package, packer.encoder.arrays


class _NoSource(Exception):
    """The text of a function cannot be found, or says less than the function is."""


class _Full(Exception):
    """A pickle has grown beyond what may travel."""


class _Sink:
    """A file in memory with room for so many bytes: what is too large is noticed before it is copied."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.data = bytearray()

    def write(self, piece: Any) -> int:
        size = memoryview(piece).nbytes
        if len(self.data) + size > self.room:
            raise _Full
        self.data += piece
        return size


class _Packer:
    def __init__(self, name: str) -> None:
        self.name = name
        self.encoder = values.Encoder("g", LIMIT)
        self.names: dict[str, dict[str, Any]] = {}
        self.aliases: dict[str, str] = {}
        self.definitions: list[dict[str, Any]] = []
        self._seen: dict[int, str] = {}

    def source(self, function: Callable[..., Any]) -> dict[str, Any]:
        own = self._definition(function)
        return {"name": own, "definitions": self.definitions, "names": self.names, "aliases": self.aliases}

    def _definition(self, thing: Any) -> str:
        """Describe a function or class, after all that it refers to; returns the name its text defines."""
        if id(thing) in self._seen:
            return self._seen[id(thing)]
        plain = unwrap(thing)
        text, first_line = _text(plain)
        own, tree = _defined_name(text)
        self._seen[id(thing)] = own
        scope = _scope(plain)
        for name in _referred(tree):
            if name in scope and name != own and name not in self.names and name not in self.aliases:
                self._refer(name, scope[name])
        self.definitions.append({"source": text, "first_line": first_line})
        return own

    def _refer(self, name: str, value: Any) -> None:
        if issubclass(type(value), types.ModuleType):
            self.names[name] = {"module": value.__name__}
        elif (found := _importable(value)) is not None:
            self.names[name] = {"import": list(found)}
        elif issubclass(type(value), type) or type(unwrap(value)) is types.FunctionType:
            own = self._definition(value)
            if own != name:
                self.aliases[name] = own
        else:
            self.names[name] = self._value(name, value)

    def _value(self, name: str, value: Any) -> dict[str, Any]:
        size = _bytes(value)
        if size > self.encoder.left:
            text = f"{size / 2**20:,.0f} MiB"
            raise LabkitError(_TOO_LARGE.format(name=self.name, size=text, what=name))
        form = self.encoder.encode(value)
        return {"pickle": self.pickled(value, name)} if _has_other(form) else {"value": form}

    def pickled(self, value: Any, name: str) -> str:
        """The name of an array with ``value`` pickled; only the answer's own process reads it."""
        try:
            import cloudpickle

            sink = _Sink(self.encoder.left)
            cloudpickle.Pickler(sink, protocol=5).dump(value)
        except _Full:
            raise LabkitError(
                _TOO_LARGE.format(name=self.name, size=f"more than {sink.room / 2**20:,.0f} MiB", what=name)
            ) from None
        except Exception as error:
            what = "itself" if value is name else f"'{name}' ({type(value).__name__})"
            raise LabkitError(
                f"'{self.name}' cannot be checked as it is: {what} cannot travel to the process that runs "
                f"the check; "
                "define the function in a cell of its own, and let it use numbers, arrays and functions."
            ) from error
        self.encoder.left -= len(sink.data)
        key = f"p{len(self.encoder.arrays)}"
        self.encoder.arrays[key] = np.frombuffer(sink.data, np.uint8)
        return key


def unwrap(thing: Any) -> Any:
    """The function inside decorators that keep it, such as ``functools.lru_cache`` or ``numba.njit``."""
    for _ in range(20):
        inner = attribute(thing, "__wrapped__") or attribute(thing, "py_func")
        if inner is None or issubclass(type(thing), type):
            break
        thing = inner
    return thing


def attribute(thing: Any, name: str) -> Any:
    """An attribute that is surely there or None: objects may raise anything when they are asked for one."""
    try:
        return getattr(thing, name, None)
    except Exception:
        return None


def _text(thing: Any) -> tuple[str, int]:
    """Source text without indentation, and its first line in the learner's cell."""
    try:
        if inspect.isfunction(thing) and thing.__name__ != "<lambda>":
            found = capture(thing)
            return found.text, found.first_line
        lines, first = inspect.getsourcelines(thing)
    except (OSError, TypeError, IndexError, LabkitError) as error:
        raise _NoSource from error
    return textwrap.dedent("".join(lines)), max(first, 1)


def _defined_name(text: str) -> tuple[str, ast.AST]:
    """The one name that ``text`` defines, by ``def``, ``class`` or ``name = lambda``."""
    try:
        body = ast.parse(text).body
    except SyntaxError as error:
        raise _NoSource from error
    if len(body) != 1 or any(isinstance(node, ast.Nonlocal) for node in ast.walk(body[0])):
        raise _NoSource
    node = body[0]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return node.name, node
    if (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Lambda)
        and isinstance(node.targets[0], ast.Name)
    ):
        return node.targets[0].id, node
    raise _NoSource


def _referred(tree: ast.AST) -> list[str]:
    """Every name that is read anywhere in ``tree``, once, in order."""
    return list(dict.fromkeys(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)))


def _scope(thing: Any) -> dict[str, Any]:
    """What names mean where ``thing`` was defined."""
    if isinstance(thing, type):
        return vars(sys.modules.get(thing.__module__, builtins))
    scope = dict(thing.__globals__)
    for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=False):
        try:
            scope[name] = cell.cell_contents
        except ValueError:  # a local name that has no value yet
            continue
    return scope


def _importable(value: Any) -> tuple[str, str] | None:
    """Module and name from which another process can import this very object, if there are any."""
    module, name = attribute(value, "__module__"), attribute(value, "__qualname__")
    if issubclass(type(value), np.ufunc):
        module, name = "numpy", value.__name__
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__" or "<" in name:
        return None
    loaded = sys.modules.get(module)
    if loaded is None or not getattr(loaded, "__file__", True):
        return None
    found: Any = loaded
    for part in name.split("."):
        found = attribute(found, part)
    return (module, name) if found is value and _file_backed(module) else None


def _file_backed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _bytes(value: Any, depth: int = 0) -> int:
    """Roughly how many bytes ``value`` holds; long containers are judged by their length."""
    kind = type(value)
    if issubclass(kind, np.ndarray):
        return int(value.nbytes)
    if tensors.is_tensor(value):
        return tensors.size(value)
    if kind in (list, tuple, set, frozenset, dict) and depth < 4:
        items = list(value.values()) if kind is dict else list(value) if len(value) < 10_000 else []
        return object.__sizeof__(value) + sum(_bytes(item, depth + 1) for item in items)
    return _size(value)


def _size(value: Any) -> int:
    try:
        return sys.getsizeof(value)
    except Exception:
        return object.__sizeof__(value)


def _has_other(form: Any) -> bool:
    if isinstance(form, dict):
        return "other" in form or any(_has_other(content) for content in form.values())
    return isinstance(form, list) and any(_has_other(item) for item in form)
