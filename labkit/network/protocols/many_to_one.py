"""Incast: many senders answer one receiver at once, and meet at the last link's queue.

Real TCP through a virtual cluster's switch, whose port to the receiver has a queue as short as a switch's. What does
not fit is dropped, and sent again when TCP notices: soon, or, when the end of a burst was lost, after its
timeout of 200 ms. Where no cluster can be, a fair share of the link (modelled) stands in, which loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from labkit.errors import LabkitError
from labkit.hardware.units import parse, show_bytes, show_rate, show_time
from labkit.network.protocols import pair
from labkit.network.protocols.headers import segments_at_once

if TYPE_CHECKING:
    from labkit.network.cluster.machine import Cluster

_PORT = 5202
_AMPLE = 1 << 20


@dataclass(frozen=True)
class IncastRow:
    """So many senders at once.

    Attributes
    ----------
    senders, size : int
        How many, and the bytes that each sends.
    completions : tuple of float
        Seconds from the receiver's word to begin until each sender's last byte was there, ascending.
    retransmits : int
        Segments sent once more, of all senders (TCP's own count); 0 where modelled.
    drops : int
        Packets that found the queue to the receiver full (the queue's own count); 0 where modelled.
    """

    senders: int
    size: int
    completions: tuple[float, ...]
    retransmits: int
    drops: int

    @property
    def seconds(self) -> float:
        """Until the last one was done."""
        return self.completions[-1]

    @property
    def goodput(self) -> float:
        """Bytes/s of data over all of that time."""
        return self.senders * self.size / self.seconds

    @property
    def spread(self) -> float:
        """How many times longer the last one took than the first."""
        return self.completions[-1] / self.completions[0]


@dataclass(frozen=True)
class Incast:
    """The same for growing numbers of senders.

    Attributes
    ----------
    rows : tuple of IncastRow
    bandwidth : float
        Of the link to the receiver, bytes/s.
    queue : int
        Bytes that wait before it at most.
    congestion : str
        TCP's congestion control; empty where modelled.
    label : str
        ``"measured and counted: ..."``, or ``"modelled: ..."`` with the reason.
    """

    rows: tuple[IncastRow, ...]
    bandwidth: float
    queue: int
    congestion: str
    label: str

    @property
    def modelled(self) -> bool:
        return not self.congestion

    def of(self, senders: int) -> IncastRow:
        """The row of so many senders; LabkitError when there is none."""
        for row in self.rows:
            if row.senders == senders:
                return row
        raise LabkitError(
            f"Incast of {senders} senders was not asked for: {[row.senders for row in self.rows]}."
        )

    def to_dict(self) -> dict[str, Any]:
        rows = [
            {**asdict(r), "seconds": r.seconds, "goodput": r.goodput, "spread": r.spread} for r in self.rows
        ]
        told = {"bandwidth": self.bandwidth, "queue": self.queue, "congestion": self.congestion}
        return {"label": self.label, **told, "rows": rows}

    def __repr__(self) -> str:
        counts = ", ".join(f"{row.senders}: {row.drops}" for row in self.rows)
        return f"Incast(drops by senders: {counts}; {self.label})"

    def _repr_html_(self) -> str:
        from labkit.hardware.html import table

        head = ("senders", "first done", "last done", "goodput", "of the link", "drops", "retransmitted")
        rows = [
            (
                *(str(row.senders), show_time(row.completions[0]), show_time(row.seconds)),
                *(show_rate(row.goodput), f"{row.goodput / self.bandwidth:.0%}"),
                *(str(row.drops), str(row.retransmits)),
            )
            for row in self.rows
        ]
        return table(head, rows, f"{show_bytes(self.rows[0].size)} from each sender, {self.label}")


def incast(
    senders: Sequence[int] = (1, 2, 4, 8),
    size: int | str = "64KiB",
    *,
    bandwidth: float | str = "100Mbit/s",
    queue: int | str = "32KiB",
    congestion: str = "cubic",
    cluster: Any = None,
) -> Incast:
    """Have several nodes send to one at the same moment, and count what comes of it.

    Parameters
    ----------
    senders : sequence of int
        How many send at once, each number in a round of its own.
    size : int or str
        Bytes from each.
    bandwidth : float or str
        Of every node's link to the switch, where a cluster is to be made; on a machine of few cores, where all
        nodes share them, faster links are never full.
    queue : int or str
        Bytes that may wait at the switch for the receiver's link.
    congestion : str
        TCP's congestion control: ``"cubic"`` is Linux's usual one; ``"reno"``; ``"bbr"`` where the kernel has it.
    cluster : Cluster, optional
        One with a switch whose first node receives; its links' bandwidth stays. Made and taken down without one.

    Raises
    ------
    LabkitError
        For numbers that make no incast, and a cluster with too few nodes or without a switch before the receiver.
    """
    counts, each, limit = sorted(set(senders)), int(parse(size, "size")), int(parse(queue, "size"))
    if not counts or counts[0] < 1 or each < 1:
        raise LabkitError("Incast takes one sender or more, and 1 byte or more from each.")
    if cluster is not None:
        return _on(cluster, counts, each, limit, congestion)
    from labkit.network.cluster.factory import cluster as make

    with make(counts[-1] + 1, "switch", bandwidth) as made:
        return _on(made, counts, each, limit, congestion, parse(bandwidth, "rate"))


def _on(
    cluster: Any, counts: Sequence[int], size: int, queue: int, congestion: str, rate: float = 0.0
) -> Incast:
    if cluster.label != "measured":
        return fair_share(counts, size, rate or cluster.bandwidth, queue, cluster.missing)
    wire = _last_wire(cluster, counts[-1])
    if wire.shape.bandwidth is None:
        raise LabkitError(
            f"The link {wire.name} has no bandwidth limit, so nothing queues: c.link(...).set(...) it."
        )
    label = (
        f"measured and counted: {show_rate(wire.shape.bandwidth, bits=True)} to the receiver, queue "
        f"{show_bytes(queue)}, TCP {congestion}, virtual cluster"
    )
    with _short_queue(cluster, counts[-1], queue):
        rows = tuple(_round(cluster, wire.name, count, size, congestion) for count in counts)
    return Incast(rows, wire.shape.bandwidth, queue, congestion, label)


def _last_wire(cluster: Cluster, most: int) -> Any:
    """The cable from a switch to the receiver."""
    if len(cluster.nodes) <= most:
        raise LabkitError(
            f"{most} senders and a receiver need {most + 1} nodes, and this cluster has {len(cluster.nodes)}."
        )
    if not cluster.handle.plan.switches:
        raise LabkitError(
            "Incast is measured at a switch: make the cluster with topology='switch' or 'tree'."
        )
    return _cable(cluster, cluster.nodes[0])


def _cable(cluster: Cluster, node: str) -> Any:
    """Between a node and its switch."""
    return next(wire for wire in cluster.handle.plan.wires if wire.ends[0].where == node)


@contextmanager
def _short_queue(cluster: Cluster, most: int, queue: int) -> Iterator[None]:
    """The receiver's port has the queue, and the senders' packets come one by one, as from a real card."""
    receiver, *senders = cluster.nodes[: most + 1]
    before = {node: _cable(cluster, node).shape.queue for node in (receiver, *senders)}
    try:
        cluster.link(receiver).set(queue=queue)
        for node in senders:
            cluster.link(node).set(queue=_AMPLE)
            segments_at_once(cluster, node, 1)
        yield
    finally:
        for node, usual in before.items():
            cluster.link(node).set(queue=usual)
        for node in senders:
            segments_at_once(cluster, node)


def _round(cluster: Cluster, wire: str, count: int, size: int, congestion: str) -> IncastRow:
    address = cluster.handle.plan.address(cluster.nodes[0])
    told = {"task": "incast", "size": size, "congestion": congestion}
    meet = {"address": address, "port": _PORT}
    before = cluster.link(cluster.nodes[0]).queues()[wire].back.drops
    questions = [
        {**told, "side": side, "meet": {**meet, "listen": 0 if side else count}} for side in range(count + 1)
    ]
    there = zip(questions, cluster.nodes, strict=False)
    limit_s = pair.Between(cluster, cluster.nodes[:2]).limit_s(count * size)
    found = pair.gather([pair.start(question, cluster, node) for question, node in there], limit_s)
    drops = cluster.link(cluster.nodes[0]).queues()[wire].back.drops - before
    return IncastRow(
        count,
        size,
        tuple(sorted(found[0]["completions"])),
        sum(one["retransmits"] for one in found[1:]),
        drops,
    )


def fair_share(counts: Sequence[int], size: int, rate: float, queue: int, why: str) -> Incast:
    """What a perfect network would do: all share the link fairly, and nothing is lost (modelled)."""
    from labkit.network.fabric import simulate_flows

    rows = []
    for count in counts:
        ends = simulate_flows({"last": (rate, 0.0)}, [(size, ["last"], 0.0)] * count)
        rows.append(IncastRow(count, size, tuple(sorted(float(end) for end in ends)), 0, 0))
    label = f"modelled: a fair share of {show_rate(rate, bits=True)}, no queue and no loss. {why}"
    return Incast(tuple(rows), rate, queue, "", label)
