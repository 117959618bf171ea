"""Real ranks for the trainings, with places of the tests' own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from labkit.network.launch import client


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("lease") / "places"
    client.stop()


@pytest.fixture(autouse=True)
def private_places(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABKIT_LEASE", str(places))
    monkeypatch.setenv("LABKIT_RANKS_AT_ONCE", "64")
