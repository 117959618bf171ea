"""What the kernel knows of a TCP connection: segments, retransmissions, round-trip time (Linux, TCP_INFO)."""

from __future__ import annotations

import socket
import struct
import sys
from dataclasses import asdict, dataclass

from labkit.errors import LabkitError

# struct tcp_info of linux/tcp.h up to tcpi_bytes_retrans: 8 single bytes, 24 words of 32 bits, 4 of 64, 6 of 32,
# 4 of 64, 2 of 32, 2 of 64, each where its own size puts it.
_INFO = struct.Struct("=8B24I4Q6I4Q2I2Q")
_WORDS, _SEGMENTS = 8, 36  # where the first words and the counts of segments are


@dataclass(frozen=True)
class TcpInfo:
    """Of this end of a connection, since it was made (counted by the kernel).

    Attributes
    ----------
    segments_out, segments_in : int
        All segments, those without data among them.
    data_segments : int
        Sent, with data; retransmitted ones count again.
    retransmits : int
        Segments sent once more.
    mss : int
        Bytes of data a segment holds.
    rtt_s : float
        Round-trip time as TCP sees it, smoothed.
    cwnd : int
        Segments that may be under way.
    """

    segments_out: int
    segments_in: int
    data_segments: int
    retransmits: int
    mss: int
    rtt_s: float
    cwnd: int

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


def tcp_info(line: socket.socket) -> TcpInfo:
    """Ask the kernel.

    Raises
    ------
    LabkitError
        Where there is no TCP_INFO, or on a kernel before 4.19 whose answer is shorter.
    """
    if sys.platform != "linux":
        raise LabkitError("TCP segments are counted on Linux only, where TCP_INFO tells them.")
    told = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO.size)
    if len(told) < _INFO.size:
        raise LabkitError("This kernel's TCP_INFO does not count segments: Linux 4.19 and later do.")
    words = _INFO.unpack(told)
    at = words[_SEGMENTS:]
    return TcpInfo(
        segments_out=at[0],
        segments_in=at[1],
        data_segments=at[5],
        retransmits=words[_WORDS + 23],
        mss=words[_WORDS + 2],
        rtt_s=words[_WORDS + 15] * 1e-6,
        cwnd=words[_WORDS + 18],
    )
