"""The message layer, copies and headers between real processes; what is modelled against its formulas."""

from __future__ import annotations

import contextlib
import json
import math
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import LabkitError
from labkit.hardware.catalog import latency, link
from labkit.network import protocols
from labkit.network.benchmark.report import BandwidthReport, Row
from labkit.network.cluster.plan import Shape
from labkit.network.protocols import gpudirect, gpudirect_nccl, incast_work, pair
from labkit.network.protocols.channel import Channel, Counts
from labkit.network.protocols.headers import derived
from labkit.network.protocols.many_to_one import fair_share
from labkit.network.protocols.message_times import EagerRendezvous, ProtocolTime, crossing

linux = pytest.mark.skipif(sys.platform != "linux", reason="TCP_INFO, sendfile and memfd are Linux's")
HEADER = 9


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    """Both ends of a channel, with bounce buffers of 1000 bytes."""
    first, second = socket.socketpair()
    with first, second:
        yield Channel(first, 1000), Channel(second, 1000)


def _receive(channel: Channel, into: bytearray) -> threading.Thread:
    thread = threading.Thread(target=channel.receive, args=(into,))
    thread.start()
    return thread


def test_an_eager_message_is_one_call_and_one_copy_and_no_round_trip(ends: tuple[Channel, Channel]) -> None:
    sender, receiver = ends
    into = bytearray(600)
    sender.send(b"x" * 600)
    assert receiver.receive(into) == 600
    assert into == b"x" * 600
    assert sender.counts == Counts(messages=1, system_calls=1, crossed=600 + HEADER)
    assert receiver.counts == Counts(messages=1, system_calls=1, copied=600, crossed=600 + HEADER)


def test_a_rendezvous_is_a_round_trip_and_no_copy(ends: tuple[Channel, Channel]) -> None:
    sender, receiver = ends
    into = bytearray(5000)  # larger than the bounce buffer, which it does not pass
    thread = _receive(receiver, into)
    sender.send(b"y" * 5000, "rendezvous")
    thread.join()
    assert into == b"y" * 5000
    assert (sender.counts.round_trips, sender.counts.control, receiver.counts.control) == (1, 1, 1)
    assert sender.counts.copied == receiver.counts.copied == 0
    assert sender.counts.crossed == receiver.counts.crossed == 5000 + 2 * HEADER


def test_eager_messages_that_wait_in_the_bounce_buffer_come_in_order(ends: tuple[Channel, Channel]) -> None:
    sender, receiver = ends
    for size in (0, 300, 400, 1000, 1):
        sender.send(bytes([size % 251]) * size)
    into = bytearray(1000)
    for size in (0, 300, 400, 1000, 1):
        assert receiver.receive(into) == size
        assert into[:size] == bytes([size % 251]) * size
    assert receiver.counts.messages == 5


@given(
    sizes=st.lists(st.integers(0, 900), max_size=12), kinds=st.lists(st.booleans(), min_size=12, max_size=12)
)
def test_any_mixture_of_protocols_arrives(sizes: list[int], kinds: list[bool]) -> None:
    first, second = socket.socketpair()
    with first, second:
        sender, receiver = Channel(first, 900), Channel(second, 900)
        found: list[bytes] = []

        def receive() -> None:
            for _ in sizes:
                into = bytearray(900)
                found.append(bytes(into[: receiver.receive(into)]))

        thread = threading.Thread(target=receive)
        thread.start()
        sent = [bytes([number]) * size for number, size in enumerate(sizes)]
        for data, kind in zip(sent, kinds, strict=False):
            sender.send(data, "eager" if kind else "rendezvous")
        thread.join()
        assert found == sent
        assert sender.counts.round_trips == sum(not kind for kind in kinds[: len(sizes)])


def test_both_ends_may_send_first_eagerly_and_not_by_rendezvous(ends: tuple[Channel, Channel]) -> None:
    first, second = ends
    first.send(b"a" * 10)
    second.send(b"b" * 10)
    into = bytearray(10)
    first.receive(into)
    assert into == b"b" * 10
    second.receive(into)

    def send_as_well() -> None:
        with contextlib.suppress(LabkitError):
            second.send(b"b", "rendezvous")

    thread = threading.Thread(target=send_as_well)
    thread.start()
    with pytest.raises(LabkitError, match="each waits for the other to receive"):
        first.send(b"a", "rendezvous")
    thread.join()


def test_what_a_channel_refuses(ends: tuple[Channel, Channel]) -> None:
    sender, receiver = ends
    with pytest.raises(LabkitError, match="does not fit into bounce buffers of 1000 B"):
        sender.send(bytes(1001))
    with pytest.raises(LabkitError, match="'eager' or 'rendezvous'"):
        sender.send(b"", "postal")
    sender.send(b"123")
    with pytest.raises(LabkitError, match="there is room for 2 B"):
        receiver.receive(bytearray(2))
    sender.line.close()
    with pytest.raises(LabkitError, match="other end of this channel has gone"):
        Channel(receiver.line).receive(bytearray(2))


@linux
def test_eager_and_rendezvous_between_two_processes() -> None:
    found = protocols.eager_rendezvous(["8B", "64KiB", "1MiB"], rounds=5)
    assert found.sizes == (8, 1 << 16, 1 << 20)
    for row in found.rows:
        assert row.counts.messages == 1
        assert row.low <= row.seconds <= row.high
        eager = row.protocol == "eager"
        assert row.counts.copied == (row.size if eager else 0)
        assert (row.counts.round_trips, row.counts.control) == ((0, 0) if eager else (1, 2))
        assert row.counts.crossed == 2 * (row.size + HEADER * (1 if eager else 2))
        assert row.counts.system_calls >= (2 if eager else 6)
    assert found.modelled == pytest.approx(2 * found.alpha * found.copy_rate)
    assert found.to_dict()["label"] == "measured and counted: two processes, TCP over loopback"
    assert "modelled: 2 alpha" in found._repr_html_()


@pytest.mark.parametrize(
    ("options", "words"), [({"sizes": [8]}, "two sizes or more"), ({"rounds": 1}, "3 round trips")]
)
def test_what_cannot_be_timed(options: dict, words: str) -> None:
    with pytest.raises(LabkitError, match=words):
        protocols.eager_rendezvous(**options)


def test_where_the_lines_cross() -> None:
    sizes = [2.0**power for power in range(3, 21)]
    eager = [1e-5 + size / 5e9 for size in sizes]
    rendezvous = [3e-5 + size / 1e10 for size in sizes]
    exact = 2e-5 / (1 / 5e9 - 1 / 1e10)
    assert crossing(sizes, eager, rendezvous) == pytest.approx(exact, rel=0.05)
    assert protocols.crossover("10us", 1e10) == pytest.approx(exact)
    assert crossing(sizes, eager, [2 * one for one in eager]) is None
    assert crossing(sizes, [2 * one for one in eager], eager) is None
    disturbed = list(eager)
    disturbed[2] *= 5  # one small message that something else delayed
    assert crossing(sizes, disturbed, rendezvous) == pytest.approx(exact, rel=0.05)


def test_a_crossover_that_is_not_seen_is_said() -> None:
    rows = tuple(
        ProtocolTime(
            size, name, 1e-5 if name == "eager" else 2e-5, 1e-5, 2e-5, Counts(messages=1), Counts(messages=1)
        )
        for size in (8, 64)
        for name in ("eager", "rendezvous")
    )
    assert "measured not seen at these sizes" in repr(EagerRendezvous(rows, 1e-5, 1e9, "x"))


@linux
def test_copies_are_counted_way_by_way() -> None:
    found = protocols.host_copies("256KiB", rounds=4)
    size = 1 << 18
    send, sendfile = found.of("send"), found.of("sendfile")
    assert (send.to_kernel, send.from_kernel, send.in_memory) == (size, size, 0)
    assert (sendfile.to_kernel, sendfile.from_kernel) == (0, size)
    shared, in_place = found.of("shared memory"), found.of("in place")
    assert (shared.copied, shared.in_memory) == (2 * size, 2 * size)
    assert in_place.copied == 0
    assert shared.system_calls == in_place.system_calls == 4  # a word and its answer, at both ends
    assert send.system_calls >= 4
    assert send.segments >= 4  # loopback's packets have 64 KiB at most
    if "zerocopy" not in found.refused:
        zerocopy = found.of("zerocopy")
        assert zerocopy.to_kernel == size  # over loopback the kernel copies, and says so
        assert "copied anyway" in zerocopy.note
        assert zerocopy.system_calls > send.system_calls - 1
    assert "256 KiB" in repr(found)
    assert found.to_dict()["rows"][0]["copied"] == 2 * size
    assert "measured and counted" in found._repr_html_()
    with pytest.raises(LabkitError, match="'fax' was not measured here"):
        found.of("fax")


@linux
def test_a_process_that_fails_is_told_with_its_last_words() -> None:
    with pytest.raises(LabkitError, match="failed: KeyError: 'nothing'"):
        pair.run_pair(pair.between(), "nothing")
    with pytest.raises(LabkitError, match="was not done in time"):
        pair.run_pair(pair.between(), "headers", 0.01, size=1, messages=1)


@linux
def test_a_process_that_ends_before_it_is_asked_is_told_as_one_that_failed() -> None:
    handle = SimpleNamespace(command=lambda node, words: (["false"], []), environment=lambda: None)
    process = pair.start({"task": "x" * (1 << 20)}, cast("Any", SimpleNamespace(handle=handle)), "n0")
    with pytest.raises(LabkitError, match="failed: it said nothing"):
        pair.gather([process], 60.0)


def test_slow_cables_are_waited_for() -> None:
    wires = [
        SimpleNamespace(name=name, shape=Shape(rate)) for name, rate in (("a", 1e6), ("b", 2e6), ("c", 1.0))
    ]
    plan = SimpleNamespace(wires=wires, between=lambda first, second: ("a", "b"))
    place = pair.Between(cast("Any", SimpleNamespace(handle=SimpleNamespace(plan=plan))), ("n0", "n1"))
    assert place.seconds(100_000_000) == 100
    assert place.limit_s(100_000_000) > 160
    assert pair.between().seconds(1 << 40) == 0


@linux
def test_a_congestion_control_that_is_not_there_is_named() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as line,
        pytest.raises(LabkitError, match="congestion control 'pigeon' is not to be had"),
    ):
        incast_work.work(line, side=1, size=1, congestion="pigeon")


def test_headers_agree_with_the_catalogues_goodput() -> None:
    large = derived(1448 * 1000)
    assert large.size / large.wire == pytest.approx(1448 / 1538)
    for name in ("10gbe", "100gbe"):
        one = link(name)
        assert large.size / large.wire * one.raw_GBps == pytest.approx(one.tcp_goodput_mtu1500_GBps, rel=5e-3)
        jumbo = derived(8948 * 100, 9000)
        assert jumbo.size / jumbo.wire * one.raw_GBps == pytest.approx(one.tcp_goodput_mtu9000_GBps, rel=5e-3)
    assert (derived(1).interface, derived(1).wire) == (67, 91)
    assert (derived(1448).segments, derived(1449).segments) == (1, 2)


@given(size=st.integers(1, 1 << 24), mtu=st.integers(576, 9000))
def test_headers_of_any_message(size: int, mtu: int) -> None:
    row = derived(size, mtu)
    assert row.segments == math.ceil(size / (mtu - 52))
    assert row.interface == size + 66 * row.segments
    assert 0 < row.share < row.wire_share < 1


def test_header_share_without_a_cluster_is_derived() -> None:
    found = protocols.header_share(["1KiB", "1B"])
    assert found.label == "derived: TCP over IPv4 and Ethernet, MTU 1500"
    assert [row.size for row in found.rows] == [1, 1024]
    assert "98.5%" in repr(found)
    assert "98.5%" in found._repr_html_()
    for wrong in ({"sizes": []}, {"sizes": ["0B"]}, {"mtu": 100}):
        with pytest.raises(LabkitError):
            protocols.header_share(**wrong)


def test_without_a_cluster_incast_is_a_fair_share_and_says_so() -> None:
    found = fair_share((1, 4), 1000, 1e6, 500, "No namespaces.")
    assert [row.seconds for row in found.rows] == [pytest.approx(1e-3), pytest.approx(4e-3)]
    assert all(row.goodput == pytest.approx(1e6) and row.spread == pytest.approx(1) for row in found.rows)
    assert found.label.startswith("modelled: a fair share of 8 Mbit/s")
    assert found.label.endswith("No namespaces.")
    assert found.modelled
    with pytest.raises(LabkitError, match="one sender or more"):
        protocols.incast((0, 1))


def test_rdma_devices_are_read_from_the_kernels_files(tmp_path: Path) -> None:
    assert not gpudirect.rdma(tmp_path / "none", tmp_path / "none").devices
    port = tmp_path / "devices" / "mlx5_0" / "ports" / "1"
    port.mkdir(parents=True)
    for name, content in (
        ("state", "4: ACTIVE"),
        ("rate", "400 Gb/sec (4X NDR)"),
        ("link_layer", "InfiniBand"),
    ):
        (port / name).write_text(content + "\n")
    (tmp_path / "modules" / "nvidia_peermem").mkdir(parents=True)
    found = gpudirect.rdma(tmp_path / "devices", tmp_path / "modules")
    assert found.devices == (gpudirect.RdmaDevice("mlx5_0", "ACTIVE", "400 Gb/sec", "InfiniBand"),)
    assert found.gpudirect
    assert repr(found) == "Rdma(mlx5_0 (InfiniBand, 400 Gb/sec, ACTIVE); nvidia_peermem)"


def test_a_message_between_gpus_is_modelled_from_the_catalogue() -> None:
    small = {way: protocols.gpu_message(1, way) for way in gpudirect.WAYS}
    for way, name in (("gpudirect", "mpi-gpu-gpudirect"), ("staged", "mpi-gpu-staged"), ("tcp", "tcp")):
        assert small[way].seconds == pytest.approx(sum(latency(name).us) / 2e6, rel=1e-3)
    large = protocols.gpu_message("64MiB", "gpudirect", network="ndr")
    assert large.seconds == pytest.approx(3.3e-6 + 2**26 / 50e9)
    assert [small[way].copies for way in gpudirect.WAYS] == [0, 2, 4]
    assert large.to_dict()["label"] == "modelled"
    with pytest.raises(LabkitError, match="no way between GPUs"):
        protocols.gpu_message(1, "pigeon")


def test_what_two_runs_printed_is_read() -> None:
    row = Row("send_recv", "torch", 1 << 20, 4, "float32", 2, 1e-4, 9e-5, 2e-4, 20, 0, True)
    report = BandwidthReport(2, "nccl", "a test", (row,))
    printed = "a warning\n" + json.dumps(report.to_dict()) + "\n"
    runs = gpudirect_nccl.GpuDirectRuns(gpudirect_nccl.read(printed), report)
    assert runs.gpudirect == report
    assert "1 MiB: 10.49 GB/s against 10.49 GB/s" in repr(runs)
    assert runs.to_dict()["staged"]["backend"] == "nccl"
    assert gpudirect_nccl.LEVELS == {"gpudirect": "SYS", "staged": "LOC"}


def test_gpudirect_is_compared_by_two_runs_of_nccl() -> None:
    words = gpudirect_nccl.command("node0:29400", nodes=2)
    assert {"--nnodes=2", "--nproc-per-node=1", "--rdzv-endpoint=node0:29400", "send_recv"} < set(words)
    if gpudirect.rdma().devices:
        pytest.skip("this machine has an RDMA device")
    with pytest.raises(LabkitError, match="GPUDirect RDMA cannot be measured here"):
        protocols.measure_gpudirect("node0:29400")
