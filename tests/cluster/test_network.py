"""Networks that are up: reached, held to their bandwidth, changed, counted."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

import pytest

import labkit
from labkit.errors import LabkitError
from labkit.network.cluster import build, live, shaping
from labkit.network.cluster.machine import Cluster
from labkit.network.cluster.plan import Shape
from labkit.telemetry.sources import default_sources
from labkit.telemetry.sources.cluster import ClusterSource

Make = Callable[..., Cluster]
Transfer = Callable[..., float]
MB = 1_000_000


def fastest(transfer: Transfer, *arguments: object) -> float:
    """Of three times: a busy machine makes a transfer slower, and nothing makes it faster than its link."""
    return min(transfer(*arguments) for _ in range(3))


@pytest.mark.parametrize(("topology", "way"), [("ring", ["n0-n1", "n1-n2"]), ("torus", ["n0-n2"])])
def test_packets_go_the_planned_way_and_no_other(
    make: Make, transfer: Transfer, topology: str, way: list[str]
) -> None:
    cluster = make(5 if topology == "ring" else 4, topology)
    before = cluster.bytes()
    transfer(cluster, "n0", "n2", MB)
    moved = {name: (after - before[name]).forth for name, after in cluster.bytes().items()}
    assert cluster.link("n0", "n2").wires == tuple(way)
    assert [name for name, count in moved.items() if count > MB] == way
    assert all(count < 0.05 * MB for name, count in moved.items() if name not in way)


@pytest.mark.parametrize("topology", ["switch", "tree"])
def test_through_switches_every_node_hears_every_other(make: Make, topology: str) -> None:
    cluster = make(4, topology)
    ask = "import socket, sys; s = socket.socket(); s.settimeout(3); print(s.connect_ex((sys.argv[1], 9)))"
    for node in cluster.nodes:
        other = cluster.nodes[cluster.nodes.index(node) - 1]
        # nobody listens on port 9: a refusal has made the way there and back
        assert cluster.call(node, [sys.executable, "-c", ask, other]).stdout == "111\n"


def test_a_link_keeps_its_bandwidth_also_when_it_changes(make: Make, transfer: Transfer) -> None:
    cluster = make(2, bandwidth="200Mbit/s")
    assert 0.9 < 25 * fastest(transfer, cluster, "n0", "n1", 5 * MB) / 5 < 1.25
    cluster.link("n0", "n1").set(bandwidth="40Mbit/s")
    assert 0.9 < 5 * fastest(transfer, cluster, "n1", "n0", 2 * MB) / 2 < 1.25
    assert repr(cluster.link("n0")) == "Link(n0-s0: 40 Mbit/s)"
    cluster.link("n0").set(bandwidth=None)
    cluster.link("n1").set(bandwidth=None)
    assert fastest(transfer, cluster, "n0", "n1", 5 * MB) < 5 / 25
    cluster.link("n0").set(bandwidth="40Mbit/s")
    assert 0.9 < 5 * fastest(transfer, cluster, "n0", "n1", 2 * MB) / 2 < 1.25
    shown = cluster._repr_html_()
    assert all(word in shown for word in ("n0-s0", "40 Mbit/s", "10.71.0.2", "MiB"))


def test_the_uplink_is_what_an_oversubscribed_tree_lacks(make: Make, transfer: Transfer) -> None:
    cluster = make(4, "tree", "400Mbit/s", leaf_size=2, oversubscription=8)
    near, far = (fastest(transfer, cluster, "n0", to, 2 * MB) for to in ("n1", "n2"))
    assert far > 2.5 * near  # 100 Mbit/s rather than 400
    assert 0.85 < 12.5 * far / 2 < 1.25


def test_a_cut_link_stalls_a_transfer_and_a_healed_one_lets_it_go_on(make: Make, transfer: Transfer) -> None:
    cluster = make(2, "ring", "50Mbit/s")
    link = cluster.link("n0", "n1")
    took: list[float] = []
    thread = threading.Thread(target=lambda: took.append(transfer(cluster, "n0", "n1", 3 * MB)))
    before = cluster.bytes()["n0-n1"].forth
    thread.start()
    while cluster.bytes()["n0-n1"].forth < before + MB:
        time.sleep(0.002)
    link.cut()
    time.sleep(0.1)
    stalled = cluster.bytes()["n0-n1"].forth
    time.sleep(0.7)
    assert cluster.bytes()["n0-n1"].forth == stalled
    assert repr(link) == "Link(n0-n1: cut)"
    link.heal()
    thread.join(30)
    assert took[0] > 3 / 6.25 + 0.7
    assert repr(link) == "Link(n0-n1: 50 Mbit/s)"


def test_eight_nodes_are_up_in_time(make: Make) -> None:
    began = time.monotonic()
    make(8, "torus", "1Gbit/s")
    assert time.monotonic() - began < 2


def test_nothing_outside_is_reached_and_nothing_outside_is_changed(make: Make) -> None:
    with open("/proc/net/dev") as devices:
        before = {line.split(":")[0] for line in devices}
    with open("/etc/hosts") as hosts:
        names = hosts.read()
    cluster = make(2)
    with open("/proc/net/dev") as devices:
        assert {line.split(":")[0] for line in devices} == before
    with open("/etc/hosts") as hosts:
        assert hosts.read() == names
    reach = "import socket; s = socket.socket(); s.settimeout(2); print(s.connect_ex(('192.0.2.1', 80)))"
    assert cluster.call("n0", [sys.executable, "-c", reach]).stdout == "101\n"  # network is unreachable
    assert cluster.call("n1", ["hostname"]).stdout == "n1\n"


def test_links_and_nodes_are_there_for_those_who_watch(make: Make, transfer: Transfer) -> None:
    cluster = make(2, bandwidth="1Gbit/s")
    (source,) = (one for one in default_sources() if isinstance(one, ClusterSource))
    first = {reading.series.key: reading for reading in source.read()}
    mine = {key: one for key, one in first.items() if f".{cluster.handle.place.name}." in key}
    assert all(one.value is None for one in mine.values())
    assert len(mine) == 2 * 2 + 2
    transfer(cluster, "n0", "n1", 3 * MB)
    second = {reading.series.name: reading for reading in source.read() if reading.series.key in mine}
    sent = second["Link n0 to s0"]
    assert sent.value is not None
    assert second["Link n1 to s0"].value < sent.value / 3  # type: ignore[operator]
    assert (sent.series.unit, sent.series.provenance) == ("MB/s", "measured")
    busy = "while True: pass"
    process = threading.Thread(target=cluster.call, args=("n1", [sys.executable, "-c", busy]))
    process.start()
    time.sleep(0.2)
    source.read()
    time.sleep(0.5)
    shares = {reading.series.name: reading.value for reading in source.read()}
    assert shares["Node n1 CPU"] > 5 > shares["Node n0 CPU"]  # type: ignore[operator]
    cluster.kill("n1")
    process.join(5)
    assert [node.alive for node in live.nodes() if node.cluster == cluster.handle.place.name] == [True, False]
    cluster.close()
    assert not [link for link in live.links() if link.cluster == cluster.handle.place.name]


def test_what_cannot_be_asked_of_a_link(make: Make) -> None:
    cluster = make(2, bandwidth="1Gbit/s")
    link = cluster.link("n0", "n1")
    for wrong in ({"bandwidth": "0Gbit/s"}, {"loss": 2}, {"bandwidth": "5us"}):
        with pytest.raises(LabkitError):
            link.set(**wrong)
    with pytest.raises(LabkitError, match="no node 'n5'"):
        cluster.kill("n5")
    if not cluster.handle.netem:
        with pytest.raises(LabkitError, match="no netem"):
            link.set(latency="1ms")
    cluster.close()
    with pytest.raises(LabkitError, match="taken down"):
        cluster.link("n0", "n1")
    assert repr(cluster) == "Cluster(2 nodes, one switch, down, measured)"


def test_without_netem_the_cluster_says_that_latency_is_not_shaped(
    make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = make(2, latency="1ms")
    said = capsys.readouterr().out
    assert bool(cluster.handle.netem) == ("latency is not shaped" not in said)
    assert bool(cluster.note) == (not cluster.handle.netem)


@pytest.mark.parametrize(
    "bad", [{"nodes": 0}, {"nodes": 2, "bandwidth": 0}, {"nodes": 2, "latency": -1}, {"nodes": 2, "loss": 1}]
)
def test_what_makes_no_cluster_is_a_sentence(bad: dict) -> None:
    with pytest.raises(LabkitError):
        labkit.cluster(**bad)


def test_tc_understands_what_it_is_told_of_latency_and_loss(make: Make) -> None:
    cluster = make(2, "ring")
    words = shaping.command("eth0", Shape(125e6, 1e-3, 0.01), netem=True).split()
    done = cluster.call("n0", ["tc", *words], env={**os.environ, "PATH": build.search_path()})
    if cluster.handle.netem:
        assert done.returncode == 0
        assert _there_and_back(cluster) > 1e-3
    else:  # the words are right, and the kernel is what lacks it
        assert "qdisc kind is unknown" in done.stderr


def _there_and_back(cluster: Cluster) -> float:
    ask = "from socket import *; from time import *; t = time(); socket().connect_ex(('n1', 9)); print(time() - t)"
    return float(cluster.call("n0", [sys.executable, "-c", ask]).stdout)
