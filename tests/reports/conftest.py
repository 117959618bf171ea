"""Sample reports: real layouts of several eras, with made-up values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parent / "samples"
NAMES = tuple(sorted(path.name for path in SAMPLES.iterdir()))


@pytest.fixture
def sample() -> Callable[[str], str]:
    """``sample("topo_1gpu.txt")``: the text of that file."""
    return lambda name: (SAMPLES / name).read_text(encoding="utf-8")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for ``sample_name`` runs once for every sample."""
    if "sample_name" in metafunc.fixturenames:
        metafunc.parametrize("sample_name", NAMES)
