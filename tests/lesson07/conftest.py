"""Real ranks for the tests of this lesson, with places of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import needs

from labkit.network.launch import client
from labkit.network.ranks import Ranks, ranks


@pytest.fixture(autouse=True)
def private_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABKIT_LEASE", str(tmp_path / "places"))
    monkeypatch.setenv("LABKIT_RANKS_AT_ONCE", "64")


@pytest.fixture(scope="session")
def server_of_the_session() -> Iterator[None]:
    yield
    client.stop()


@pytest.fixture
def world(server_of_the_session: None) -> Callable[..., Ranks]:
    """``world(2)`` is ``labkit.ranks(2)``, where torch is there."""
    needs.require("torch")
    return ranks
