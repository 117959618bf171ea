"""Bytes that went over the wire, read where the system counts them; never computed from sizes."""

from __future__ import annotations

from labkit.network.context import rank_context
from labkit.network.interfaces import bytes_sent
from labkit.network.launch.meter import Traffic


class Wire:
    """A counter that starts at 0 when it is made; inside a rank.

    Attributes
    ----------
    where : str
        What counts: the network interface of this rank's node, or, for ranks that share one machine, this
        rank's TCP connections.
    """

    def __init__(self) -> None:
        self._node = rank_context().node
        self._traffic = Traffic()
        self.where = f"the interface of {self._node}" if self._node else "this rank's TCP connections"
        self._before = self._read()

    def sent(self) -> int:
        """Bytes sent since: payload, the headers of gloo and, on an interface, those of TCP, IP and Ethernet too."""
        return self._read() - self._before

    def _read(self) -> int:
        if self._node:
            return bytes_sent()
        self._traffic.count()
        return self._traffic.sent
