"""A notebook's code cells, run in order outside Jupyter: by IPython where it is installed, else as plain Python."""

from __future__ import annotations

import ast
import importlib.util
import json
import linecache
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from labkit.compute.run import guarded
from labkit.errors import LabkitError

# Magics that change nothing about what the code computes: without IPython they are left out.
HARMLESS = ("%matplotlib", "%load_ext", "%config", "%%time", "%%capture", "%autoreload", "%reload_ext")


def run_notebook(path: Path, module: ModuleType) -> int:
    """Run the cells until one fails; 0, or 1 after an error, or what the notebook's ``sys.exit`` says."""
    execute = _by_ipython(module) or _plainly(path, module)
    for number, source in code_cells(path):
        status = execute(number, source)
        if status is not None:
            if status:
                print(f"(in code cell {number} of {path.name})", file=sys.stderr)
            return status
    return 0


def code_cells(path: Path) -> Iterator[tuple[int, str]]:
    """Number (from 1) and source of each code cell that is not empty."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError):
        raise LabkitError(
            f"'{path}' is not a Jupyter notebook of format 4: open and save it in Jupyter."
        ) from None
    return ((number, source) for number, source in enumerate(sources, 1) if source.strip())


def _by_ipython(module: ModuleType) -> Callable[[int, str], int | None] | None:
    """Runs a cell as IPython does, magics and all; None when IPython is not installed."""
    try:
        from IPython.core.interactiveshell import InteractiveShell
        from traitlets.config import Config
    except ImportError:
        return None
    config = Config()
    config.HistoryManager.hist_file = (
        ":memory:"  # what has run is remembered, for kernels' sources, but not kept
    )
    if not sys.stdout.isatty():
        config.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell.instance(config=config, user_module=module, user_ns=module.__dict__)

    plots = importlib.util.find_spec("matplotlib") is not None

    def execute(number: int, source: str) -> int | None:
        result = shell.run_cell(source if plots else _without_plots(source), store_history=True)
        error = result.error_before_exec or result.error_in_exec
        if isinstance(error, SystemExit):
            return error.code if isinstance(error.code, int) else int(error.code is not None)
        return None if error is None else 130 if isinstance(error, KeyboardInterrupt) else 1

    return execute


def _without_plots(source: str) -> str:
    """The cell without %matplotlib, for which matplotlib would have to be installed."""
    return re.sub(r"(?m)^%matplotlib.*$", "", source)


def _plainly(path: Path, module: ModuleType) -> Callable[[int, str], int | None]:
    """Runs a cell as plain Python and prints the value of its last expression."""

    def execute(number: int, source: str) -> int | None:
        name = f"<cell {number} of {path.name}>"
        text = without_magics(source, number)
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        ended: list[bool] = []

        def action() -> None:
            for code in _codes(text, name):
                exec(code, module.__dict__)
            ended.append(True)

        status = guarded(action)
        return None if ended else status

    return execute


def _codes(text: str, name: str) -> Iterator:
    """The cell's statements, and its last expression such that its value is shown."""
    tree = ast.parse(text, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    yield compile(tree, name, "exec")
    if last is not None and not text.rstrip().endswith(";"):
        yield compile(ast.Interactive([last]), name, "single")
    elif last is not None:
        yield compile(ast.Module([last], []), name, "exec")


def without_magics(source: str, number: int) -> str:
    """The cell without harmless magics; line numbers stay.

    Raises
    ------
    LabkitError
        For magics and shell commands that only IPython can run.
    """
    rows = source.splitlines(keepends=True)
    for k, row in enumerate(rows):
        word = row.strip()
        if word.startswith(HARMLESS):
            rows[k] = "\n"
        elif word.startswith(("!", "%%")) or (word.startswith("%") and not _continues(rows[:k])):
            raise LabkitError(
                f"Code cell {number} uses '{word.split()[0]}', which only IPython can run: pip install ipython, or "
                "take the line out."
            )
    return "".join(rows)


def _continues(before: list[str]) -> bool:
    """Whether a line that starts with % goes on an expression of the lines before."""
    try:
        ast.parse("".join(before))
    except SyntaxError:
        return True
    return False
