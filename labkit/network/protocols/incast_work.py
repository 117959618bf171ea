"""What each process of an incast does: one receives from all the others, which wait for its word and send at once."""

from __future__ import annotations

import errno
import selectors
import socket
import time
from collections.abc import Sequence
from typing import Any

from labkit.errors import LabkitError
from labkit.network.protocols.tcp import tcp_info

_PIECE = 1 << 16


def work(*lines: socket.socket, side: int, size: int, congestion: str) -> dict[str, Any]:
    """Side 0 receives from all lines; every other one sends on its line when the receiver says so."""
    return _receive(lines, size) if side == 0 else _send(lines[0], size, congestion)


def _send(line: socket.socket, size: int, congestion: str) -> dict[str, int]:
    try:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
    except OSError:
        raise LabkitError(
            f"TCP's congestion control {congestion!r} is not to be had here: 'cubic' and 'reno' mostly are; "
            "/proc/sys/net/ipv4/tcp_allowed_congestion_control lists all."
        ) from None
    data = bytes(size)
    line.sendall(b"?")  # ready
    line.recv(1)
    line.sendall(data)
    line.recv(1)  # all of it is there, so what was lost has been sent again
    return {"retransmits": tcp_info(line).retransmits}


def _receive(lines: Sequence[socket.socket], size: int) -> dict[str, list[float]]:
    left = dict.fromkeys(lines, size)
    completions = []
    for line in lines:
        line.recv(1)
    buffer = bytearray(_PIECE)
    with selectors.DefaultSelector() as selector:
        for line in lines:
            selector.register(line, selectors.EVENT_READ, line)
        began = time.perf_counter()
        for line in lines:
            line.sendall(b"!")
        while selector.get_map():
            for key, _ in selector.select():
                line = key.data
                left[line] -= _some(line, buffer)
                if not left[line]:
                    completions.append(time.perf_counter() - began)
                    selector.unregister(line)
    for line in lines:
        line.sendall(b"!")
    return {"completions": completions}


def _some(line: socket.socket, buffer: bytearray) -> int:
    if not (count := line.recv_into(buffer)):
        raise ConnectionResetError(errno.ECONNRESET, "a sender has gone")
    return count
