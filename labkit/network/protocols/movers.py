"""Five ways to move a message from one process to another: one half of each, which counts its calls and copies."""

from __future__ import annotations

import errno
import mmap
import os
import select
import socket
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from labkit.network.protocols.tcp import tcp_info

WAYS = ("send", "zerocopy", "sendfile", "shared memory", "in place")
_SO_ZEROCOPY, _MSG_ZEROCOPY = 60, 0x4000000  # linux/socket.h; Python does not name them
_ORIGIN_ZEROCOPY, _CODE_COPIED = 5, 1  # linux/errqueue.h
_NOTICE = struct.Struct("=IBBBBII")  # struct sock_extended_err: errno, origin, type, code, pad, first, last


class Mover(ABC):
    """One half of a way: ``give`` a message, or ``take`` it; counts its own calls and copies."""

    def __init__(self, line: socket.socket, size: int, memory: int):
        self.line, self.size = line, size
        self.data = memoryview(bytearray(size))
        self.shared = memoryview(mmap.mmap(memory, size))
        self.calls = self.copied = 0
        self.note = ""

    @abstractmethod
    def give(self) -> None:
        """Send ``data`` once."""

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
            self.calls += 2  # that one has found nothing, and it is a call as well
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
