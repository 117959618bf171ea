"""The warp view in the real JupyterLab: drawn, and stepped through with its slider."""

from __future__ import annotations

import nbformat
import pytest
from support.browser import LabPage
from support.server import LabServer

pytestmark = [pytest.mark.browser, pytest.mark.slow]
KERNEL = """import numpy as np
import labkit
from labkit import cuda

@cuda.jit
def turn(image, out):
    column, row = cuda.grid(2)
    out[column, row] = image[row, column]

image = np.zeros((32, 32), np.float32)
labkit.warp_view(turn[1, (32, 32)], image, image.copy())"""


def test_the_slider_steps_from_the_read_to_the_write(lab: LabServer, lab_page: LabPage) -> None:
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cell = nbformat.v4.new_code_cell(KERNEL)
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": spec})
    lab.folder.mkdir(exist_ok=True)
    nbformat.write(notebook, lab.folder / "warp.ipynb")
    lab_page.open("warp.ipynb").run_all(60)
    label = lab_page.cell_element("warp_view", ".slider-label")
    assert str(label.text_content()).endswith("4 sectors: 128 of 128 bytes are wanted")
    track = lab_page.cell_element("warp_view", ".slider-rail-touch-rect")
    box = track.bounding_box()
    assert box is not None
    track.click(position={"x": box["width"] - 4, "y": 4})
    lab_page.page.wait_for_timeout(500)
    assert str(label.text_content()).endswith("32 sectors: 128 of 1024 bytes are wanted")
    assert lab_page.errors == []
