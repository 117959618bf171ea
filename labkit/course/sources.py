"""The code of an exercise as it stands in the notebooks, found by the tag ``exercise:NAME`` of its cells."""

from __future__ import annotations

import ast
import itertools
import json
import linecache
from typing import Any

from labkit.course import files
from labkit.errors import LabkitError

_PRELUDE = "import math\n\nimport numpy as np\n\nimport labkit\nfrom labkit import cuda\n"
_number = itertools.count()


def text(part: str, name: str) -> str:
    """The code of exercise ``name`` in ``part`` ("solutions" or "exercises"), without checks and markers.

    Raises
    ------
    LabkitError
        When the notebook is missing, cannot be read, or has no cell for the exercise.
    """
    path = files.notebook(part, name.split(".")[0])
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError) as error:
        raise LabkitError(f"The notebook {path} cannot be read ({error}).") from error
    chosen = [_code(cell) for cell in cells if _belongs(cell, name)]
    found = "\n\n".join(code for code in map(definitions, chosen) if code)
    if not found:
        raise LabkitError(f"{path} has no code cell with the tag 'exercise:{name}' that defines something.")
    return found


def _belongs(cell: dict[str, Any], name: str) -> bool:
    tags = cell.get("metadata", {}).get("tags", [])
    return cell.get("cell_type") == "code" and f"exercise:{name}" in tags and "solution-only" not in tags


def _code(cell: dict[str, Any]) -> str:
    source = cell["source"]
    lines = (source if isinstance(source, str) else "".join(source)).split("\n")
    return "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!", "### ")))


def definitions(code: str) -> str:
    """What ``code`` defines: imports, functions, classes and plain values, with the comments inside them."""
    lines = code.split("\n")
    kept = [node for node in ast.parse(code).body if _defines(node)]
    return "\n".join(block for node in kept for block in _lines(node, lines))


def _lines(node: ast.stmt, lines: list[str]) -> list[str]:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return lines[first - 1 : node.end_lineno]


def _defines(node: ast.stmt) -> bool:
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)):
        return True
    return isinstance(node, (ast.Assign, ast.AnnAssign)) and not any(
        isinstance(inner, ast.Call) for inner in ast.walk(node)
    )


def answer(code: str, name: str) -> Any:
    """Run ``code`` as a notebook does, after the imports of every lesson; returns what it calls ``name``.

    For the course's own texts only: the code runs in this process.
    """
    label = f"<exercise {next(_number)}>"
    linecache.cache[label] = (len(code), None, code.splitlines(keepends=True), label)  # where inspect looks
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(_PRELUDE, namespace)
    exec(compile(code, label, "exec", dont_inherit=True), namespace)
    if name not in namespace:
        raise LabkitError(f"The code defines no '{name}'.")
    return namespace[name]
