"""Real ranks for the tests: one fork server for all, which the last test leaves without a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import needs

from labkit.network.launch import client
from labkit.network.ranks import Ranks, ranks


@pytest.fixture(scope="session")
def lease_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Places of the tests' own, so that they wait for nobody else's ranks."""
    return tmp_path_factory.mktemp("lease") / "places"


@pytest.fixture(autouse=True)
def private_places(lease_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABKIT_LEASE", str(lease_folder))
    monkeypatch.setenv("LABKIT_RANKS_AT_ONCE", "64")


@pytest.fixture(scope="session")
def server_of_the_session() -> Iterator[None]:
    yield
    client.stop()


@pytest.fixture
def world(server_of_the_session: None) -> Callable[..., Ranks]:
    """``world(4)`` is ``labkit.ranks(4)``, where torch is there."""
    needs.require("torch")
    return ranks
