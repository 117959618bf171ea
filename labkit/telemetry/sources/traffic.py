"""Bytes to and from this machine's disks and networks, through psutil."""

from __future__ import annotations

import time
from typing import Any

from labkit.telemetry.series import Reading, Series
from labkit.telemetry.sources.rates import Rates

LOOPBACK = ("lo", "lo0")
# The counters take dozens of system calls; beside a busy notebook each of them waits for its turn.
APART_S = 0.4


class TrafficSource:
    """Disks (all together, without the partitions' own counters), the network, and the loopback.

    A container sees the disks of its host and a network of its own; where a counter is missing there is no
    series. Virtual interfaces (bridges, veth) carry the traffic of others once more and are left out.
    """

    def __init__(self) -> None:
        try:
            import psutil
        except ImportError:
            self._psutil: Any = None
        else:
            self._psutil = psutil
        self._rates = Rates()
        self._due = 0.0
        self._latest: list[Reading] = []

    def read(self) -> list[Reading]:
        now = time.monotonic()
        if self._psutil is not None and now >= self._due:
            self._due = now + APART_S
            self._latest = self._rates.readings({**self._disk(), **self._network()})
        return self._latest

    def close(self) -> None:
        """Nothing is held open."""

    def _disk(self) -> dict[Series, int]:
        try:
            found = self._psutil.disk_io_counters()
        except (OSError, RuntimeError, NotImplementedError):
            found = None
        return {} if found is None else {DISK_READ: found.read_bytes, DISK_WRITTEN: found.write_bytes}

    def _network(self) -> dict[Series, int]:
        every = self._psutil.net_io_counters(pernic=True)
        outer = [one for name, one in every.items() if name not in LOOPBACK and not _virtual(name)]
        inner = [one for name, one in every.items() if name in LOOPBACK]
        counted = {LOCAL: sum(one.bytes_sent for one in inner)} if inner else {}
        if outer:
            counted[SENT] = sum(one.bytes_sent for one in outer)
            counted[RECEIVED] = sum(one.bytes_recv for one in outer)
        return counted


def _virtual(name: str) -> bool:
    return name.startswith(("veth", "docker", "br-", "virbr", "cni", "flannel", "cali", "tun", "tap"))


def _series(key: str, name: str, group: str, device: str) -> Series:
    return Series(key, name, "MB/s", "measured", group, hidden=True, device=device)


DISK_READ = _series("disk.read", "Disk read", "disk", "Disk")
DISK_WRITTEN = _series("disk.written", "Disk written", "disk", "Disk")
SENT = _series("network.sent", "Network sent", "network", "Network")
RECEIVED = _series("network.received", "Network received", "network", "Network")
LOCAL = _series("network.local", "Within this machine", "network", "Network")
