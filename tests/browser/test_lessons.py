"""Through the learner's door: every lesson opened in a real browser, run from the menu, looked at."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.browser import LabPage
from support.server import LabServer

from labkit.course import files

pytestmark = [pytest.mark.browser, pytest.mark.slow]
LESSONS = [path for part in ("notebooks", "solutions") for path in files.notebooks(part)]
LESSON_SECONDS = 150


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_lesson_opens_and_runs(path: Path, lab: LabServer, lab_page: LabPage) -> None:
    target = lab.folder / path.parent.name / path.name  # solutions are not delivered to learners
    target.parent.mkdir(exist_ok=True)
    shutil.copy(path, target)
    lab_page.open(f"{path.parent.name}/{path.name}").run_all(LESSON_SECONDS)
    announced = [cell for cell in lab_page.cells() if "raises-exception" in cell["metadata"].get("tags", [])]
    assert len(lab_page.failures()) == len(announced), lab_page.failures()
    assert all(cell["execution_count"] for cell in lab_page.cells() if cell["cell_type"] == "code")
    assert lab_page.errors == []
