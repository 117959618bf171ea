"""Headers: how much of what a wire carries is the user's, by message size.

Derived from what Ethernet, IP and TCP put around each segment; or counted by the device of a cluster's node, with
every segment a packet of its own, as on a real wire.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.units import parse, show_bytes
from labkit.network.interfaces import bytes_sent
from labkit.network.protocols.pair import Between, between, run_pair
from labkit.network.protocols.tcp import tcp_info

IP, TCP, TIMESTAMPS = 20, 20, 12  # IPv4 without options; TCP, and the option that Linux always sends
FRAME = 14  # addresses and type: what a device counts with each packet
WIRE = 4 + 8 + 12  # checksum, preamble, gap between frames: what the wire carries besides
SIZES = tuple(1 << power for power in range(0, 21, 2))
_LEAST_MTU, _MOST_MTU = 576, 65535
_ANY = 65535  # what the kernel sets by itself
_FEWEST, _MESSAGES, _BYTES = 4, 200, 4 << 20


@dataclass(frozen=True)
class HeaderRow:
    """Messages of one size, each sent alone.

    Attributes
    ----------
    size : int
        Bytes of the user's data.
    segments : float
        Packets a message, one way.
    interface : float
        Bytes a message as a device counts them: with Ethernet, IP and TCP headers.
    back : float
        Bytes a message the other way: acknowledgements, and the answer of one byte; 0 where derived.
    """

    size: int
    segments: float
    interface: float
    back: float = 0.0

    @property
    def wire(self) -> float:
        """Bytes a message that pass the wire, with each frame's checksum, preamble and gap (derived)."""
        return self.interface + self.segments * WIRE

    @property
    def share(self) -> float:
        """Of the interface's bytes, those that are not the user's."""
        return 1 - self.size / self.interface

    @property
    def wire_share(self) -> float:
        """Of the wire's bytes, those that are not the user's (derived)."""
        return 1 - self.size / self.wire


@dataclass(frozen=True)
class HeaderShare:
    """What headers take, by message size.

    Attributes
    ----------
    rows : tuple of HeaderRow
    mtu : int
        Largest IP packet, bytes.
    where : str
        What counted, or empty where all is derived.
    """

    rows: tuple[HeaderRow, ...]
    mtu: int
    where: str = ""

    @property
    def label(self) -> str:
        return (
            f"counted: {self.where}" if self.where else f"derived: TCP over IPv4 and Ethernet, MTU {self.mtu}"
        )

    def to_dict(self) -> dict[str, Any]:
        rows = [
            {**asdict(row), "wire": row.wire, "share": row.share, "wire_share": row.wire_share}
            for row in self.rows
        ]
        return {"label": self.label, "mtu": self.mtu, "rows": rows}

    def __repr__(self) -> str:
        small, large = self.rows[0], self.rows[-1]
        return (
            f"HeaderShare({show_bytes(small.size)}: {small.share:.1%} headers, {show_bytes(large.size)}: "
            f"{large.share:.1%}; {self.label})"
        )

    def _repr_html_(self) -> str:
        from labkit.hardware.html import table

        head = (
            "message",
            "packets",
            "bytes on the interface",
            "headers",
            "of the wire, with preamble and gap (derived)",
        )
        rows = [
            (
                show_bytes(r.size),
                f"{r.segments:g}",
                f"{r.interface:.0f}",
                f"{r.share:.1%}",
                f"{r.wire_share:.1%}",
            )
            for r in self.rows
        ]
        return table(head, rows, self.label)


def header_share(
    sizes: Sequence[int | str] = SIZES,
    mtu: int = 1500,
    *,
    cluster: Any = None,
    nodes: tuple[str, str] | None = None,
) -> HeaderShare:
    """What headers take of messages that are sent one by one, each of them alone.

    Parameters
    ----------
    sizes : sequence
        Bytes, or strings such as ``"64KiB"``.
    mtu : int
        Largest IP packet: 1500 on most networks, 9000 with jumbo frames. A cluster's links have 1500.
    cluster : Cluster, optional
        Count it between two of its nodes (``nodes``, else the first two). While it counts, the sender's kernel
        does not hand its device several segments as one.

    Raises
    ------
    LabkitError
        For sizes below 1 byte, an MTU that is none, and nodes that are not there.
    """
    asked = sorted({int(parse(size, "size")) for size in sizes})
    if not asked or asked[0] < 1:
        raise LabkitError("Give sizes of 1 byte or more.")
    if not _LEAST_MTU <= mtu <= _MOST_MTU:
        raise LabkitError(
            f"mtu={mtu}: IPv4 over Ethernet has {_LEAST_MTU} to {_MOST_MTU} bytes a packet, mostly 1500."
        )
    if cluster is None:
        return HeaderShare(tuple(derived(size, mtu) for size in asked), mtu)
    place = between(cluster, nodes)
    with _one_by_one(place):
        rows = [_counted(place, size) for size in asked]
    return HeaderShare(tuple(rows), 1500, f"the device of {place.nodes[0]}, sending to {place.nodes[1]}")


def derived(size: int, mtu: int = 1500) -> HeaderRow:
    """A message of so many bytes, sent alone over TCP on Ethernet: 66 bytes of headers a segment (derived).

    A segment of the usual MTU of 1500 carries 1448 bytes of data, in 1538 bytes of the wire's time.
    """
    segments = math.ceil(size / (mtu - IP - TCP - TIMESTAMPS))
    return HeaderRow(size, segments, size + segments * (FRAME + IP + TCP + TIMESTAMPS))


@contextmanager
def _one_by_one(place: Between) -> Iterator[None]:
    """The sender's device gets every segment as a packet of its own."""
    assert place.cluster is not None
    segments_at_once(place.cluster, place.nodes[0], 1)
    try:
        yield
    finally:
        segments_at_once(place.cluster, place.nodes[0])


def segments_at_once(cluster: Any, node: str, count: int = _ANY) -> None:
    """How many segments TCP may hand to a node's device as one; concerns connections made from then on."""
    done = cluster.call(node, ["ip", "link", "set", "dev", "eth0", "gso_max_segs", str(count)])
    if done.returncode:
        raise LabkitError(f"Node {node} cannot send segment by segment: ip says {done.stderr.strip()!r}.")


def _counted(place: Between, size: int) -> HeaderRow:
    messages = max(_FEWEST, min(_MESSAGES, _BYTES // size))
    limit_s = place.limit_s((messages + 1) * size)
    sender, receiver = run_pair(place, "headers", limit_s, size=size, messages=messages)
    return HeaderRow(
        size, sender["segments"] / messages, sender["bytes"] / messages, receiver["bytes"] / messages
    )


def work(line: socket.socket, side: int, size: int, messages: int) -> dict[str, int]:
    """One half: side 0 sends messages and waits for an answer of one byte each time, side 1 gives it.

    Both count what leaves their node meanwhile: bytes by its devices, segments with data by TCP.
    """
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = memoryview(bytearray(size))
    turn = _ask if side == 0 else _answer
    turn(line, data)  # whoever is to be found by ARP has been found
    bytes_before, segments_before = bytes_sent(), tcp_info(line).data_segments
    for _ in range(messages):
        turn(line, data)
    return {"bytes": bytes_sent() - bytes_before, "segments": tcp_info(line).data_segments - segments_before}


def _ask(line: socket.socket, data: memoryview) -> None:
    line.sendall(data)
    line.recv(1)


def _answer(line: socket.socket, data: memoryview) -> None:
    while data:
        data = data[line.recv_into(data) :]
    line.sendall(b"!")
