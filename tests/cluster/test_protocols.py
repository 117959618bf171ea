"""Protocols on the links of a virtual cluster: headers on devices, queues that overflow, copies between nodes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pytest

from labkit.errors import LabkitError
from labkit.network import protocols
from labkit.network.cluster.emulated import EmulatedCluster
from labkit.network.cluster.machine import Cluster
from labkit.network.protocols.headers import derived

Make = Callable[..., Cluster]


def test_devices_count_the_headers_that_were_derived(make: Make) -> None:
    cluster = make(2, bandwidth="1Gbit/s")
    found = protocols.header_share([1, 1448, 1449, "64KiB"], cluster=cluster)
    for row in found.rows:
        expected = derived(row.size)
        assert row.segments >= expected.segments
        # acknowledgements that travel alone, and segments that a busy machine has TCP send again, come on top
        assert expected.interface <= row.interface < 1.3 * expected.interface
        assert row.back >= 67
    assert found.label == "counted: the device of n0, sending to n1"
    told = cluster.call("n0", ["ip", "-d", "link", "show", "eth0"]).stdout
    assert "gso_max_segs 65535" in told  # as it was
    with pytest.raises(LabkitError, match="Two nodes are needed"):
        protocols.header_share([1], cluster=cluster, nodes=("n0", "n0"))


def test_copies_between_nodes_know_no_shared_memory(make: Make) -> None:
    found = protocols.host_copies("64KiB", rounds=3, cluster=make(2, bandwidth="1Gbit/s"))
    assert set(found.refused) >= {"shared memory", "in place"}
    assert found.of("send").segments >= 46  # of 1448 bytes each
    assert found.of("sendfile").to_kernel == 0


def test_eager_and_rendezvous_between_nodes(make: Make) -> None:
    cluster = make(2, bandwidth="1Gbit/s")
    found = protocols.eager_rendezvous(["1KiB", "256KiB"], rounds=3, cluster=cluster, nodes=("n1", "n0"))
    assert found.where.startswith("two processes, TCP from n1 to n0 of a virtual cluster")
    large = found.of("eager", 1 << 18)[0]
    assert large.seconds > 0.5 * (1 << 18) / 125e6  # a first burst of 128 KiB passes at once


def test_many_senders_overflow_the_queue_and_one_does_not(make: Make) -> None:
    cluster = make(9, bandwidth="100Mbit/s")
    found = protocols.incast((1, 8), "64KiB", queue="32KiB", cluster=cluster)
    one, many = found.rows
    assert len(one.completions) == 1
    assert len(many.completions) == 8
    assert list(many.completions) == sorted(many.completions)
    assert many.drops > 0
    assert many.retransmits > 0
    assert many.drops >= one.drops
    assert many.goodput < 1.2 * found.bandwidth
    assert many.seconds > 8 * (1 << 16) / 12.5e6 * 0.9
    assert found.label.startswith("measured and counted: 100 Mbit/s to the receiver, queue 32 KiB, TCP cubic")
    assert {wire.shape.queue for wire in cluster.handle.plan.wires} == {None}  # as it was
    assert found.of(8) is many
    assert str(many.drops) in found._repr_html_()
    with pytest.raises(LabkitError, match="need 10 nodes"):
        protocols.incast((9,), cluster=cluster)


def test_where_incast_cannot_be_measured(make: Make) -> None:
    with pytest.raises(LabkitError, match="measured at a switch"):
        protocols.incast((1,), cluster=make(3, "ring", "1Gbit/s"))
    with pytest.raises(LabkitError, match="no bandwidth limit"):
        protocols.incast((1,), cluster=make(2))


def test_on_an_emulated_cluster_incast_is_modelled_and_tcp_refused() -> None:
    emulated = EmulatedCluster(("n0", "n1", "n2"), 12.5e6, 0.0, "No namespaces here.")
    found = protocols.incast((1, 2), "64KiB", cluster=emulated)
    assert found.modelled
    assert "No namespaces here." in found.label
    with pytest.raises(LabkitError, match="leave cluster out"):
        protocols.header_share([1], cluster=emulated)


def _datagrams(cluster: Cluster, count: int) -> None:
    """From n0 to n1, one right after the other, of 1400 bytes each."""
    send = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
        f"[s.sendto(bytes(1400), ('n1', 9)) for _ in range({count})]"
    )
    assert cluster.call("n0", [sys.executable, "-c", send]).returncode == 0


def test_a_links_queue_is_set_and_counted(make: Make) -> None:
    cluster = make(2, bandwidth="10Mbit/s")
    link = cluster.link("n0").set(queue="8KiB")
    assert "queue 8 KiB" in repr(link)
    before = link.queues()["n0-s0"]
    assert before.drops == before.forth.backlog == 0
    _datagrams(cluster, 3)
    limit = time.monotonic() + 10
    while (after := link.queues()["n0-s0"]).forth.backlog and time.monotonic() < limit:
        time.sleep(0.01)
    assert after.forth.packets - before.forth.packets >= 3
    assert after.forth.bytes - before.forth.bytes >= 3 * 1442
    # 40 packets of 1.4 kB at once do not fit into 8 KiB
    _datagrams(cluster, 40)
    assert link.queues()["n0-s0"].forth.drops > 0
    with pytest.raises(LabkitError, match="is of no use: give 3000 bytes"):
        link.set(queue=10)
    assert "queue" not in repr(cluster.link("n0").set(queue=None))
