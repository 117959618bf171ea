"""What every test shares: a private home for progress, and honest skips.

A test that needs something this machine lacks says so through the ``require`` fixture (or the ``gpu`` and
``browser`` markers) and skips with the reason. ``LABKIT_REQUIRE=browser,torch`` turns the skips for those
names into failures, so that a continuous integration run cannot pass by testing nothing.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from support import needs

settings.register_profile("labkit", deadline=None, print_blob=True)
settings.load_profile("labkit")

MARKERS = ("gpu", "browser")
pytest_plugins = ["support.fixtures"]


def pytest_configure() -> None:
    """A shell that starts tests in the background has them ignore Ctrl-C, and all they start; tests press it."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def require() -> Callable[..., None]:
    """``require("torch")`` goes on when it is there, and skips (or fails, see above) when it is not."""
    return needs.require


@pytest.fixture(autouse=True)
def private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test, and the processes it starts, keep progress in a folder of their own."""
    home = tmp_path / "labkit-home"
    monkeypatch.setenv("LABKIT_HOME", str(home))
    return home


@pytest.fixture(scope="session", autouse=True)
def session_home() -> Iterator[None]:
    """Notebook kernels and servers that outlive one test must not touch the developer's progress either."""
    before = os.environ.get("LABKIT_HOME")
    with tempfile.TemporaryDirectory(prefix="labkit-tests-", ignore_cleanup_errors=True) as folder:
        os.environ["LABKIT_HOME"] = folder
        yield
        if before is None:
            os.environ.pop("LABKIT_HOME", None)
        else:
            os.environ["LABKIT_HOME"] = before


def pytest_runtest_setup(item: pytest.Item) -> None:
    for name in MARKERS:
        if item.get_closest_marker(name):
            needs.require(name)
