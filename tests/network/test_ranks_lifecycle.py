"""Whatever happens to the notebook: no process, port, file or shared memory is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from labkit.network.launch import client
from labkit.network.ranks import Ranks

World = Callable[..., Ranks]

_SCRIPT = """
import labkit, os, time
def work(folder):
    import torch.distributed as dist
    if dist.get_rank() == 1:
        os.setpgrp()
    if os.fork() == 0:  # a helper in a session of its own, the hardest to find
        os.setsid()
        while True:
            time.sleep(1)
    dist.barrier()
    open(os.path.join(folder, f"ready-{dist.get_rank()}"), "w").close()
    while True:  # and never lets another thread of the interpreter run for long
        sum(range(10**6))
labkit.ranks(3).run(work, FOLDER)
"""


class Notebook:
    """A kernel's stand-in: a Python process in a session of its own that has three busy ranks."""

    def __init__(self, folder: Path):
        self.folder, self.temporary = folder, folder / "tmp"
        self.temporary.mkdir()
        environment = {**os.environ, "TMPDIR": str(self.temporary)}
        environment.pop("LABKIT_LEASE")
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SCRIPT.replace("FOLDER", repr(str(folder)))],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def wait_busy(self) -> list[psutil.Process]:
        limit = time.monotonic() + 60
        while not all((self.folder / f"ready-{rank}").exists() for rank in range(3)):
            assert self.process.poll() is None, self.process.stderr.read()  # type: ignore[union-attr]
            assert time.monotonic() < limit
            time.sleep(0.05)
        family = psutil.Process(self.process.pid).children(recursive=True)
        assert len(family) >= 7  # the server, three ranks, three helpers
        return family


@pytest.fixture
def notebook(world: World, tmp_path: Path) -> Iterator[Notebook]:
    one = Notebook(tmp_path)
    yield one
    one.process.kill()
    one.process.communicate()


def _memory_segments() -> set[str]:
    return set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()


def _gone(family: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    return psutil.wait_procs(family, timeout=seconds)[1]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_when_the_kernel_is_ended(notebook: Notebook, number: int) -> None:
    segments = _memory_segments()
    family = notebook.wait_busy()
    ports = {c.laddr.port for p in family for c in p.net_connections("tcp") if c.status == "LISTEN"}
    assert ports
    os.kill(notebook.process.pid, number)
    notebook.process.wait(10)
    assert _gone(family, 5) == []
    left = [path.name for path in notebook.temporary.iterdir()]
    assert left == ["labkit-lease"]  # the places: empty, shared by all users, and free again
    assert all(path.stat().st_size == 0 for path in (notebook.temporary / "labkit-lease").iterdir())
    assert _memory_segments() <= segments
    listening = {c.laddr.port for c in psutil.net_connections("tcp") if c.status == "LISTEN"}
    assert not ports & listening


def test_ranks_die_with_their_server_and_with_the_kernel_at_once(notebook: Notebook) -> None:
    family = notebook.wait_busy()
    server = next(one for one in family if one.ppid() == notebook.process.pid)
    ranks = [one for one in family if one.ppid() == server.pid]
    server.kill()
    notebook.process.kill()
    try:
        assert _gone([server, *ranks], 5) == []
    finally:  # with both guardians killed nobody knows of the helpers, which left for sessions of their own
        for helper in psutil.wait_procs(family, timeout=0)[1]:
            helper.kill()


def test_a_server_that_nobody_asks_leaves_and_is_replaced(world: World) -> None:
    client.stop()
    world(1).run(int)
    rested = client.server()
    folder = Path(rested.wait_ready()["folder"])
    rested.tell({"do": "rest", "seconds": 0.1})
    rested.process.wait(5)
    assert not folder.exists()
    assert world(2).run(lambda: 1) == [1, 1]
    assert client.server() is not rested


def test_nothing_listens_beyond_loopback(world: World) -> None:
    def listening() -> list[str]:
        import torch
        import torch.distributed as dist

        dist.all_reduce(torch.ones(3))
        found = psutil.Process().net_connections("inet")
        dist.barrier()
        return [one.laddr.ip for one in found]

    addresses = {address for one in world(3).run(listening) for address in one}
    assert addresses == {"127.0.0.1"}
    server = psutil.Process(client.server().process.pid)
    assert server.net_connections("inet") == []


def test_the_private_folder_is_private_and_empty_between_runs(world: World) -> None:
    world(2).run(int)
    folder = Path(client.server().wait_ready()["folder"])
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(folder.iterdir()) == []
    assert folder.parent == Path(tempfile.gettempdir())


def test_no_descriptor_and_no_process_is_left_by_many_runs(world: World) -> None:
    group = world(2)
    group.run(int)
    server = psutil.Process(client.server().process.pid)
    before = len(os.listdir("/proc/self/fd")), server.num_fds()
    for _ in range(3):
        group.run(int)
        with pytest.raises(Exception, match="ZeroDivisionError"):
            group.run(lambda: 1 / 0)
    assert (len(os.listdir("/proc/self/fd")), server.num_fds()) == before
    assert server.children() == []


def test_a_forked_child_of_the_kernel_does_not_keep_the_server_alive(world: World) -> None:
    world(1).run(int)
    child = os.fork()
    if child == 0:
        time.sleep(600)
    try:
        server = psutil.Process(client.server().process.pid)
        client.stop()
        assert _gone([server], 3) == []
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
