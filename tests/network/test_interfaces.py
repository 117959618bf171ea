"""Bytes of the network's devices, as the kernel's file has them."""

from __future__ import annotations

from pathlib import Path

from labkit.network.interfaces import bytes_sent

# without the kernel's words above the numbers
FILE = """\
 two lines
 of titles
    lo: 900 9 0 0 0 0 0 0 900 9 0 0 0 0 0 0
  eth0: 111 1 0 0 0 0 0 0 5000 3 0 0 0 0 0 0
eth1:222 2 0 0 0 0 0 0 70 1 0 0 0 0 0 0
"""


def test_all_devices_but_loopback_are_added(tmp_path: Path) -> None:
    devices = tmp_path / "dev"
    devices.write_text(FILE)
    assert bytes_sent(devices) == 5070
