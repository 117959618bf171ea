"""Whatever dies: no process, namespace or file is left, and others' clusters are not touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from support import needs

import labkit
from labkit.errors import LabkitError
from labkit.network.cluster import factory, handle, members, state
from labkit.network.cluster.machine import Cluster

Make = Callable[..., Cluster]

_SCRIPT = """
import labkit, time, sys
c = labkit.cluster(2, bandwidth="1Gbit/s", name=sys.argv[1])
def work(folder):
    import os, time, torch.distributed as dist
    if os.fork() == 0:  # in a session of its own, the hardest to find
        os.setsid()
        time.sleep(600)
    dist.barrier()
    open(os.path.join(folder, f"ready-{dist.get_rank()}"), "w").close()
    time.sleep(600)
c.run(work, sys.argv[2])
"""


class Owner:
    """A kernel's stand-in: a Python process that has a cluster with two busy ranks."""

    def __init__(self, folder: Path):
        self.name = f"t{os.getpid()}"
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SCRIPT, self.name, str(folder)],
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            self._wait_until_busy(folder)
        except BaseException:
            self.process.kill()
            raise
        self.family = psutil.Process(self.process.pid).children(recursive=True)
        # keeper, server, the store of the rendezvous, two agents, two stand-ins, two ranks, two helpers
        assert len(self.family) >= 11
        self.place = state.Place(state.folder() / f"{self.name}-{self.process.pid}")
        self.keeper = self.place.read()["keeper"]

    def _wait_until_busy(self, folder: Path) -> None:
        limit = time.monotonic() + 90
        while not all((folder / f"ready-{rank}").exists() for rank in range(2)):
            assert self.process.poll() is None, self.process.stderr.read()  # type: ignore[union-attr]
            assert time.monotonic() < limit
            time.sleep(0.05)

    def networks(self) -> set[int]:
        return {os.stat(f"/proc/{one.pid}/ns/net").st_ino for one in self.family} - {
            os.stat("/proc/self/ns/net").st_ino
        }


@pytest.fixture
def owner(tmp_path: Path, private_folder: Path) -> Iterator[Owner]:
    needs.require("netns")
    needs.require("torch")
    one = Owner(tmp_path)
    yield one
    one.process.kill()
    one.process.communicate()


def _gone(family: list[psutil.Process]) -> list[psutil.Process]:
    return psutil.wait_procs(family, timeout=8)[1]


def _wait(condition: Callable[[], bool]) -> bool:
    limit = time.monotonic() + 5
    while not condition() and time.monotonic() < limit:
        time.sleep(0.02)
    return condition()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_owner_that_ends_takes_all_along(owner: Owner, number: int) -> None:
    networks = owner.networks()
    assert len(networks) >= 3
    os.kill(owner.process.pid, number)
    owner.process.wait(20)
    assert _gone(owner.family) == []
    assert _wait(lambda: not owner.place.path.exists())
    assert not members.in_networks(networks)
    assert members.marked(owner.place.id) == []


@pytest.mark.slow
def test_owner_and_keeper_killed_at_once_leave_what_clean_sweeps(owner: Owner, make: Make) -> None:
    mine = make(2, name="bystander")
    keeper = psutil.Process(owner.keeper)
    keeper.kill()
    owner.process.kill()
    assert _gone([keeper]) == []
    assert owner.place.path.exists()
    assert owner.place.id in state.clean()
    assert _gone(owner.family) == []
    assert not owner.place.path.exists()
    assert mine.call("n0", ["true"]).returncode == 0  # a living cluster is not swept
    assert state.clean() == []


def test_a_killed_keeper_is_told(make: Make) -> None:
    cluster = make(2, name="orphan")
    os.kill(cluster.handle.place.read()["keeper"], signal.SIGKILL)
    with pytest.raises(LabkitError, match="has gone, and the network with it"):
        _wait(lambda: cluster.link("n0").set(bandwidth="1Mbit/s") is None)
    path = cluster.handle.place.path
    cluster.close()
    assert not path.exists()


def test_a_name_that_is_taken(make: Make) -> None:
    make(1, name="mine")
    with pytest.raises(LabkitError, match=rf"named 'mine' already, of process {os.getpid()}"):
        labkit.cluster(1, name="mine")
    for wrong in ("a-b", "", "x" * 31, "a/b"):
        with pytest.raises(LabkitError, match="no name for a cluster"):
            labkit.cluster(1, name=wrong)


def test_a_set_up_that_fails_or_is_interrupted_leaves_nothing(
    private_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs.require("netns")
    before = set(state.folder().iterdir())
    children = len(psutil.Process().children())
    plan, _ = factory.described(2, "switch", None, None, 0)
    broken = plan.reshaped({"n0-s0": plan.wires[0].shape.__class__(bandwidth=1e-9)})  # tc refuses a rate of 0
    with pytest.raises(LabkitError, match=r"could not be made: tc says"):
        handle.start(broken, name="broken", mode=factory.probe.ability().mode, netem=False, owned=True)
    monkeypatch.setattr(handle, "_greet", _interrupted)
    with pytest.raises(KeyboardInterrupt):
        labkit.cluster(2, name="interrupted")
    assert set(state.folder().iterdir()) == before
    assert len(psutil.Process().children()) == children


def _interrupted(line: object, told: dict, plan: object) -> None:
    handle.wire.send(line, told)  # type: ignore[arg-type]
    time.sleep(0.05)
    raise KeyboardInterrupt


def test_a_forked_child_does_not_keep_a_cluster_alive(make: Make) -> None:
    cluster = make(2)
    place = cluster.handle.place
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        cluster.close()
        assert not place.path.exists()
        assert not place.alive()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_descriptors_are_given_back(make: Make) -> None:
    make(2).close()
    before = len(os.listdir("/proc/self/fd"))
    for topology in ("ring", "tree"):
        make(4, topology).close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_that_somebody_else_made_is_refused(
    private_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / f"labkit-clusters-{os.getuid()}").mkdir(mode=0o777)
    (tmp_path / f"labkit-clusters-{os.getuid()}").chmod(0o777)
    with pytest.raises(LabkitError, match="private folder of yours"):
        state.folder()
