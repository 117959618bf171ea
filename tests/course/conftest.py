"""What the tests of checks share."""

from __future__ import annotations

from collections.abc import Callable

import psutil
import pytest


@pytest.fixture
def new_children() -> Callable[[], set[psutil.Process]]:
    """The processes that this one has started since the test began; servers of earlier tests do not count."""
    before = set(psutil.Process().children())
    return lambda: set(psutil.Process().children()) - before
