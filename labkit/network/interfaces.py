"""What the devices of this network namespace have sent, as the kernel counts."""

from __future__ import annotations

from pathlib import Path

_DEVICES = Path("/proc/self/net/dev")
_SENT = 8  # the column


def bytes_sent(devices: Path = _DEVICES) -> int:
    """Bytes that all of them have sent so far, headers of TCP, IP and Ethernet included; loopback is left out."""
    lines = [line.partition(":") for line in devices.read_text().splitlines()[2:]]
    return sum(int(numbers.split()[_SENT]) for name, _, numbers in lines if name.strip() != "lo")
