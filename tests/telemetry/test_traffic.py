"""Disks, networks and links: rates from counters that only grow."""

from __future__ import annotations

import socket
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from labkit.telemetry.series import Series
from labkit.telemetry.sources import traffic
from labkit.telemetry.sources.links import LinksSource
from labkit.telemetry.sources.rates import Rates
from labkit.telemetry.sources.traffic import TrafficSource

A = Series("a", "A", "MB/s", "measured", "link")


def test_a_rate_needs_two_readings_and_a_counter_that_grows() -> None:
    rates = Rates()
    found = [
        rates.readings({A: count}, now)[0] for count, now in ((7, 1.0), (3_000_007, 3.0), (5, 4.0), (5, 4.0))
    ]
    assert [one.value for one in found] == [None, 1.5, None, None]
    assert [one.reason for one in found] == [
        "a rate needs two readings",
        "",
        "the counter has started anew",
        "a rate needs two readings",
    ]


def test_bytes_through_the_loopback_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic, "APART_S", 0.0)
    source = TrafficSource()
    source.read()
    left, right = _pair()
    with left, right:
        for _ in range(64):
            left.sendall(bytes(65536))
            received = 0
            while received < 65536:
                received += len(right.recv(65536))
    found = {one.series.key: one for one in source.read()}
    assert found["network.local"].value > 0  # type: ignore[operator]
    assert {one.series.unit for one in found.values()} == {"MB/s"}
    assert all(one.series.hidden for one in found.values())


def _pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        left = socket.create_connection(server.getsockname())
        return left, server.accept()[0]


def fake_psutil(disk: Any) -> types.SimpleNamespace:
    one = types.SimpleNamespace(bytes_sent=100, bytes_recv=10)
    every = {"lo": one, "eth0": one, "ib0": one, "veth12": one, "docker0": one}
    return types.SimpleNamespace(disk_io_counters=lambda: disk, net_io_counters=lambda pernic: every)


def test_virtual_interfaces_are_not_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    source = TrafficSource()
    monkeypatch.setattr(source, "_psutil", fake_psutil(types.SimpleNamespace(read_bytes=1, write_bytes=2)))
    assert {series.key: count for series, count in source._network().items()} == {
        "network.local": 100,
        "network.sent": 200,
        "network.received": 20,
    }
    assert list(source._disk().values()) == [1, 2]


def test_without_counters_or_psutil_there_are_no_series(monkeypatch: pytest.MonkeyPatch) -> None:
    source = TrafficSource()
    monkeypatch.setattr(source, "_psutil", fake_psutil(None))
    assert not any(one.series.key.startswith("disk") for one in source.read())
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert TrafficSource().read() == []


def test_ports_of_infiniband_count_words_of_four_bytes(tmp_path: Path) -> None:
    counters = tmp_path / "mlx5_0" / "ports" / "1" / "counters"
    counters.mkdir(parents=True)
    (counters / "port_xmit_data").write_text("1000\n")
    source = LinksSource(str(tmp_path))
    assert {one.series.key: one.reason for one in source.read()} == {
        "link.mlx5_0/1.sent": "a rate needs two readings",
        "link.mlx5_0/1.received": f"the port's counter cannot be read ({_missing(counters)})",
    }
    (counters / "port_xmit_data").write_text("1001000\n")
    sent = next(one for one in source.read() if one.series.key.endswith("sent"))
    assert sent.series.name == "mlx5_0/1 sent"
    assert sent.value is not None
    assert sent.value > 0


def _missing(folder: Path) -> str:
    return f"[Errno 2] No such file or directory: '{folder / 'port_rcv_data'}'"


def test_machines_without_such_cards_have_no_series(tmp_path: Path) -> None:
    assert LinksSource(str(tmp_path / "none")).read() == []


def test_the_counters_are_not_read_more_often_than_a_busy_notebook_can_bear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, asked = TrafficSource(), []
    monkeypatch.setattr(source, "_disk", lambda: asked.append(1) or {})
    first = source.read()
    assert source.read() is first
    assert len(asked) == 1
