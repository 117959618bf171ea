"""Rebuild a Python answer from its source and the names it refers to, inside the answer's own process."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.course.sandbox import tensors, values

FILENAME = "<your answer>"


def function(package: dict[str, Any], arrays: dict[str, np.ndarray]) -> Callable[..., Any]:
    """The function that :func:`labkit.course.pack.pack` described; runs the learner's definitions."""
    if "pickle" in package:
        import pickle  # what the learner's own notebook wrote, read in the learner's own process

        return pickle.loads(arrays[package["pickle"]].tobytes())
    namespace: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins}
    for name, form in package["names"].items():
        namespace[name] = _value(form, arrays)
    for definition in package["definitions"]:
        _define(definition, namespace)
    for alias, name in package["aliases"].items():
        namespace[alias] = namespace[name]
    return namespace[package["name"]]


def _value(form: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    ((kind, content),) = form.items()
    if kind == "module":
        return importlib.import_module(content)
    if kind == "import":
        return functools.reduce(getattr, content[1].split("."), importlib.import_module(content[0]))
    if kind == "pickle":
        import pickle

        return pickle.loads(arrays[content].tobytes())
    return values.decode(content, arrays, tensors.to_tensor)


def _define(definition: dict[str, Any], namespace: dict[str, Any]) -> None:
    """Run one definition under the line numbers it has in the learner's cell."""
    tree = ast.parse(definition["source"], FILENAME)
    ast.increment_lineno(tree, definition["first_line"] - 1)
    exec(compile(tree, FILENAME, "exec", dont_inherit=True), namespace)
