"""Shapes have the nodes, links, rates and ways their definitions say."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

import labkit
from labkit.hardware import link
from labkit.network.fabric.routing import routes
from labkit.network.fabric.systems import systems


def count(made, kind: str) -> int:
    return sum(facts["kind"] == kind for _, facts in made.graph.nodes(data=True))


def all_routes(made, policy: str | None = None, seed: int = 0) -> dict[tuple[str, str], list[str]]:
    """Nodes on the way between every two GPUs."""
    topology = made.topology
    names, numbers = list(topology.graph.nodes), np.array([topology.place[gpu] for gpu in topology.gpus])
    one, other = (grid.ravel() for grid in np.meshgrid(numbers, numbers, indexing="ij"))
    at, crossed = routes(topology, one, other, policy or topology.routing, seed)
    found = {}
    for pair, (source, target) in enumerate(zip(one, other, strict=True)):
        way = [names[source]]
        for number in crossed[at[pair] : at[pair + 1]]:
            assert topology.links.tail[number] == topology.place[way[-1]]
            way.append(names[topology.links.head[number]])
        assert way[-1] == names[target]
        found[names[source], names[target]] = way
    return found


@pytest.mark.parametrize(
    ("name", "shape", "gpus", "switches", "links"),
    [
        ("star", {"nodes": 9}, 9, 1, 18),
        ("ring", {"nodes": 7}, 7, 0, 14),
        ("ring", {"nodes": 2}, 2, 0, 2),
        ("full-mesh", {"nodes": 5}, 5, 0, 20),
        ("torus", {"dims": (4, 3)}, 12, 0, 48),
        ("torus-3d", {}, 64, 0, 384),
        ("torus", {"dims": (2, 2, 2)}, 8, 0, 24),
        ("leaf-spine", {"racks": 3, "hosts": 4, "spines": 2}, 12, 5, 2 * (12 + 6)),
        ("fat-tree", {"k": 4}, 16, 20, 96),
        ("fat-tree", {"k": 6, "oversubscription": 2}, 108, 45, 2 * (108 + 54 + 54)),
        ("dragonfly", {}, 72, 36, 2 * (72 + 9 * 6 + 36)),
        ("pcie-tree", {}, 8, 0, 2 * (8 + 4 + 1)),
        ("rail", {"nodes": 3}, 24, 9, None),
    ],
)
def test_counts(name, shape, gpus, switches, links):
    made = labkit.fabric(name, **shape)
    assert (len(made.topology.gpus), count(made, "gpu"), count(made, "switch")) == (gpus, gpus, switches)
    assert links is None or made.graph.number_of_edges() == links


@pytest.mark.parametrize("name", list(systems()))
@pytest.mark.parametrize("nodes", [1, 2])
def test_servers_reach_every_gpu_over_links_of_the_catalogue(name, nodes):
    made = labkit.fabric(name, nodes=nodes)
    assert len(made.topology.gpus) == nodes * systems()[name]["gpus"]
    assert {link(kind).id for kind in made.topology.links.kinds} == set(made.topology.links.kinds)
    kinds = nx.get_node_attributes(made.graph, "kind")
    for way in all_routes(made).values():
        assert "gpu" not in {kinds[node] for node in way[1:-1]}


def test_rates_are_the_catalogue_s():
    made = labkit.fabric("dgx-h100", nodes=2).graph
    assert made.edges["n0.g0", "n0.nvswitch"]["bandwidth"] == pytest.approx(370e9)  # what NCCL plans with
    assert made.edges["n1.nic3", "rail3"]["bandwidth"] == pytest.approx(47.5e9)  # middle of 46 to 49
    cube = labkit.fabric("dgx-v100").graph
    gpus = [f"n0.g{index}" for index in range(8)]
    sums = [
        sum(cube.edges[gpu, other]["bandwidth"] for other in gpus if cube.has_edge(gpu, other))
        for gpu in gpus
    ]
    assert sums == pytest.approx([6 * 25e9] * 8)  # six NVLinks each


def test_between_servers_a_card_talks_on_its_own_rail():
    ways = all_routes(labkit.fabric("dgx-a100", nodes=2))
    assert ways["n0.g3", "n1.g3"] == ["n0.g3", "n0.pcie3", "n0.nic3", "rail3", "n1.nic3", "n1.pcie3", "n1.g3"]
    assert "spine" in ways["n0.g3", "n1.g4"]
    assert ways["n0.g0", "n0.g7"] == ["n0.g0", "n0.nvswitch", "n0.g7"]


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("torus", {"dims": (5, 4)}),
        ("fat-tree", {"k": 4}),
        ("dragonfly", {}),
        ("pcie-tree", {}),
        ("ring", {"nodes": 9}),
    ],
)
@pytest.mark.parametrize("policy", ["shortest", "ecmp"])
def test_routes_are_shortest_paths(name, shape, policy):
    made = labkit.fabric(name, **shape)
    graph = made.graph
    for (one, other), way in all_routes(made, policy, seed=7).items():
        assert len(way) - 1 == nx.shortest_path_length(graph, one, other)


def test_dimension_order_goes_one_dimension_after_the_other_the_short_way():
    made = labkit.fabric("torus", dims=(4, 5))
    at = nx.get_node_attributes(made.graph, "at")
    for way in all_routes(made, "dimension-ordered").values():
        changed = [int(np.flatnonzero(np.subtract(at[a], at[b]))[0]) for a, b in itertools.pairwise(way)]
        assert changed == sorted(changed)
        assert changed.count(0) <= 2
        assert changed.count(1) <= 2


def test_ecmp_spreads_and_depends_on_the_seed_alone():
    made = labkit.fabric("fat-tree", k=8)
    one, again, other = (all_routes(made, "ecmp", seed) for seed in (1, 1, 2))
    assert one == again != other
    cores = [node for way in one.values() for node in way if node.startswith("core")]
    share = np.unique(cores, return_counts=True)[1] / len(cores)
    assert len(share) == 16
    assert share.max() < 1.3 / 16


def test_dragonfly_needs_three_switch_hops_at_most():
    ways = all_routes(labkit.fabric("dragonfly"))
    assert max(len(way) for way in ways.values()) == 6  # host, two routers, two routers, host


@pytest.mark.parametrize("over", [1, 2, 4])
def test_oversubscription_bounds_traffic_that_crosses_the_tree(over):
    """Every host sends to the other half of the tree: o times as many flows as an edge switch has uplinks."""
    made = labkit.fabric("fat-tree", k=8, oversubscription=over, bandwidth=1e9, latency=0)
    hosts = len(made.topology.gpus)
    half = hosts // 2
    result = made.run([(i, (i + half) % hosts, 1e6, []) for i in range(hosts)], routing="ecmp")
    assert result.seconds >= over * 1e-3 * (1 - 1e-9)
    assert result.hot.kind == "custom"
    assert max(load.busy for load in result.links) <= 1 + 1e-9


@pytest.mark.parametrize("spines", [1, 4])
def test_a_leaf_carries_an_o_th_of_what_its_hosts_can_send(spines):
    """One rack sends all it has to another: with one spine it takes o times as long, with several at least that."""
    made = labkit.fabric(
        "leaf-spine", racks=2, hosts=8, spines=spines, oversubscription=4, bandwidth=1e9, latency=0
    )
    result = made.run([(host, 8 + host, 1e6, []) for host in range(8)])
    assert result.seconds >= 4e-3 * (1 - 1e-9)
    if spines == 1:
        assert result.seconds == pytest.approx(4e-3)
        assert {load.name for load in result.links.hottest(2)} == {"leaf0->spine0", "spine0->leaf1"}
    assert made.metrics().full == pytest.approx(1 / 4)


@pytest.mark.parametrize(
    ("name", "shape", "cables"),
    [
        ("torus", {"dims": (8, 8), "link": "ndr"}, 128),
        ("leaf-spine", {"racks": 8, "hosts": 8}, 64 + 64),
        ("leaf-spine", {"racks": 8, "hosts": 8, "oversubscription": 4}, 64 + 16),
        ("rail", {"nodes": 8}, 64 + 64),
        ("dgx-a100", {}, 0),
    ],
)
def test_cables_of_one_kind_are_counted_by_their_rate(name, shape, cables):
    assert labkit.fabric(name, **shape).topology.links.cables("ndr") == pytest.approx(cables)


@pytest.mark.parametrize(
    ("name", "shape", "bisection", "most", "full"),
    [
        ("star", {"nodes": 10}, 5, 2, 1.0),
        ("ring", {"nodes": 8}, 2, 4, 2 / 8),
        ("full-mesh", {"nodes": 6}, 9, 1, 9 / 15),
        ("torus", {"dims": (4, 4)}, 8, 4, 8 / 32),
        ("torus", {"dims": (4, 4, 4)}, 32, 6, 32 / 192),
        ("fat-tree", {"k": 4}, 8, 6, 1.0),
        ("fat-tree", {"k": 4, "oversubscription": 4}, 8, 6, 1 / 4),
    ],
)
def test_hops_and_bisection(name, shape, bisection, most, full):
    found = labkit.fabric(name, bandwidth=1e9, latency=0, **shape).metrics()
    assert found.bisection == pytest.approx(bisection * 1e9)
    assert (found.most_hops, found.full) == (most, pytest.approx(full))
    assert 1 <= found.mean_hops <= most


def test_bisection_of_servers_is_that_of_their_network_cards():
    found = labkit.fabric("dgx-h100", nodes=2).metrics()
    assert found.bisection == pytest.approx(8 * 47.5e9)
    assert "modelled" in repr(found)


def test_a_graph_of_your_own_can_be_changed():
    made = labkit.fabric("star", nodes=4)
    made.graph.remove_node("switch")
    assert made.graph.number_of_nodes() == 5


def test_yaml(tmp_path):
    text = """
name: two pairs
nodes:
  gpu: [a0, a1, b0, b1]
  switch: [left, right]
links:
  - {between: [a0, left], link: nvlink3, count: 12}
  - {between: [a1, left], link: nvlink3, count: 12}
  - {between: [b0, right], link: nvlink3, count: 12}
  - {between: [b1, right], link: nvlink3, count: 12}
  - {between: [left, right], bandwidth: 25Gbit/s, latency: 5us}
servers: [[a0, a1], [b0, b1]]
"""
    path = tmp_path / "pairs.yaml"
    path.write_text(text)
    for made in (labkit.fabric(str(path)), labkit.fabric(path), labkit.fabric(text)):
        assert made.name == "two pairs"
        assert made.topology.servers() == (("a0", "a1"), ("b0", "b1"))
        assert made.graph.edges["left", "right"]["bandwidth"] == 25e9 / 8
        assert made.all_reduce("1MB", "hierarchical").hot.name in ("left->right", "right->left")
