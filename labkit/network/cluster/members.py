"""Which processes belong to a cluster: found through /proc, by the network they are in or the mark they carry."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection, Iterable
from pathlib import Path

MARK = "LABKIT_CLUSTER"  # in the environment of every process that a cluster starts
_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def identity(network: int) -> int:
    """The number by which the system knows the namespace that is open as ``network``."""
    return os.fstat(network).st_ino


def in_networks(identities: Collection[int]) -> dict[int, int]:
    """Processes inside these networks, and the network each is in; a network that is open is no other's."""
    found = {}
    for process in _processes():
        with contextlib.suppress(OSError):
            where = os.stat(f"/proc/{process}/ns/net").st_ino
            if where in identities:
                found[process] = where
    return found


def marked(cluster: str) -> list[int]:
    """Processes that a cluster has started, but this one."""
    sign = f"{MARK}={cluster}".encode()
    found = []
    for process in _processes():
        with contextlib.suppress(OSError):
            if sign in Path(f"/proc/{process}/environ").read_bytes().split(b"\0"):
                found.append(process)
    return [process for process in found if process != os.getpid()]


def end(processes: Iterable[int]) -> None:
    """SIGKILL, and until they are gone (2 s at most)."""
    left = list(processes)
    for process in left:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)
    limit = time.monotonic() + 2.0
    while (left := [process for process in left if _runs(process)]) and time.monotonic() < limit:
        time.sleep(0.005)


def _runs(process: int) -> bool:
    return _stat(process)[:1] not in ([], [b"Z"])


def cpu_seconds(process: int) -> float:
    """Processor time that a process has used; 0 when it is gone."""
    fields = _stat(process)
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S if fields else 0.0


def _stat(process: int) -> list[bytes]:
    """The fields of /proc/PID/stat from the third (the state) on; empty when there is no such process."""
    try:
        content = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return []
    return content.rpartition(b")")[2].split()  # the name in parentheses may hold anything


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
