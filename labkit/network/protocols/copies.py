"""Host copies: the same bytes from one process to another in five ways, with what each copies and calls.

`send` has the kernel copy out of the sender's memory and into the receiver's. `zerocopy` (MSG_ZEROCOPY) and `sendfile`
let the network read the sender's pages where they are; whether it does is reported by the kernel: over loopback
and between virtual nodes it copies anyway, since the receiver must not see the sender change what it gets. Shared
memory needs no network: a copy in and a copy out, or none where the data is made and used in place.
"""

from __future__ import annotations

import errno
import mmap
import os
import select
import socket
import statistics
import struct
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.units import parse, show_bytes, show_time
from labkit.network.protocols.pair import between, run_pair
from labkit.network.protocols.tcp import tcp_info

WAYS = ("send", "zerocopy", "sendfile", "shared memory", "in place")
_SO_ZEROCOPY, _MSG_ZEROCOPY = 60, 0x4000000  # linux/socket.h; Python does not name them
_ORIGIN_ZEROCOPY, _CODE_COPIED = 5, 1  # linux/errqueue.h
_NOTICE = struct.Struct("=IBBBBII")  # struct sock_extended_err: errno, origin, type, code, pad, first, last
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


class Mover:
    """One half of a way: ``give`` a message, or ``take`` it; counts its own calls and copies."""

    def __init__(self, line: socket.socket, size: int, memory: int):
        self.line, self.size = line, size
        self.data = memoryview(bytearray(size))
        self.shared = memoryview(mmap.mmap(memory, size))
        self.calls = self.copied = 0
        self.note = ""

    def give(self) -> None:
        raise NotImplementedError

    def take(self) -> None:
        left = self.data
        while left:
            if not (count := self.line.recv_into(left)):
                raise ConnectionResetError(errno.ECONNRESET, "the sender has gone")
            self.calls += 1
            self.copied += count
            left = left[count:]


class Send(Mover):
    """From memory through the kernel into memory."""

    def give(self) -> None:
        left = self.data
        while left:
            count = self.line.send(left)
            self.calls += 1
            self.copied += count
            left = left[count:]


class ZeroCopy(Mover):
    """The pages are lent to the kernel, which says when it is done with them, and whether it has copied anyway."""

    def __init__(self, line: socket.socket, size: int, memory: int):
        super().__init__(line, size, memory)
        line.setsockopt(socket.SOL_SOCKET, _SO_ZEROCOPY, 1)
        self._sizes: list[int] = []
        self._done = 0
        self._waiting = select.poll()
        self._waiting.register(line, 0)  # only a notice, which counts as an error, ends the wait

    def give(self) -> None:
        left = self.data
        while left:
            count = self.line.send(left, _MSG_ZEROCOPY)
            self.calls += 1
            self._sizes.append(count)
            left = left[count:]
        while self._done < len(self._sizes):  # until then the memory must not be changed
            self._notices()

    def _notices(self) -> None:
        """Read one notice: a range of calls, and whether the kernel made copies for them."""
        try:
            _, ancillary, _, _ = self.line.recvmsg(0, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
        except BlockingIOError:
            self._waiting.poll()
            self.calls += 1
            return
        self.calls += 1
        for _, _, content in ancillary:
            _, origin, _, code, _, first, last = _NOTICE.unpack_from(content)
            if origin == _ORIGIN_ZEROCOPY:
                self._done = max(self._done, last + 1)
                if code & _CODE_COPIED:
                    self.copied += sum(self._sizes[first : last + 1])
                    self.note = "the kernel reports that it has copied anyway"


class SendFile(Mover):
    """From a file in memory: the kernel hands on its pages."""

    def __init__(self, line: socket.socket, size: int, memory: int):
        super().__init__(line, size, memory)
        self.memory = memory

    def give(self) -> None:
        at = 0
        while at < self.size:
            at += os.sendfile(self.line.fileno(), self.memory, at, self.size - at)
            self.calls += 1


class Shared(Mover):
    """A copy into memory that both see, a word that it is there, a copy out."""

    def give(self) -> None:
        self.shared[:] = self.data
        self.copied += self.size
        self.line.send(b"!")
        self.calls += 1

    def take(self) -> None:
        self.line.recv(1)
        self.calls += 1
        self.data[:] = self.shared
        self.copied += self.size


class InPlace(Mover):
    """The data is made in memory that both see, and used there: only the word that it is there travels."""

    def give(self) -> None:
        self.line.send(b"!")
        self.calls += 1

    def take(self) -> None:
        self.line.recv(1)
        self.calls += 1


_MOVERS: dict[str, Callable[..., Mover]] = dict(
    zip(WAYS, (Send, ZeroCopy, SendFile, Shared, InPlace), strict=True)
)


def work(line: socket.socket, side: int, way: str, size: int, rounds: int, memory: int) -> dict[str, Any]:
    """One half: side 0 gives messages and waits for an answer of one byte to each; side 1 takes them."""
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        mover = _MOVERS[way](line, size, memory)
        _turn(line, mover, side)  # touches all pages
    except OSError as error:
        if way != "zerocopy":
            raise
        return {"refused": f"This system refuses it: {error.strerror}."}
    mover.calls = mover.copied = 0
    before, cpu = tcp_info(line), time.process_time()
    seconds = [_turn(line, mover, side) for _ in range(rounds)]
    after = tcp_info(line)
    return {
        "seconds": seconds,
        "cpu": time.process_time() - cpu,
        "calls": mover.calls + rounds,  # the answer's
        "copied": mover.copied,
        "segments": after.data_segments - before.data_segments,
        "retransmits": after.retransmits - before.retransmits,
        "note": mover.note,
    }


def _turn(line: socket.socket, mover: Mover, side: int) -> float:
    began = time.perf_counter()
    if side == 0:
        mover.give()
        if not line.recv(1):
            raise ConnectionAbortedError(errno.ECONNABORTED, "the receiver has gone")
    else:
        mover.take()
        line.send(b"!")
    return time.perf_counter() - began
