"""Linux namespaces from Python: leave the old one, enter another, name the host, mount a file over a file."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
from collections.abc import Iterator

NEWNS, NEWUTS, NEWUSER, NEWNET = 0x00020000, 0x04000000, 0x10000000, 0x40000000
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *args: object) -> None:
    if getattr(_libc, name)(*args):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def unshare(kinds: int) -> None:
    """From here on this process is alone in fresh namespaces of these kinds."""
    _call("unshare", kinds)


def enter(file: int, kind: int = 0) -> None:
    """Move this process into the namespace that ``file`` is open on."""
    _call("setns", file, kind)


def become_root() -> None:
    """In a fresh user namespace: whoever I am outside is root inside."""
    user, group = os.getuid(), os.getgid()
    unshare(NEWUSER)
    for name, content in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(content)


def own_mounts() -> None:
    """A mount table of one's own: what is mounted from here on is seen by nobody outside."""
    unshare(NEWNS)
    _call("mount", b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None)


def mount_over(source: str, target: str) -> None:
    """Show the file ``source`` at ``target``."""
    _call("mount", source.encode(), target.encode(), None, ctypes.c_ulong(_MS_BIND), None)


def fresh_node(name: str) -> tuple[int, int]:
    """Leave for a fresh network and host name; both, open. They last as long as somebody has them open."""
    unshare(NEWNET | NEWUTS)
    socket.sethostname(name)
    return here("net"), here("uts")


def here(kind: str) -> int:
    """This process's namespace of a kind (``"net"``, ``"uts"``, ``"mnt"``, ``"user"``), open."""
    return os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)


@contextlib.contextmanager
def inside(network: int) -> Iterator[None]:
    """The body, and what it starts, is in this network."""
    before = here("net")
    enter(network, NEWNET)
    try:
        yield
    finally:
        enter(before, NEWNET)
        os.close(before)
