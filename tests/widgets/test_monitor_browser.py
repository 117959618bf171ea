"""The live plot as learners see it: in a real JupyterLab, in a real browser."""

from __future__ import annotations

import re
import shutil
import time
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

if TYPE_CHECKING:
    from support.browser import LabPage
    from support.server import LabServer

pytestmark = [pytest.mark.browser, pytest.mark.slow]

START = "import labkit, time\nmon = labkit.monitor(0.25)\nmon"
WORK = (
    "end = time.time() + 5\n"
    "with mon.span('counting'):\n"
    "    while time.time() < end:\n"
    "        mon.metric('images/s', 1 + 5 * max(0, end - time.time()))\n"
    "with mon.span('one launch'): pass\n"
    "time.sleep(0.6)"
)
TELL = """
import pathlib, threading
from labkit.widgets import monitor_delivery
monitor_delivery.SILENCE = 12.0
def tell():
    while True:
        pathlib.Path("state.part").write_text(f"{mon.widget.paused} {len(mon.recording)}")
        pathlib.Path("state.part").replace("state.txt")
        time.sleep(0.3)
threading.Thread(target=tell, daemon=True).start()
"""
PIXELS = "canvas => canvas.toDataURL()"


@pytest.fixture
def plot(lab: LabServer, lab_page: LabPage, request: pytest.FixtureRequest) -> LabPage:
    """A notebook with a running monitor, its plot in view."""
    cells = [new_code_cell(source) for source in (START, WORK, "mon", "", "")]
    kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    lab.folder.mkdir(exist_ok=True)
    path = lab.folder / f"{request.node.name}.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernelspec}), path)
    # JupyterLab would open the notebooks of earlier tests again, each with a kernel.
    workspaces = lab.folder / ".labkit" / "workspaces"
    shutil.rmtree(workspaces, ignore_errors=True)
    lab_page.open(path.name)
    lab_page.run_cell(0)
    part(lab_page, ".lk-mon-canvas").first.wait_for(timeout=20_000)
    return lab_page


def part(lab_page: LabPage, css: str) -> Any:
    """Parts of plots in the notebook in front; JupyterLab may hold another one in a tab behind."""
    return lab_page.page.locator(".jp-Notebook:visible").locator(css)


def canvas(lab_page: LabPage, number: int = 0) -> Any:
    return part(lab_page, ".lk-mon-canvas").nth(number)


def wait_for_state(lab_page: LabPage, state: str, seconds: float = 20) -> None:
    part(lab_page, f'.lk-mon-root[data-state="{state}"]').first.wait_for(timeout=seconds * 1000)


def pictures(lab_page: LabPage, count: int, every: float = 0.6) -> list[str]:
    """What the canvas holds, several times over."""
    seen = []
    for _ in range(count):
        seen.append(canvas(lab_page).evaluate(PIXELS))
        lab_page.page.wait_for_timeout(every * 1000)
    return seen


def told(lab: LabServer) -> tuple[bool, int]:
    """What the kernel notes in ``TELL``: whether sending is paused, and how many samples there are."""
    paused, count = (lab.folder / "state.txt").read_text().split()
    return paused == "True", int(count)


def test_plot_moves_while_a_cell_runs(plot: LabPage) -> None:
    wait_for_state(plot, "live")
    plot.select(1)
    plot.page.keyboard.press("Shift+Enter")
    plot.page.wait_for_timeout(1000)
    seen = pictures(plot, 4)
    running = plot.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status"
    )
    assert running == "busy"
    assert len(set(seen)) == 4
    plot.wait_idle()
    assert plot.output(1) == ""
    legend = part(plot, ".lk-mon-legend").first.inner_text()
    assert re.search(r"CPU\s+\d+ %", legend)
    assert re.search(r"images/s\s+[\d.]+", legend)
    assert plot.errors == []


def test_dark_theme_reaches_the_canvas(plot: LabPage) -> None:
    wait_for_state(plot, "live")
    root = part(plot, ".lk-mon-root").first
    looks = {}
    for theme in ("Light", "Dark"):
        plot.theme(f"JupyterLab {theme}")
        plot.page.wait_for_timeout(800)
        style = "e => [e.dataset.theme, getComputedStyle(e).color, e.querySelector('line').getAttribute('stroke')]"
        looks[theme] = root.evaluate(style)
    assert (looks["Light"][0], looks["Dark"][0]) == ("light", "dark")
    assert all(light != dark for light, dark in zip(looks["Light"], looks["Dark"], strict=True))


def test_reloaded_page_has_the_history(plot: LabPage) -> None:
    plot.run_cell(1)
    plot.page.keyboard.press("Control+s")
    plot.page.wait_for_timeout(1000)
    plot.page.reload()
    wait_for_state(plot, "live", 60)
    shown = canvas(plot)
    plot.page.wait_for_timeout(1500)  # the history is drawn with the next frame
    shown.focus()
    plot.page.keyboard.press("Home")
    said = part(plot, ".lk-mon-said").first
    assert re.match(r"At 0:00\.\d: .*CPU \d+ percent", said.inner_text(timeout=5000))
    seen = set(pictures(plot, 3))
    assert len(seen) == 3


def test_closed_tab_pauses_sending_and_an_open_one_does_not(plot: LabPage, lab: LabServer) -> None:
    plot.edit(3, TELL)
    plot.run_cell(3)
    plot.page.wait_for_timeout(14_000)
    assert not told(lab)[0]
    plot.page.close()
    limit = time.monotonic() + 25
    while not told(lab)[0]:
        assert time.monotonic() < limit, "still sending to a closed tab"
        time.sleep(0.5)
    _, count = told(lab)
    time.sleep(1.5)
    assert told(lab)[1] > count  # recording goes on


def test_second_view_shows_the_same_and_both_move(plot: LabPage) -> None:
    plot.run_cell(1)
    plot.run_cell(2)
    second = canvas(plot, 1)
    second.wait_for(timeout=10_000)
    legends = part(plot, ".lk-mon-legend")
    for number in range(2):
        assert "images/s" in legends.nth(number).inner_text()
    before = second.evaluate(PIXELS)
    plot.page.wait_for_timeout(1200)
    assert second.evaluate(PIXELS) != before


def test_cursor_by_mouse_and_by_keyboard(plot: LabPage) -> None:
    plot.run_cell(1)
    shown = canvas(plot)
    plot.page.evaluate("() => document.activeElement.blur()")
    shown.scroll_into_view_if_needed()
    now = part(plot, ".lk-mon-legend").first
    box = shown.bounding_box()
    assert box is not None
    left, width = box["x"] + 46, box["width"] - 60
    values = set()
    for seconds in (2.0, 3.0, 4.0):
        plot.page.mouse.move(left + width * seconds / 60, box["y"] + 60)
        plot.page.wait_for_timeout(300)
        values.add(re.search(r"images/s\s+([\d.]+)", now.inner_text()).group(1))  # type: ignore[union-attr]
    assert len(values) == 3  # the number falls with time, so each place has its own
    shown.focus()
    said = part(plot, ".lk-mon-said").first
    heard = []
    for key in ("End", "ArrowLeft", "Shift+ArrowLeft", "Home"):
        plot.page.keyboard.press(key)
        plot.page.wait_for_timeout(100)
        heard.append(said.inner_text())
    assert len(set(heard)) == 4
    active = plot.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.activeCellIndex")
    plot.page.keyboard.press("ArrowDown")
    assert plot.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.activeCellIndex") == active
    plot.page.keyboard.press("Escape")


def test_series_are_switched_by_click_and_by_key(plot: LabPage) -> None:
    wait_for_state(plot, "live")
    memory = plot.page.get_by_role("button", name=re.compile("^Memory")).first
    assert memory.get_attribute("aria-pressed") == "true"
    memory.click()
    plot.page.wait_for_timeout(500)
    assert memory.get_attribute("aria-pressed") == "false"
    memory.focus()
    plot.page.keyboard.press("Space")
    plot.page.wait_for_timeout(500)
    assert memory.get_attribute("aria-pressed") == "true"


def test_plot_is_described_in_words(plot: LabPage) -> None:
    wait_for_state(plot, "live")
    plot.page.wait_for_timeout(600)
    shown = canvas(plot)
    assert shown.get_attribute("role") == "img"
    assert re.match(
        r"Live plot: .*CPU \d+ percent.*Memory \d+ percent", shown.get_attribute("aria-label") or ""
    )
    plot.edit(3, "mon.stop()")
    plot.run_cell(3)
    wait_for_state(plot, "stopped")
    assert re.match(r"stopped after 0:\d\d", part(plot, ".lk-mon-status").first.inner_text())


def test_nothing_is_cut_off_in_narrow_and_wide_windows(plot: LabPage) -> None:
    plot.run_cell(1)
    sizes = "e => [e.scrollWidth <= e.clientWidth + 1, e.clientWidth, e.querySelector('canvas').clientWidth]"
    pixels = "c => [c.width, c.height, c.clientWidth, c.clientHeight, devicePixelRatio]"
    widths = []
    for width in (800, 1300):
        plot.page.set_viewport_size({"width": width, "height": 900})
        plot.page.wait_for_timeout(800)
        fits, whole, drawn = part(plot, ".lk-mon-root").first.evaluate(sizes)
        assert fits
        assert drawn == whole
        across, down, wide, high, ratio = canvas(plot).evaluate(pixels)
        assert (across, down) == (round(wide * ratio), round(high * ratio))
        widths.append(wide)
    assert widths[1] - widths[0] > 300


def test_sharp_on_dense_screens_and_still_for_those_who_ask(plot: LabPage) -> None:
    session = plot.page.context.new_cdp_session(plot.page)
    plot.page.emulate_media(reduced_motion="reduce")
    session.send(
        "Emulation.setDeviceMetricsOverride",
        {"width": 1300, "height": 900, "deviceScaleFactor": 2, "mobile": False},
    )
    plot.page.wait_for_timeout(2500)
    shown = canvas(plot)
    assert shown.evaluate("c => c.width === 2 * c.clientWidth && c.height === 2 * c.clientHeight")
    dot = "e => getComputedStyle(e, '::before').animationName"
    assert part(plot, ".lk-mon-status").first.evaluate(dot) == "none"


def test_restarted_kernel_is_named_and_the_cell_runs_again(plot: LabPage) -> None:
    wait_for_state(plot, "live")
    plot.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    plot.wait_idle()
    plot.run_cell(0)
    wait_for_state(plot, "live")
    assert len(set(pictures(plot, 3))) == 3
