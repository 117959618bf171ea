"""Short JSON messages over a Unix socket, with file descriptors riding along.

Nothing listens: both ends are made by ``socketpair`` and handed down. Whatever is long travels as a file in
memory, of which only the descriptor crosses.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import tempfile
from collections.abc import Sequence
from typing import Any

_LENGTH = struct.Struct("!I")
MAX_FILES = 16


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets; the second is meant to be handed to another process."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)


def send(channel: socket.socket, message: dict[str, Any], files: Sequence[int] = ()) -> None:
    """Send a message; the receiver gets duplicates of ``files``."""
    body = json.dumps(message).encode()
    socket.send_fds(channel, [_LENGTH.pack(len(body))], list(files))
    channel.sendall(body)


def receive(channel: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """The next message and its descriptors; None when the other end is gone."""
    try:
        head, files, _, _ = socket.recv_fds(channel, _LENGTH.size, MAX_FILES)
        head += _exactly(channel, _LENGTH.size - len(head)) if head else b""
        if not head:
            return None, files
        return json.loads(_exactly(channel, _LENGTH.unpack(head)[0])), files
    except (ConnectionError, EOFError):
        return None, []


def _exactly(channel: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = channel.recv(count - len(parts))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def memory_file(content: bytes = b"") -> int:
    """A file without a name, in memory where the system can: gone with its last descriptor."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("labkit", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as unnamed:
            file = os.dup(unnamed.fileno())
    write_all(file, content)
    return file


def write_all(file: int, content: bytes | memoryview) -> None:
    """Write everything: one call to the system takes 2 GiB at most."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest[: 1 << 30]) :]


def read_json(file: int) -> Any:
    """What `memory_file` was given as JSON."""
    return json.loads(os.pread(file, os.fstat(file).st_size, 0))
