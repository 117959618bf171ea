"""Fixtures around the server and the browser; tests that use them need no import.

``lab`` starts one server for a test module, ``chromium`` one browser, ``lab_page`` a fresh page on that server
for each test.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from support import needs
from support.server import LabServer

if TYPE_CHECKING:
    from support.browser import LabPage


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Playwright's handle on Debian's Chromium; gone with the module, for tests that count child processes."""
    needs.require("browser")
    from playwright.sync_api import sync_playwright

    from support.browser import start_chromium

    with sync_playwright() as playwright:
        browser = start_chromium(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """A running ``labkit lab``; write notebooks into ``lab.folder`` and open them by their relative path."""
    needs.require("lab")
    with LabServer(tmp_path_factory.mktemp("lab"), expose_app=True) as server:
        yield server


@pytest.fixture
def lab_page(chromium: Any, lab: LabServer) -> Iterator[LabPage]:
    """A fresh page of 1400x900 pixels; every kernel that the test started is shut down afterwards."""
    from support.browser import LabPage

    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    yield LabPage(context.new_page(), lab.address)
    context.close()
    lab.shut_down_kernels()
