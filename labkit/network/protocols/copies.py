"""Host copies: the same bytes from one process to another in five ways, with what each copies and calls.

`send` has the kernel copy out of the sender's memory and into the receiver's. `zerocopy` (MSG_ZEROCOPY) and `sendfile`
let the network read the sender's pages where they are. Of MSG_ZEROCOPY the kernel reports whether it does: over
loopback and between virtual nodes it copies anyway, since the receiver must not see the sender change what it gets. A
file's pages `sendfile` hands on as they are, and who changes the file too early changes the message. Shared memory
needs no network: a copy in and a copy out, or none where the data is made and used in place.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.units import parse, show_bytes, show_time
from labkit.network.protocols.movers import WAYS
from labkit.network.protocols.pair import between, run_pair

_MOST = 64 << 20


@dataclass(frozen=True)
class CopyRow:
    """Messages of one size, moved one way; all figures are for one message, both ends together.

    Attributes
    ----------
    way : str
    size : int
        Bytes.
    seconds : float
        There, and an answer of one byte: the median (measured).
    cpu_seconds : float
        Processor time of both processes (measured).
    system_calls : float
        Of both (counted by their own code).
    to_kernel, from_kernel, in_memory : float
        Bytes copied: from the sender's memory, to the receiver's, and by the processes themselves. What a system call
        is known to copy is counted with its bytes; for MSG_ZEROCOPY the kernel reports whether it has copied.
    segments, retransmits : float
        Of TCP (counted by the kernel); 0 without TCP.
    note : str
    """

    way: str
    size: int
    seconds: float
    cpu_seconds: float
    system_calls: float
    to_kernel: float
    from_kernel: float
    in_memory: float
    segments: float = 0.0
    retransmits: float = 0.0
    note: str = ""

    @property
    def copied(self) -> float:
        """Bytes copied in all."""
        return self.to_kernel + self.from_kernel + self.in_memory


@dataclass(frozen=True)
class HostCopies:
    """One size, every way there is here; ``refused`` has the reasons for those there are not."""

    rows: tuple[CopyRow, ...]
    where: str
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"measured and counted: {self.where}"

    def of(self, way: str) -> CopyRow:
        """The row of that way.

        Raises
        ------
        LabkitError
            For a way that was not measured; with the reason.
        """
        for row in self.rows:
            if row.way == way:
                return row
        raise LabkitError(
            f"{way!r} was not measured here: {self.refused.get(way, 'it is none of the ways.')}"
        )

    def to_dict(self) -> dict[str, Any]:
        rows = [{**asdict(row), "copied": row.copied} for row in self.rows]
        return {"label": self.label, "rows": rows, "refused": dict(self.refused)}

    def __repr__(self) -> str:
        copies = ", ".join(f"{row.way} {row.copied / row.size:g}" for row in self.rows)
        return f"HostCopies({show_bytes(self.rows[0].size)}; copies of the data: {copies}; {self.where})"

    def _repr_html_(self) -> str:
        from labkit.hardware.html import table

        head = (
            "way",
            "time",
            "processor",
            "system calls",
            "copied out",
            "copied in",
            "in memory",
            "segments",
            "",
        )
        rows = [
            (
                *(row.way, show_time(row.seconds), show_time(row.cpu_seconds), f"{row.system_calls:.3g}"),
                *(show_bytes(each) for each in (row.to_kernel, row.from_kernel, row.in_memory)),
                *(f"{row.segments:.3g}", row.note),
            )
            for row in self.rows
        ]
        rows += [(way, "-", "-", "-", "-", "-", "-", "-", why) for way, why in self.refused.items()]
        return table(head, rows, f"A message of {show_bytes(self.rows[0].size)}, {self.label}")


def host_copies(
    size: int | str = "4MiB", rounds: int = 15, *, cluster: Any = None, nodes: tuple[str, str] | None = None
) -> HostCopies:
    """Move messages from one process to another in every way this system has.

    Parameters
    ----------
    size : int or str
        Bytes of a message, up to 64 MiB.
    rounds : int
        Messages a way.
    cluster : Cluster, optional
        Between two of its nodes (``nodes``, else the first two), where there is no memory to share.

    Raises
    ------
    LabkitError
        For a size or a number of rounds that makes no measurement, and off Linux.
    """
    count = int(parse(size, "size"))
    if sys.platform != "linux":
        raise LabkitError("Copies are counted on Linux only: sendfile, MSG_ZEROCOPY and memfd are its own.")
    if not 1 <= count <= _MOST or rounds < 3:
        raise LabkitError(f"Copies are counted with 1 byte to {show_bytes(_MOST)}, and 3 rounds or more.")
    place = between(cluster, nodes)
    rows, refused = [], {}
    with _memory(count) as memory:
        for way in WAYS:
            if cluster is not None and way in ("shared memory", "in place"):
                refused[way] = "Nodes share no memory."
                continue
            sides = run_pair(
                place,
                "copies",
                place.limit_s((rounds + 1) * count),
                files=[memory.fileno()],
                way=way,
                size=count,
                rounds=rounds,
                memory=memory.fileno(),
            )
            if why := sides[0].get("refused"):
                refused[way] = why
            else:
                rows.append(_row(way, count, rounds, *sides))
    return HostCopies(tuple(rows), place.words, refused)


def _memory(count: int) -> Any:
    file = os.fdopen(os.memfd_create("labkit-copies"), "r+b", buffering=0)
    file.truncate(count)
    return file


def _row(way: str, size: int, rounds: int, sender: dict[str, Any], receiver: dict[str, Any]) -> CopyRow:
    def each(name: str) -> float:
        return float(sender[name] + receiver[name]) / rounds

    return CopyRow(
        way,
        size,
        statistics.median(sender["seconds"]),
        each("cpu"),
        each("calls"),
        to_kernel=sender["copied"] / rounds if way in ("send", "zerocopy", "sendfile") else 0.0,
        from_kernel=receiver["copied"] / rounds if way in ("send", "zerocopy", "sendfile") else 0.0,
        in_memory=each("copied") if way in ("shared memory", "in place") else 0.0,
        segments=sender["segments"] / rounds,
        retransmits=sender["retransmits"] / rounds,
        note=sender["note"],
    )
