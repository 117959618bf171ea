"""Real clusters for the tests: one small ring that many of them run on, and checks that nothing is left."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import needs

import labkit
from labkit.network.cluster import handle as handles
from labkit.network.cluster.machine import Cluster

# Inside a node: receive, or send to an address, so many bytes; prints the seconds that it took.
RECEIVE = """
import socket, sys, time
with socket.create_server(("", 5000)) as server:
    print("ready", flush=True)
    line = server.accept()[0]
    left, began = int(sys.argv[1]), time.monotonic()
    while left:
        left -= len(line.recv(min(left, 1 << 16)))
    line.sendall(b"!")
"""
SEND = """
import socket, sys, time
line = socket.create_connection((sys.argv[1], 5000))
began = time.monotonic()
line.sendall(bytes(int(sys.argv[2])))
line.recv(1)
print(time.monotonic() - began)
"""


@pytest.fixture(scope="session", autouse=True)
def private_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Clusters, leases and sockets of the tests' own; the path is short, as those of sockets must be."""
    with tempfile.TemporaryDirectory(prefix="lk-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        patch.setenv("LABKIT_LEASE", str(Path(folder) / "places"))
        patch.setenv("LABKIT_RANKS_AT_ONCE", "64")
        yield Path(folder)


@pytest.fixture
def make(private_folder: Path) -> Iterator[Callable[..., Cluster]]:
    """``make(4, "ring")`` is ``labkit.cluster(4, "ring")``, down after the test."""
    needs.require("netns")
    made: list[Cluster] = []

    def make(*args: Any, **options: Any) -> Cluster:
        cluster = labkit.cluster(*args, **options)
        assert isinstance(cluster, Cluster)
        made.append(cluster)
        return cluster

    yield make
    for cluster in made:
        cluster.close()


@pytest.fixture(scope="session")
def ring_of_the_session(private_folder: Path) -> Iterator[Cluster]:
    needs.require("netns")
    needs.require("torch")
    with labkit.cluster(3, "ring", "1Gbit/s") as cluster:
        yield cluster


@pytest.fixture
def ring(ring_of_the_session: Cluster) -> Iterator[Cluster]:
    """Three nodes in a ring, all up and unhurt, on which ranks start quickly."""
    yield ring_of_the_session
    for node in ring_of_the_session.nodes:
        ring_of_the_session.start(node)
        ring_of_the_session.link(node).set(bandwidth="1Gbit/s").heal()


@pytest.fixture
def transfer() -> Callable[..., float]:
    """``transfer(cluster, "n0", "n1", size)``: seconds that one TCP connection takes for so many bytes."""

    def transfer(cluster: Cluster, source: str, target: str, size: int) -> float:
        receiver = threading.Thread(
            target=cluster.call, args=(target, [sys.executable, "-c", RECEIVE, str(size)])
        )
        receiver.start()
        try:
            return _send(cluster, source, target, size)
        finally:
            receiver.join(20)

    return transfer


def _send(cluster: Cluster, source: str, target: str, size: int) -> float:
    limit = time.monotonic() + 15
    while time.monotonic() < limit:
        done = cluster.call(source, [sys.executable, "-c", SEND, target, str(size)])
        if done.returncode == 0:
            return float(done.stdout)
        time.sleep(0.05)  # it does not listen yet
    raise AssertionError(done.stderr)


def living_keepers() -> list[int]:
    """Processes that hold networks, of whichever cluster."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if handles._MODULE in Path("/proc", name, "cmdline").read_text():
                found.append(int(name))
        except OSError:
            continue
    return found
