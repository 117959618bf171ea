"""Two processes joined by a TCP connection, each with its half of a measurement.

Over loopback on this machine, or from node to node of a virtual cluster. Nothing listens on this machine beyond
loopback, and not for longer than a connection takes to be made.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labkit.compute import child
from labkit.errors import LabkitError
from labkit.network.cluster.plan import listed

if TYPE_CHECKING:
    from labkit.network.cluster.machine import Cluster

_MODULE = "labkit.network.protocols.worker"
_PORT = 5201
_LIMIT_S = 60.0


@dataclass(frozen=True)
class Between:
    """Where two processes are, and how their connection goes.

    Attributes
    ----------
    cluster : Cluster or None
        None for loopback.
    nodes : tuple of str
        The sender's and the receiver's.
    """

    cluster: Cluster | None = None
    nodes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        if self.cluster is None:
            return "two processes, TCP over loopback"
        first, second = self.nodes
        links = self.cluster.link(first, second)
        return f"two processes, TCP from {first} to {second} of a virtual cluster ({links!r})"

    def seconds(self, count: int) -> float:
        """What ``count`` bytes take at least: on the slowest cable between the nodes; nothing over loopback."""
        if self.cluster is None:
            return 0.0
        names = self.cluster.handle.plan.between(*self.nodes)
        wires = [wire for wire in self.cluster.handle.plan.wires if wire.name in names]
        return count / min((wire.shape.bandwidth or math.inf for wire in wires), default=math.inf)

    def limit_s(self, count: int) -> float:
        """How long to wait for a measurement that sends ``count`` bytes, generously."""
        return _LIMIT_S + 2 * self.seconds(count)


def between(cluster: Any = None, nodes: tuple[str, ...] | None = None) -> Between:
    """Check the place: two different nodes of a real cluster, or loopback without one.

    Raises
    ------
    LabkitError
        For an emulated cluster, where no TCP connection has its links, and for nodes that are not there.
    """
    if cluster is None:
        return Between()
    if getattr(cluster, "label", "") != "measured":
        raise LabkitError(
            "This cluster is emulated, so TCP does not pass its links: leave cluster out, to measure over loopback."
        )
    chosen = tuple(cluster.nodes[:2] if nodes is None else nodes)
    if len(set(chosen)) < 2 or not set(chosen) <= set(cluster.nodes):
        raise LabkitError(f"Two nodes are needed of those there are: {listed(cluster.nodes)}.")
    return Between(cluster, chosen)


def run_pair(
    place: Between, task: str, limit_s: float = _LIMIT_S, files: Sequence[int] = (), **options: Any
) -> tuple[Any, Any]:
    """Have the two halves of a task done, and return what each has found; both inherit ``files``.

    Raises
    ------
    LabkitError
        When one of the processes fails (its last words are in it), or both are not done in time.
    """
    return tuple(_joined(place, [{"task": task, "side": side, **options} for side in (0, 1)], files, limit_s))


def _joined(
    place: Between, questions: list[dict[str, Any]], files: Sequence[int], limit_s: float
) -> list[Any]:
    if place.cluster is not None:
        address = place.cluster.handle.plan.address(place.nodes[1])
        for side, question in enumerate(questions):
            question["meet"] = {"address": address, "port": _PORT, "listen": side}
        sides = zip(questions, place.nodes, strict=True)
        return gather([start(question, place.cluster, node, files) for question, node in sides], limit_s)
    ends = _loopback()
    with ends[0], ends[1]:
        processes = []
        for question, end in zip(questions, ends, strict=True):
            question["meet"] = {"file": end.fileno()}
            processes.append(start(question, files=[end.fileno(), *files]))
    return gather(processes, limit_s)


def _loopback() -> tuple[socket.socket, socket.socket]:
    """Both ends of a TCP connection of this machine with itself."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as server:
        first = socket.create_connection(server.getsockname())
        second, caller = server.accept()
        while caller != first.getsockname():  # somebody else has called
            second.close()
            second, caller = server.accept()
    return first, second


def start(
    question: dict[str, Any], cluster: Cluster | None = None, node: str = "", files: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """A process that works on a question; it is told on its standard input and answers on its standard output."""
    command, environment, needed = child.command(_MODULE), child.environment(), list(files)
    if cluster is not None:
        command, spaces = cluster.handle.command(node, [sys.executable, "-P", "-m", _MODULE])
        environment, needed = cluster.handle.environment(), [*spaces, *files]
    process = subprocess.Popen(
        command,
        pass_fds=needed,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it has ended already: `gather` tells its last words
        process.stdin.write(json.dumps(question).encode() + b"\n")
        process.stdin.close()
    return process


def gather(processes: list[Any], limit_s: float) -> list[Any]:
    """The answers of all processes; when one fails, or the time is over, all are ended."""
    said: dict[int, bytearray] = {}
    try:
        _listen(processes, said, time.monotonic() + limit_s)
        for process in processes:
            _check(process, said)
        return [json.loads(said[process.stdout.fileno()]) for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()


def _listen(processes: list[Any], said: dict[int, bytearray], end: float) -> None:
    with selectors.DefaultSelector() as selector:
        for process in processes:
            for pipe in (process.stdout, process.stderr):
                said[pipe.fileno()] = bytearray()
                selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            if (left := end - time.monotonic()) <= 0:
                raise LabkitError(
                    "A measurement between processes was not done in time; is this machine busy?"
                )
            for key, _ in selector.select(left):
                piece = os.read(key.fd, 1 << 16)
                said[key.fd] += piece
                if not piece:
                    selector.unregister(key.fileobj)
            for process in processes:
                if process.poll():
                    _check(process, said)  # the others may wait for it for ever


def _check(process: Any, said: dict[int, bytearray]) -> None:
    """Wait for its end; its last words, when that is a bad one."""
    if process.wait():
        said[process.stderr.fileno()] += process.stderr.read()
        words = said[process.stderr.fileno()].decode("utf-8", "replace").strip().splitlines()
        raise LabkitError(f"A process that measures failed: {words[-1] if words else 'it said nothing'}")
