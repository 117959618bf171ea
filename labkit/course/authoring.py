"""``labkit author sync``: exercises/ generated from solutions/, which are their single source.

What a learner has to write stands between ``### BEGIN SOLUTION`` and ``### END SOLUTION`` in a solution; here
it becomes a stub. Outputs go, and so do cells tagged ``solution-only``. The same solution always gives the
same bytes, so that a difference in exercises/ means that somebody forgot to generate them.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from pathlib import Path
from typing import Any

from labkit.course import files
from labkit.errors import LabkitError

CODE_STUB = "pass  # your code here"
ANSWER_STUB = "None  # your answer here"
SOLUTION_ONLY = "solution-only"
_PLACE = "@place of a solution@"  # what nbgrader leaves, before the stub that fits is known
_REGION = re.compile(r"^([ \t]*)### BEGIN SOLUTION\s*\n(.*?)^\s*### END SOLUTION", re.DOTALL | re.MULTILINE)


def sync_main(arguments: list[str]) -> int:
    """Write exercises/ anew; with ``--check`` only compare, and return 1 when they have drifted."""
    parser = argparse.ArgumentParser(prog="labkit author sync", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 on a difference")
    options = parser.parse_args(arguments)
    root = files.lessons_root()
    drifted = drift(root)
    for path in drifted:
        print(f"{'drifted' if options.check else 'written'}: {path.relative_to(root).as_posix()}")
    if options.check:
        if drifted:
            print("Run 'labkit author sync' and commit exercises/.", file=sys.stderr)
        return int(bool(drifted))
    for path, content in drifted.items():
        _put(path, content)
    if not drifted:
        print("exercises/ is up to date.")
    return 0


def drift(root: Path) -> dict[Path, str | None]:
    """The files of exercises/ that are not what solutions/ gives, with what they should hold.

    None stands for a notebook whose solution is gone.
    """
    wanted: dict[Path, str | None] = {
        root / "exercises" / solution.name: generate(solution.read_text(encoding="utf-8"), solution.name)
        for solution in sorted((root / "solutions").glob("*.ipynb"))
    }
    stale = {path: None for path in (root / "exercises").glob("*.ipynb") if path not in wanted}
    return {path: text for path, text in {**wanted, **stale}.items() if _content(path) != text}


def generate(solution: str, name: str) -> str:
    """The text of the exercise notebook that belongs to the text of a solution notebook.

    Raises
    ------
    LabkitError
        When nbgrader is missing, when a marker has no partner, or when cells have no ids (they would differ
        at every run).
    """
    import nbformat

    notebook = nbformat.reads(solution, as_version=nbformat.NO_CONVERT)
    if (notebook.nbformat, notebook.nbformat_minor) < (4, 5):
        raise LabkitError(f"solutions/{name} has no cell ids: open it in JupyterLab 4 and save it again")
    travelling = [cell for cell in notebook.cells if SOLUTION_ONLY not in cell.metadata.get("tags", [])]
    notebook.cells = [_for_learner(cell, name) for cell in travelling]
    kept = {key: notebook.metadata[key] for key in ("kernelspec",) if key in notebook.metadata}
    notebook.metadata = nbformat.from_dict({**kept, "language_info": {"name": "python"}})
    return nbformat.writes(notebook, version=nbformat.NO_CONVERT) + "\n"


def _for_learner(cell: Any, name: str) -> Any:
    """The cell with its solution turned into a stub and without outputs."""
    if cell.cell_type != "code":
        return cell
    cell.source = clear(cell.source, f"solutions/{name}, cell {cell.id}")
    cell.outputs, cell.execution_count = [], None
    for key in ("execution", "collapsed", "scrolled"):
        cell.metadata.pop(key, None)
    return cell


def clear(source: str, where: str) -> str:
    """`source` with every solution region replaced by its stub; `where` names it in an error."""
    stubs = [_stub(match) for match in _REGION.finditer(source)]
    if not len(stubs) == source.count("BEGIN SOLUTION") == source.count("END SOLUTION"):
        raise LabkitError(f"{where}: a solution marker has no partner, or shares its line with code")
    cleared = _clear_with_nbgrader(source, where)
    for stub in stubs:
        cleared = cleared.replace(_PLACE, stub, 1)
    return cleared


def _stub(region: re.Match[str]) -> str:
    """What stands in for one region: an answer when the region is a value or assigns one, else code."""
    before = region.string[: region.start()].rstrip()
    if before.endswith(("(", "=", "[", ",")):
        return ANSWER_STUB
    indent, body = region.groups()
    names = [] if indent else _assigned(body)
    return "\n".join(f"{name} = {ANSWER_STUB}" for name in names) or CODE_STUB


def _assigned(body: str) -> list[str]:
    """The plain names that the statements of `body` assign, each once; none when it is not plain Python."""
    try:
        statements = ast.parse(body).body
    except SyntaxError:
        return []
    targets = [target for item in statements if isinstance(item, ast.Assign) for target in item.targets]
    return list(dict.fromkeys(target.id for target in targets if isinstance(target, ast.Name)))


def _clear_with_nbgrader(source: str, where: str) -> str:
    """nbgrader's own preprocessor on one cell, so that courses built on nbgrader read the same markers."""
    try:
        from nbformat.v4 import new_code_cell
        from nbgrader.preprocessors import ClearSolutions
    except ImportError as error:
        raise LabkitError(
            f"{error.name} is not installed, and authors need it: "
            f"run '{sys.executable} -m pip install \"gpu-labkit[test]\"'"
        ) from error
    clearer = ClearSolutions(code_stub={"python": _PLACE}, enforce_metadata=False)
    try:
        cell, _ = clearer.preprocess_cell(new_code_cell(source), {"language": "python"}, 0)
    except RuntimeError as error:
        raise LabkitError(f"{where}: {error}") from error
    return str(cell.source)


def _content(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def _put(path: Path, content: str | None) -> None:
    if content is None:
        path.unlink()
    else:
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="\n")
