"""Choosing, pausing and warnings of the live plot, in a real browser: a replay of eight modelled GPUs."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

if TYPE_CHECKING:
    from support.browser import LabPage
    from support.server import LabServer

pytestmark = [pytest.mark.browser, pytest.mark.slow]
START = "import labkit\nshown = labkit.replay('one-straggler', speed=20)\nshown"
LIVE = "import labkit, time\nmon = labkit.monitor(0.25)\nmon"
PIXELS = "canvas => canvas.toDataURL()"


@pytest.fixture
def page(lab: LabServer, lab_page: LabPage, request: pytest.FixtureRequest) -> LabPage:
    cells = [new_code_cell(source) for source in (START, LIVE)]
    kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    lab.folder.mkdir(exist_ok=True)
    path = lab.folder / f"{request.node.name}.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernelspec}), path)
    workspaces = lab.folder / ".labkit" / "workspaces"
    shutil.rmtree(workspaces, ignore_errors=True)
    return lab_page.open(path.name)


def part(page: LabPage, css: str) -> Any:
    return page.page.locator(".jp-Notebook:visible").locator(css)


def chip(page: LabPage, name: str) -> Any:
    return part(page, ".lk-mon-picker").get_by_role("button", name=name, exact=True)


@pytest.fixture
def replay(page: LabPage) -> LabPage:
    """The replay, run to its end."""
    page.run_cell(0)
    part(page, '.lk-mon-root[data-state="stopped"]').wait_for(timeout=20_000)
    return page


def test_devices_and_metrics_are_chosen(replay: LabPage) -> None:
    legend = part(replay, ".lk-mon-legend")
    assert "8 GPUs power" in legend.inner_text()
    assert "temperature" not in legend.inner_text()
    assert part(replay, ".lk-mon-picker").is_hidden()
    replay.page.get_by_role("button", name="Choose").click()
    chip(replay, "GPU temperature").click()
    replay.page.wait_for_timeout(400)
    assert "8 GPUs temperature" in legend.inner_text()
    for number in range(8):
        if number != 5:
            chip(replay, f"GPU {number}").click()
    replay.page.wait_for_timeout(400)
    assert "GPU 5 power" in legend.inner_text()
    assert "8 GPUs" not in legend.inner_text()
    assert chip(replay, "GPU 5").get_attribute("aria-pressed") == "true"
    chip(replay, "GPU power").click()
    replay.page.wait_for_timeout(400)
    power = legend.get_by_role("button", name="GPU 5 power")
    assert power.get_attribute("aria-pressed") == "false"
    replay.page.keyboard.press("Escape")
    assert part(replay, ".lk-mon-picker").is_hidden()
    assert replay.errors == []


def test_warnings_and_origin_stand_below_the_plot(replay: LabPage) -> None:
    notices = part(replay, ".lk-mon-notices li")
    assert "GPUs 0, 1, 2, 3, 4, 6, 7: 100 % busy" in notices.first.inner_text()
    sources = part(replay, ".lk-mon-sources").inner_text()
    assert "a recording at 20 times its speed; modelled: 8 H100" in sources
    assert set(part(replay, ".lk-mon-from").all_inner_texts()) == {"modelled"}


def test_pause_holds_the_picture_and_the_recording_goes_on(page: LabPage) -> None:
    page.run_cell(1)
    part(page, '.lk-mon-root[data-state="live"]').wait_for(timeout=20_000)
    pause = page.page.get_by_role("button", name="Pause")
    pause.click()
    page.page.wait_for_timeout(700)
    canvas = part(page, ".lk-mon-canvas")
    held = canvas.evaluate(PIXELS)
    assert "recording goes on" in part(page, ".lk-mon-status").inner_text()
    page.page.wait_for_timeout(1500)
    assert canvas.evaluate(PIXELS) == held
    page.page.get_by_role("button", name="Go on").click()
    page.page.wait_for_timeout(700)
    assert canvas.evaluate(PIXELS) != held
    assert part(page, ".lk-mon-root").get_attribute("data-state") == "live"


def test_a_narrow_plot_cuts_nothing_off(replay: LabPage) -> None:
    replay.page.get_by_role("button", name="Choose").click()
    fits = (
        "e => [...e.querySelectorAll('button')].every("
        "b => b.getBoundingClientRect().right <= e.getBoundingClientRect().right + 1)"
    )
    for width in (1300, 800):
        replay.page.set_viewport_size({"width": width, "height": 900})
        replay.page.wait_for_timeout(700)
        assert part(replay, ".lk-mon-root").evaluate(fits), width
