"""The helpers that other browser tests stand on, tried on a notebook that this file writes."""

from __future__ import annotations

import nbformat
import pytest
from support.browser import LabPage
from support.server import LabServer

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SOURCES = [
    "import time; time.sleep(1.5)\nx = 40\nx + 2",
    "import sys; print(sys.executable)",
    "1 / 0",
]


@pytest.fixture
def small(lab: LabServer) -> str:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in SOURCES],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    nbformat.write(notebook, lab.folder / "small.ipynb")
    return "small.ipynb"


def test_run_all_edit_and_run_again(lab: LabServer, lab_page: LabPage, small: str) -> None:
    lab_page.open(small).run_all()
    assert lab_page.output(0) == "42"
    assert lab_page.output(1).strip() == lab.command[0]
    assert lab_page.failures() == ["cell 2: ZeroDivisionError: division by zero"]
    lab_page.edit(2, "'mended'")
    lab_page.run_cell(2)
    assert lab_page.output(2) == "'mended'"
    assert lab_page.failures() == []
    assert lab_page.errors == []


def test_nothing_lies_over_the_lesson(lab_page: LabPage, small: str) -> None:
    lab_page.open(small)
    lab_page.page.wait_for_timeout(2000)
    assert lab_page.page.locator(".jp-Dialog, .Toastify__toast").count() == 0


def test_the_theme_changes_the_picture(lab_page: LabPage, small: str) -> None:
    lab_page.open(small)
    lab_page.theme("JupyterLab Dark")
    dark = lab_page.picture()
    lab_page.theme("JupyterLab Light")
    assert lab_page.picture() != dark
