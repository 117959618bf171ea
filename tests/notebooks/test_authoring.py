"""Exercises come from solutions: the stubs, what does not travel, and that nothing has drifted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from labkit.course import authoring, files
from labkit.errors import LabkitError


@pytest.fixture(autouse=True)
def _nbgrader(require: Callable[..., None]) -> None:
    require("nbgrader")


KERNEL = """@cuda.jit
def double(x, out):
    i = cuda.grid(1)
    ### BEGIN SOLUTION
    if i < x.size:
        out[i] = 2 * x[i]
    ### END SOLUTION
"""


def solution_notebook(*cells: nbformat.NotebookNode) -> str:
    kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.writes(nbformat.v4.new_notebook(cells=list(cells), metadata={"kernelspec": kernelspec}))


def code(source: str, *tags: str, **rest: object) -> nbformat.NotebookNode:
    return nbformat.v4.new_code_cell(source, metadata={"tags": list(tags)}, **rest)


def test_no_exercise_has_drifted_from_its_solution() -> None:
    assert files.notebooks("exercises")
    assert [path.name for path in authoring.drift(files.lessons_root())] == []


@pytest.mark.parametrize(
    ("solution", "exercise"),
    [
        (KERNEL, KERNEL.split("    ###")[0] + "    pass  # your code here\n"),
        ("### BEGIN SOLUTION\nx = 1\nx = 2\ny = 3\n### END SOLUTION",
         "x = None  # your answer here\ny = None  # your answer here"),
        ("n = (\n    ### BEGIN SOLUTION\n    7\n    ### END SOLUTION\n)",
         "n = (\n    None  # your answer here\n)"),
        ("### BEGIN SOLUTION\nprint(7)\n### END SOLUTION", "pass  # your code here"),
        ("### BEGIN SOLUTION\n%matplotlib\n### END SOLUTION", "pass  # your code here"),
        ("def f():\n    ### BEGIN SOLUTION\n    a = 1\n    ### END SOLUTION\n"
         "def g():\n    ### BEGIN SOLUTION\n    return 2\n    ### END SOLUTION",
         "def f():\n    pass  # your code here\ndef g():\n    pass  # your code here"),
        ("untouched = True", "untouched = True"),
    ],
)  # fmt: skip
def test_a_solution_becomes_its_stub(solution: str, exercise: str) -> None:
    assert authoring.clear(solution, "here") == exercise


@pytest.mark.parametrize(
    "source",
    [
        "### BEGIN SOLUTION\nx = 1",
        "x = 1\n### END SOLUTION",
        "x = 1  ### BEGIN SOLUTION\n### END SOLUTION",
        "### BEGIN SOLUTION\n### BEGIN SOLUTION\n### END SOLUTION\n### END SOLUTION",
    ],
)
def test_a_marker_without_partner_is_named(source: str) -> None:
    with pytest.raises(LabkitError, match="cell 7"):
        authoring.clear(source, "cell 7")


def test_outputs_and_solution_only_cells_stay_behind() -> None:
    output = nbformat.v4.new_output("stream", text="42")
    text = solution_notebook(
        nbformat.v4.new_markdown_cell("# Title"),
        code("print(42)", "exercise:01.x", outputs=[output], execution_count=3),
        code("assert result.passed", "solution-only"),
    )
    made = nbformat.reads(authoring.generate(text, "01_x.ipynb"), as_version=4)
    nbformat.validate(made)
    assert [cell.source for cell in made.cells] == ["# Title", "print(42)"]
    assert (made.cells[1].outputs, made.cells[1].execution_count) == ([], None)
    assert made.cells[1].metadata.tags == ["exercise:01.x"]
    assert made.metadata.kernelspec.name == "python3"
    assert [cell.id for cell in made.cells] == [cell.id for cell in nbformat.reads(text, 4).cells[:2]]


def test_generating_twice_gives_the_same_bytes() -> None:
    text = solution_notebook(code(KERNEL))
    assert authoring.generate(text, "a.ipynb") == authoring.generate(text, "a.ipynb")


def test_a_notebook_without_cell_ids_is_refused() -> None:
    old = nbformat.v4.new_notebook()
    old.nbformat_minor = 4
    with pytest.raises(LabkitError, match="no cell ids"):
        authoring.generate(nbformat.writes(old), "01_x.ipynb")


def test_sync_writes_removes_and_then_finds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(files, "lessons_root", lambda: tmp_path)
    for part in ("solutions", "exercises"):
        (tmp_path / part).mkdir()
    (tmp_path / "solutions" / "01_x.ipynb").write_text(solution_notebook(code(KERNEL)))
    (tmp_path / "exercises" / "00_gone.ipynb").write_text("{}")
    assert authoring.sync_main(["--check"]) == 1
    listed = capsys.readouterr().out
    assert "exercises/01_x.ipynb" in listed
    assert "exercises/00_gone.ipynb" in listed
    assert authoring.sync_main([]) == 0
    assert [path.name for path in (tmp_path / "exercises").iterdir()] == ["01_x.ipynb"]
    assert authoring.sync_main(["--check"]) == 0
