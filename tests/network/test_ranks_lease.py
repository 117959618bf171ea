"""Places for ranks on a shared machine: capped, first come first served, freed by any death."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from labkit.errors import LabkitError
from labkit.network.launch.lease import lease, places


@pytest.fixture(autouse=True)
def four_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LABKIT_LEASE", str(tmp_path / "places"))
    monkeypatch.setenv("LABKIT_RANKS_AT_ONCE", "4")
    return tmp_path / "places"


def _silent(ahead: int) -> None:
    pass


@contextmanager
def _other_user(ranks: int) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds places until it is told to end."""
    code = (
        "import sys; from labkit.network.launch.lease import lease\n"
        f"with lease({ranks}, 20, lambda n: None): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_what_is_free_is_had_at_once() -> None:
    waits: list[int] = []
    with lease(3, 1, waits.append), lease(1, 1, waits.append):
        pass
    assert waits == []


def test_more_than_the_cap_waits_and_gives_up_with_a_sentence() -> None:
    waits: list[int] = []
    with (
        _other_user(3),
        pytest.raises(LabkitError, match=r"No 2 of the 4 places for ranks.*300 ms"),
        lease(2, 0.3, waits.append),
    ):
        pass
    assert waits == [0]


def test_a_killed_holder_frees_its_places() -> None:
    with _other_user(4) as holder:
        holder.kill()
        with lease(4, 5, _silent):
            pass


def test_more_ranks_than_places_take_them_all() -> None:
    with (
        lease(64, 1, _silent),
        pytest.raises(LabkitError, match="No 1 of the 4 places"),
        lease(1, 0.2, _silent),
    ):
        pass


def test_a_big_run_is_not_overtaken_by_small_ones(four_places: Path) -> None:
    order: list[str] = []

    def take(name: str, ranks: int) -> None:
        with lease(ranks, 20, _silent):
            order.append(name)
            time.sleep(0.05)

    with lease(2, 1, _silent):
        big = threading.Thread(target=take, args=("big", 4))
        big.start()
        while not list(four_places.glob("ticket-*")):
            time.sleep(0.01)
        small = threading.Thread(target=take, args=("small", 1))  # two places are free for it
        small.start()
        time.sleep(0.3)
        assert order == []
    big.join(10)
    small.join(10)
    assert order == ["big", "small"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_users_share_the_places(monkeypatch: pytest.MonkeyPatch) -> None:
    umask = os.umask(0o077)
    try:
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            os.chmod(folder, 0o755)  # pytest's own folders are closed to others
            monkeypatch.setenv("LABKIT_LEASE", f"{folder}/places")
            with lease(3, 1, _silent):
                child = os.fork()
                if child == 0:
                    os._exit(_as_nobody())
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        os.umask(umask)


def _as_nobody() -> int:
    """0 when another user gets the place that is left, and not a second one."""
    try:
        os.setuid(65534)
        with lease(1, 1, _silent):
            try:
                with lease(1, 0.1, _silent):
                    return 2
            except LabkitError:
                return 0
    except Exception as error:
        os.write(2, f"{error!r}\n".encode())
        return 1


def test_tickets_of_the_dead_are_swept_up(four_places: Path) -> None:
    with lease(1, 1, _silent):
        pass
    dead = four_places / f"ticket-{0:020}-1"
    dead.touch()
    with lease(1, 1, _silent):
        pass
    assert not dead.exists()
    assert all(name.startswith("place-") for name in os.listdir(four_places))


def test_a_link_in_place_of_the_folder_is_refused(four_places: Path, tmp_path: Path) -> None:
    four_places.symlink_to(tmp_path)
    with pytest.raises(LabkitError, match="should be a folder of locks"), lease(1, 1, _silent):
        pass


def test_how_many_places(monkeypatch: pytest.MonkeyPatch) -> None:
    assert places() == 4
    monkeypatch.setenv("LABKIT_RANKS_AT_ONCE", "many")
    with pytest.raises(LabkitError, match="'many' is not a number of ranks"):
        places()
    monkeypatch.delenv("LABKIT_RANKS_AT_ONCE")
    assert places() == max(8, 4 * (os.cpu_count() or 1))
