"""A small message layer over a stream socket, with the two protocols that MPI and UCX choose between.

Eager: header and data leave at once, and land in a bounce buffer that the receiver keeps ready; from there they are
copied to where the user wants them. Rendezvous: the sender asks first (RTS, request to send), waits until the
receiver knows where to put the data (CTS, clear to send), and the data then lands there at once. One copy more
against one round trip more.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import asdict, dataclass, fields
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.units import show_bytes

PROTOCOLS = ("eager", "rendezvous")
_HEADER = struct.Struct("!BQ")  # what follows, and how many bytes of data it has or will have
_EAGER, _RTS, _CTS = 1, 2, 3


@dataclass(frozen=True)
class Counts:
    """What one end has done so far, counted by the layer itself.

    Attributes
    ----------
    messages : int
        Of the user: sent or received.
    control : int
        Sent by the layer for itself: RTS and CTS.
    system_calls : int
        Calls that sent or received.
    copied : int
        Bytes that the layer copied from the bounce buffer to the user's memory.
    crossed : int
        Bytes, headers among them, that system calls carried between user and kernel memory; the kernel copies each.
    round_trips : int
        How often the sender had to wait for an answer before it could send data.
    """

    messages: int = 0
    control: int = 0
    system_calls: int = 0
    copied: int = 0
    crossed: int = 0
    round_trips: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    def __sub__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, one.name) - getattr(other, one.name) for one in fields(self)))

    def to_dict(self) -> dict[str, int]:
        return asdict(self)


class Channel:
    """One end of a connection; messages go one way at a time.

    Parameters
    ----------
    line : socket.socket
        A connected stream socket; it stays the caller's to close.
    bounce : int
        Bytes of data that the bounce buffer holds: the largest message that may come eagerly. Both ends have
        the same.
    """

    def __init__(self, line: socket.socket, bounce: int = 1 << 16):
        self.line, self.limit = line, bounce
        if line.family != socket.AF_UNIX:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a header must not wait for more
        self._bounce = memoryview(bytearray(_HEADER.size + bounce))
        self._begin = self._end = 0  # what has come and has not been looked at
        self._counts: dict[str, int] = Counts().to_dict()

    @property
    def counts(self) -> Counts:
        return Counts(**self._counts)

    def send(self, data: Any, protocol: str = "eager") -> None:
        """Send a message: anything with a buffer (bytes, an array).

        By rendezvous this returns only when the receiver has asked for the data; eagerly, at once.

        Raises
        ------
        LabkitError
            For a protocol that is none, an eager message that the bounce buffer cannot hold, another end that has
            gone, and two ends that both wait for each other's CTS.
        """
        view = memoryview(data).cast("B")
        if protocol not in PROTOCOLS:
            raise LabkitError(f"{protocol!r} is no protocol of this layer: take 'eager' or 'rendezvous'.")
        if protocol == "eager":
            self._send_eager(view)
        else:
            self._send_rendezvous(view)
        self._counts["messages"] += 1

    def receive(self, into: Any) -> int:
        """Receive the next message into writable memory, by whichever protocol it comes.

        Returns
        -------
        int
            How many bytes it had.

        Raises
        ------
        LabkitError
            When the memory is too small for it, or the other end has gone.
        """
        target = memoryview(into).cast("B")
        kind, size = self._header()
        if size > len(target):
            raise LabkitError(
                f"A message of {show_bytes(size)} has come, and there is room for {show_bytes(len(target))}: "
                "receive into memory as large as what is sent."
            )
        if kind == _EAGER:
            self._take_eager(target[:size])
        else:
            self._control(_CTS, size)
            self._fill(target[:size])
        self._counts["messages"] += 1
        return size

    def _send_eager(self, view: memoryview) -> None:
        if len(view) > self.limit:
            raise LabkitError(
                f"An eager message of {show_bytes(len(view))} does not fit into bounce buffers of "
                f"{show_bytes(self.limit)}: send it by rendezvous, or make them larger at both ends."
            )
        self._push([_HEADER.pack(_EAGER, len(view)), view])

    def _send_rendezvous(self, view: memoryview) -> None:
        self._control(_RTS, len(view))
        kind, _ = self._header()
        if kind != _CTS:
            raise LabkitError(
                "Both ends are sending by rendezvous, and each waits for the other to receive: let one of them "
                "receive first. (Eagerly this would have worked, as long as the messages fit the bounce buffers.)"
            )
        self._counts["round_trips"] += 1
        self._push([view])

    def _control(self, kind: int, size: int) -> None:
        self._push([_HEADER.pack(kind, size)])
        self._counts["control"] += 1

    def _push(self, parts: list[Any]) -> None:
        """All of it, in as few calls as the kernel takes."""
        left = [memoryview(part) for part in parts if len(part)]
        while left:
            sent = self.line.sendmsg(left)
            self._called(sent)
            while left and sent >= len(left[0]):
                sent -= len(left.pop(0))
            if sent:
                left[0] = left[0][sent:]

    def _header(self) -> tuple[int, int]:
        self._await(_HEADER.size)
        kind, size = _HEADER.unpack_from(self._bounce, self._begin)
        self._begin += _HEADER.size
        return kind, size

    def _take_eager(self, target: memoryview) -> None:
        self._await(len(target))
        target[:] = self._bounce[self._begin : self._begin + len(target)]
        self._counts["copied"] += len(target)
        self._begin += len(target)

    def _await(self, count: int) -> None:
        """Have so many bytes in the bounce buffer that have not been looked at."""
        if self._begin == self._end:
            self._begin = self._end = 0
        elif self._begin + count > len(self._bounce):
            rest = bytes(self._bounce[self._begin : self._end])
            self._begin, self._end = 0, len(rest)
            self._bounce[: len(rest)] = rest
            self._counts["copied"] += len(rest)
        while self._end - self._begin < count:
            self._end += self._pull(self._bounce[self._end :])

    def _fill(self, target: memoryview) -> None:
        while target:
            target = target[self._pull(target) :]

    def _pull(self, into: memoryview) -> int:
        count = self.line.recv_into(into)
        if not count:
            raise LabkitError(
                "The other end of this channel has gone: its process ended, or closed the connection."
            )
        self._called(count)
        return count

    def _called(self, count: int) -> None:
        self._counts["system_calls"] += 1
        self._counts["crossed"] += count
