"""Links of a cluster that is up: changed, cut and healed while it runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from labkit.hardware.units import parse
from labkit.network.cluster import shaping
from labkit.network.cluster.counters import LinkBytes, LinkQueues, QueueCounts
from labkit.network.cluster.plan import Wire

if TYPE_CHECKING:
    from labkit.network.cluster.machine import Cluster

_KEEP: Any = object()


@dataclass(frozen=True)
class Link:
    """The way between two nodes: one cable where they are neighbours, all cables on the way otherwise."""

    cluster: Cluster
    wires: tuple[str, ...]

    def set(
        self, bandwidth: Any = _KEEP, latency: Any = _KEEP, loss: Any = _KEEP, queue: Any = _KEEP
    ) -> Link:
        """Change what is given, at both ends of each cable, at once and also under a run that goes on.

        Parameters
        ----------
        bandwidth : float, str or None
            ``"100Mbit/s"``, bytes/s, or None for no limit.
        latency : float, str or None
            One way; ``"1ms"`` or seconds.
        loss : float or str
            Share of packets: 0.01 or ``"1%"``.
        queue : float, str or None
            Bytes that may wait at each end of a cable: ``"64KiB"``, as a switch with shallow buffers has; None
            for 20 ms of traffic.
        """
        new: dict[str, Any] = {}
        if bandwidth is not _KEEP:
            new["bandwidth"] = None if bandwidth is None else parse(bandwidth, "rate")
        if latency is not _KEEP:
            new["latency"] = parse(latency or 0.0, "time")
        if loss is not _KEEP:
            new["loss"] = shaping.share(loss)
        if queue is not _KEEP:
            new["queue"] = None if queue is None else round(parse(queue, "size"))
        return self._change(**new)

    def cut(self) -> Link:
        """Nothing gets through from now on; nobody is told.

        A run that needs the link stands still, as TCP tries again and again, and goes on when it is healed; when
        it is not, the run ends at its timeout, and the error names the link.
        """
        return self._change(cut=True)

    def heal(self) -> Link:
        """As it was before it was cut. TCP notices within a second on Linux 6.15 and later, in a minute before."""
        return self._change(cut=False)

    @property
    def bytes(self) -> dict[str, LinkBytes]:
        """What each of the cables has carried so far, each way (measured)."""
        counted = self.cluster.bytes()
        return {name: counted[name] for name in self.wires}

    def queues(self) -> dict[str, LinkQueues]:
        """What has waited and what was dropped at both ends of each cable, since it last changed (measured).

        Raises
        ------
        LabkitError
            When the cluster is down.
        """
        counted = self.cluster.handle.ask(do="queues", wires=list(self.wires))[0]["queues"]
        return {
            name: LinkQueues(*(QueueCounts(**counted[end]) for end in _ends(self.cluster, name)))
            for name in self.wires
        }

    def _change(self, **new: Any) -> Link:
        self.cluster.reshape({wire.name: replace(wire.shape, **new) for wire in self._cables()})
        return self

    def _cables(self) -> list[Wire]:
        return [wire for wire in self.cluster.handle.plan.wires if wire.name in self.wires]

    def __repr__(self) -> str:
        return "Link(" + "; ".join(f"{wire.name}: {wire.shape}" for wire in self._cables()) + ")"


def _ends(cluster: Cluster, name: str) -> list[str]:
    """The names of a wire's devices, which are one's own in the whole network."""
    wire = next(wire for wire in cluster.handle.plan.wires if wire.name == name)
    return [f"{end.where}/{end.device}" for end in wire.ends]
