"""What is to be built: nodes, switches, and the wires between them. Nothing here touches the system."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.units import show_bytes, show_rate, show_time

MAX_NODES = 64
NETWORK = ipaddress.ip_network("10.71.0.0/16")


@dataclass(frozen=True)
class End:
    """One end of a wire: a device of a node or of a switch."""

    where: str
    device: str


@dataclass(frozen=True)
class Shape:
    """What a wire lets through, each way.

    Attributes
    ----------
    bandwidth : float or None
        Bytes a second, Ethernet headers included; None for as fast as the machine.
    latency : float
        Seconds, one way.
    loss : float
        Share of packets lost, 0 to 1.
    cut : bool
        Nothing gets through.
    queue : int or None
        Bytes that may wait at an end for their turn, more are dropped; None for 20 ms of traffic, 1 MiB at least.
    """

    bandwidth: float | None = None
    latency: float = 0.0
    loss: float = 0.0
    cut: bool = False
    queue: int | None = None

    def __str__(self) -> str:
        if self.cut:
            return "cut"
        words = [show_rate(self.bandwidth, bits=True) if self.bandwidth else "unshaped"]
        words += [f"{show_time(self.latency)} latency"] if self.latency else []
        words += [f"{100 * self.loss:g} % loss"] if self.loss else []
        words += [f"queue {show_bytes(self.queue)}"] if self.queue is not None else []
        return ", ".join(words)


@dataclass(frozen=True)
class Wire:
    """A cable with two ends, shaped alike at both."""

    ends: tuple[End, End]
    shape: Shape

    @property
    def name(self) -> str:
        return "-".join(end.where for end in self.ends)


@dataclass(frozen=True)
class Hop:
    """How packets for ``to`` leave ``at``: by ``device``; ``via`` is the neighbour that passes them on."""

    at: str
    to: str
    device: str
    via: str | None


@dataclass(frozen=True)
class Plan:
    """A whole network.

    Attributes
    ----------
    topology : str
        In words, for people.
    nodes, switches : tuple of str
        Names; nodes are machines, switches only pass packets on.
    wires : tuple of Wire
    hops : tuple of Hop
        The routing tables of nodes that pass packets on for others; empty where switches do that.
    """

    topology: str
    nodes: tuple[str, ...]
    switches: tuple[str, ...]
    wires: tuple[Wire, ...]
    hops: tuple[Hop, ...] = ()

    def address(self, node: str) -> str:
        """The IPv4 address of a node."""
        return str(NETWORK[self.nodes.index(node) + 1])

    @property
    def meeting(self) -> str | None:
        """The address of a switch, where what belongs to no node can be met; None where nodes are wired to nodes."""
        return str(NETWORK[-2]) if self.switches else None

    def devices(self, where: str) -> list[str]:
        """The devices of a node or switch, in the order in which they were wired."""
        return [end.device for wire in self.wires for end in wire.ends if end.where == where]

    def between(self, first: str, second: str | None = None) -> tuple[str, ...]:
        """The names of the wires on the way from one node (or switch) to another; all of ``first`` without one.

        Raises
        ------
        LabkitError
            For a name that is not in the network.
        """
        for name in filter(None, (first, second)):
            if name not in (*self.nodes, *self.switches):
                raise LabkitError(
                    f"There is no {name!r} in this cluster: nodes are {listed(self.nodes)}"
                    + (f", switches {listed(self.switches)}." if self.switches else ".")
                )
        if second is None:
            return tuple(w.name for w in self.wires if first in (end.where for end in w.ends))
        if first == second:
            raise LabkitError(f"{first!r} has no link to itself: name two different nodes.")
        return tuple(self._walk(first, second))

    def _walk(self, first: str, second: str) -> list[str]:
        hops = {(hop.at, hop.to): hop.via or hop.to for hop in self.hops}
        if (first, second) not in hops:
            return self._search(first, second)
        path, at = [], first
        while at != second:
            following = hops[at, second]
            path.append(self._joining(at, following))
            at = following
        return path

    def _search(self, first: str, second: str) -> list[str]:
        """Breadth first."""
        reached: dict[str, list[str]] = {first: []}
        border = [first]
        while second not in reached:
            at = border.pop(0)
            for wire in self.wires:
                names = [end.where for end in wire.ends]
                if at in names:
                    other = names[1 - names.index(at)]
                    if other not in reached:
                        reached[other] = [*reached[at], wire.name]
                        border.append(other)
        return reached[second]

    def _joining(self, first: str, second: str) -> str:
        return next(w.name for w in self.wires if {first, second} == {end.where for end in w.ends})

    def reshaped(self, shapes: dict[str, Shape]) -> Plan:
        """The same network with other shapes of some wires."""
        return replace(self, wires=tuple(replace(w, shape=shapes.get(w.name, w.shape)) for w in self.wires))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Plan:
        """What `to_dict` gave, also after a journey as JSON."""
        wires = tuple(
            Wire((End(**wire["ends"][0]), End(**wire["ends"][1])), Shape(**wire["shape"]))
            for wire in told["wires"]
        )
        hops = tuple(Hop(**hop) for hop in told["hops"])
        return cls(told["topology"], tuple(told["nodes"]), tuple(told["switches"]), wires, hops)


def listed(names: Sequence[str]) -> str:
    """``n0, n1 ... n7``: all names when they are few."""
    return ", ".join(names) if len(names) <= 4 else f"{names[0]}, {names[1]} ... {names[-1]}"
