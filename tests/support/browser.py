"""Driving the real JupyterLab as a learner does: menus and keys for actions, the page's model for reading."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, Page, Playwright

from support.server import Address

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Complaints of JupyterLab itself, which say nothing about a lesson.
HARMLESS = ("favicon", "/api/translations", "ResizeObserver loop", "api/kernelspecs", "/lsp/status")

_CELL = """index => {
  const cell = window.jupyterapp.shell.currentWidget.content.widgets[index];
  return {...cell.model.toJSON(), source: cell.model.sharedModel.getSource()};
}"""
_CHANGED = """async (canvas, milliseconds) => {
  const read = () => new Uint32Array(
    canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  const before = read();
  await new Promise(done => setTimeout(done, milliseconds));
  return read().reduce((changed, pixel, index) => changed + (pixel !== before[index]), 0);
}"""
_STATE = """() => {
  const panel = window.jupyterapp?.shell?.currentWidget;
  const kernel = panel?.sessionContext?.session?.kernel;
  const cells = panel?.content?.widgets ?? [];
  const waiting = cells.filter(c => c.model.type === 'code' && c.model.executionState === 'running');
  return {kernel: kernel?.status ?? 'none', ready: !!panel?.context?.isReady, running: waiting.length};
}"""


def start_chromium(playwright: Playwright) -> Browser:
    """Debian's Chromium, headless; Playwright's own download is not needed."""
    return playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)


class LabPage:
    """One browser page on one server.

    Attributes
    ----------
    page : Playwright's page, for whatever this class does not offer
    errors : console errors and uncaught exceptions of the page so far, harmless ones left out
    """

    def __init__(self, page: Page, address: Address):
        self.page = page
        self.address = address
        self.errors: list[str] = []
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _note(self, message: Any) -> None:
        text = f"{message.text} {message.location.get('url', '')}"
        if message.type == "error" and not any(word in text for word in HARMLESS):
            self.errors.append(text)

    def open(self, path: str, seconds: float = 60) -> LabPage:
        """Open the notebook at `path` (relative to the working folder) and wait for its kernel."""
        self.page.goto(self.address.url(f"/lab/tree/{path}"))
        self._wait(lambda state: state["ready"] and state["kernel"] == "idle", seconds, f"open {path}")
        return self

    def menu(self, *titles: str) -> None:
        """Choose an entry by the words a learner sees, e.g. ``menu("Run", "Run All Cells")``."""
        self.page.get_by_role("menubar").first.get_by_text(titles[0], exact=True).click()
        for title in titles[1:]:
            self.page.locator(".lm-Menu-itemLabel").get_by_text(title, exact=True).last.click()

    def run_all(self, seconds: float = 120) -> None:
        """Run > Run All Cells, then wait until every code cell has been executed."""
        self.menu("Run", "Run All Cells")
        self.wait_idle(seconds)

    def run_cell(self, index: int, seconds: float = 60) -> None:
        """Select a cell and press Shift-Enter."""
        self.select(index)
        self.page.keyboard.press("Shift+Enter")
        self.wait_idle(seconds)

    def select(self, index: int) -> Locator:
        """Make a cell the active one, in command mode, scrolled into view."""
        self.page.evaluate(
            """index => {
              const notebook = window.jupyterapp.shell.currentWidget.content;
              notebook.deselectAll(); notebook.activeCellIndex = index; notebook.mode = 'command';
              notebook.activate();
              return notebook.scrollToItem(index, 'center');
            }""",
            index,
        )
        cell = self.page.locator(f'.jp-Notebook:visible .jp-Cell[data-windowed-list-index="{index}"]')
        cell.wait_for(state="visible")
        return cell

    def edit(self, index: int, source: str) -> None:
        """Replace the source of a cell, as typing does, without the editor's automatic brackets."""
        self.page.evaluate(
            """([index, source]) => window.jupyterapp.shell.currentWidget.content
                 .widgets[index].model.sharedModel.setSource(source)""",
            [index, source],
        )

    def cells(self) -> list[dict[str, Any]]:
        """Every cell as the notebook format has it, with current outputs, also of those out of sight."""
        count = self.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.widgets.length")
        return [self.page.evaluate(_CELL, index) for index in range(count)]

    def find(self, words: str) -> int:
        """The index of the first cell whose source contains `words`."""
        for index, cell in enumerate(self.cells()):
            if words in cell["source"]:
                return index
        raise AssertionError(f"no cell contains {words!r}")

    def output(self, index: int) -> str:
        """All text of a cell's outputs: streams, text/plain, and errors."""
        return "\n".join(map(_text_of, self.page.evaluate(_CELL, index).get("outputs", [])))

    def failures(self) -> list[str]:
        """``cell N: EName: message`` for each cell whose output is an error."""
        return [
            f"cell {index}: {output['ename']}: {output['evalue']}"
            for index, cell in enumerate(self.cells())
            for output in cell.get("outputs", [])
            if output["output_type"] == "error"
        ]

    def wait_idle(self, seconds: float = 60) -> None:
        """Wait until no cell is running or queued and the kernel has been idle for a moment."""
        self.page.wait_for_timeout(200)  # the request leaves the page before the kernel turns busy
        quiet = 0
        limit = time.monotonic() + seconds
        while quiet < 3:
            state = self.page.evaluate(_STATE)
            quiet = quiet + 1 if state["kernel"] == "idle" and not state["running"] else 0
            if time.monotonic() > limit:
                raise AssertionError(f"still running after {seconds:g} s: {state}; errors {self.failures()}")
            self.page.wait_for_timeout(100)

    def _wait(self, done: Any, seconds: float, what: str) -> None:
        limit = time.monotonic() + seconds
        while not done(state := self.page.evaluate(_STATE)):
            if time.monotonic() > limit:
                raise AssertionError(f"could not {what} in {seconds:g} s: {state}")
            self.page.wait_for_timeout(100)

    def theme(self, name: str) -> None:
        """``theme("JupyterLab Dark")`` or ``"JupyterLab Light"``."""
        self.page.evaluate(
            "name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})", name
        )
        self.page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=name)
        self.page.wait_for_timeout(300)

    def cell_element(self, words: str, css: str) -> Locator:
        """The first element matching `css` in the outputs of the cell that contains `words`, in view."""
        element = self.select(self.find(words)).locator(f".jp-Cell-outputWrapper {css}").first
        element.wait_for(state="visible")
        element.scroll_into_view_if_needed()
        return element

    def changed_pixels(self, canvas: Locator, seconds: float) -> int:
        """How many pixels of a canvas differ between now and `seconds` later."""
        return int(canvas.evaluate(_CHANGED, 1000 * seconds))

    def picture(self, where: Locator | None = None, path: Path | None = None) -> bytes:
        """A PNG of one element (scrolled into view), or of the page."""
        if where is None:
            return self.page.screenshot(path=path)
        where.scroll_into_view_if_needed()
        return where.screenshot(path=path)


def _text_of(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _joined(output["text"])
    if output["output_type"] == "error":
        return f"{output['ename']}: {output['evalue']}"
    return _joined(output["data"].get("text/plain", ""))


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)
