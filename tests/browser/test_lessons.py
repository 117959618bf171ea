"""Through the learner's door: every lesson opened in a real browser, run from the menu, looked at."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest
from support.browser import LabPage
from support.server import LabServer

from labkit.course import files

pytestmark = [pytest.mark.browser, pytest.mark.slow]
LESSONS = files.notebooks("notebooks")
LESSON_SECONDS = 150


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_lesson_opens_and_runs(path: Path, lab: LabServer, lab_page: LabPage) -> None:
    shutil.copy(path, lab.folder / path.parent.name)  # as it was, whatever earlier tests did to it
    lab_page.open(f"{path.parent.name}/{path.name}").run_all(LESSON_SECONDS)
    announced = [cell for cell in lab_page.cells() if "raises-exception" in cell["metadata"].get("tags", [])]
    assert len(lab_page.failures()) == len(announced), lab_page.failures()
    assert all(cell["execution_count"] for cell in lab_page.cells() if cell["cell_type"] == "code")
    assert lab_page.errors == []


def test_the_plot_moves_while_the_lesson_runs(lab_page: LabPage) -> None:
    lab_page.open("notebooks/01_cpu_vs_gpu.ipynb")
    lab_page.menu("Run", "Run All Cells")
    canvas = lab_page.cell_element("labkit.monitor()", "canvas")
    lab_page.page.wait_for_timeout(2000)
    assert lab_page.changed_pixels(canvas, 2) > 50
    lab_page.wait_idle(LESSON_SECONDS)
    assert lab_page.changed_pixels(canvas, 2) == 0  # its last cell stops the monitor


def solution(exercise: str) -> str:
    """The cell of the solutions that answers `exercise`; the markers in it are comments."""
    for cell in nbformat.read(files.notebook("solutions", exercise[:2]), as_version=4).cells:
        if f"exercise:{exercise}" in cell.metadata.get("tags", []) and "BEGIN SOLUTION" in cell.source:
            return str(cell.source)
    raise AssertionError(f"solutions hold no answer to {exercise}")


NO_GUARD = """@cuda.jit
def vector_add(a, b, out):
    i = cuda.grid(1)
    out[i] = a[i] + b[i]"""


def test_a_wrong_answer_is_explained_and_the_right_one_passes(lab_page: LabPage) -> None:
    lab_page.open("exercises/01_cpu_vs_gpu.ipynb")
    lab_page.run_cell(lab_page.find("import labkit"))
    answer, check = lab_page.find("def vector_add"), lab_page.find('exercise("01.vector_add").check()')
    right = solution("01.vector_add")
    for source, outcome, explanation in (
        (NO_GUARD, "error", "reads a[1000], but a has shape (1000,)"),
        (right.replace("a[i] + b[i]", "a[i] - b[i]"), "failed", "out[0]"),
        (right, "passed", ""),
    ):
        lab_page.edit(answer, source)
        lab_page.run_cell(answer)
        lab_page.run_cell(check)
        said = lab_page.output(check)
        assert said.startswith(f"01.vector_add: {outcome}"), said
        assert explanation in said


def test_the_panels_button_checks_too(lab_page: LabPage) -> None:
    lab_page.open("exercises/01_cpu_vs_gpu.ipynb")
    lab_page.run_cell(lab_page.find("import labkit"))
    answer, panel = lab_page.find("def vector_add"), lab_page.find('labkit.exercise("01.vector_add")')
    lab_page.edit(answer, solution("01.vector_add"))
    lab_page.run_cell(answer)
    lab_page.run_cell(panel)
    outputs = lab_page.select(panel).locator(".jp-Cell-outputWrapper")
    outputs.get_by_role("button", name="Check").click()
    outputs.locator("[data-outcome=passed]").wait_for(timeout=30_000)
