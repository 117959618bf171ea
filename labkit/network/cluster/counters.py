"""Bytes that each link has carried, as the kernel counts them on its devices, and processor time of each node."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from labkit.network.cluster import members
from labkit.network.cluster.handle import Handle
from labkit.network.cluster.plan import End

_SENT = 8  # the column of /proc/net/dev


@dataclass(frozen=True)
class LinkBytes:
    """Bytes that left a link's first end (``forth``), and its second (``back``), counted when they had passed
    the shaping; of what TCP hands down as one large packet, one header is counted."""

    forth: int
    back: int

    @property
    def total(self) -> int:
        return self.forth + self.back

    def __sub__(self, before: LinkBytes) -> LinkBytes:
        return LinkBytes(self.forth - before.forth, self.back - before.back)

    def to_dict(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True)
class QueueCounts:
    """The queue at one end of a link, as the kernel's qdisc counts (``tc -s qdisc``).

    Attributes
    ----------
    bytes, packets : int
        That have left it.
    drops : int
        Packets that found it full, or that the link's loss took.
    backlog : int
        Bytes waiting now.
    """

    bytes: int
    packets: int
    drops: int
    backlog: int


@dataclass(frozen=True)
class LinkQueues:
    """The queues at a link's first end (``forth``) and its second (``back``)."""

    forth: QueueCounts
    back: QueueCounts

    @property
    def drops(self) -> int:
        return self.forth.drops + self.back.drops

    def to_dict(self) -> dict[str, dict[str, int]]:
        return asdict(self)


def link_bytes(handle: Handle) -> dict[str, LinkBytes]:
    """What each link has carried so far; empty when the cluster is down. From any thread, in microseconds."""
    nodes = handle.plan.nodes
    try:
        sent = {space: _device_bytes(file) for space, file in handle.counters.items()}
    except OSError:
        return {}

    def of(end: End) -> int:
        return sent[end.where if end.where in nodes else ""][end.device]

    return {wire.name: LinkBytes(of(wire.ends[0]), of(wire.ends[1])) for wire in handle.plan.wires}


def _device_bytes(file: int) -> dict[str, int]:
    """Bytes sent by each device of the network whose /proc/net/dev is open."""
    lines = _whole(file).decode().splitlines()[2:]
    parts = [line.partition(":") for line in lines]
    return {name.strip(): int(numbers.split()[_SENT]) for name, _, numbers in parts}


def _whole(file: int) -> bytes:
    content = b""
    while piece := os.pread(file, 1 << 16, len(content)):
        content += piece
    return content


class NodeClock:
    """Processor time of the nodes' processes; of those that have ended, what they had used when last seen."""

    def __init__(self, handle: Handle):
        self.handle = handle
        self._used: dict[tuple[str, int], float] = {}

    def read(self) -> dict[str, float]:
        """Seconds for each node, so far."""
        nodes = self.handle.plan.nodes
        for process, node in self.handle.processes(nodes).items():
            used = members.cpu_seconds(process)
            self._used[node, process] = max(used, self._used.get((node, process), 0.0))
        return _sums(nodes, self._used)


def _sums(nodes: tuple[str, ...], used: Mapping[tuple[str, int], float]) -> dict[str, float]:
    return {node: sum(seconds for (where, _), seconds in used.items() if where == node) for node in nodes}
