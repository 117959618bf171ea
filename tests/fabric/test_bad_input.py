"""What cannot be simulated gets one sentence that says what to do, and does not take the memory first."""

from __future__ import annotations

import networkx as nx
import pytest

import labkit
from labkit import LabkitError
from labkit.network.fabric import Topology
from labkit.network.fabric.training_step import Transformer, training_step

PAIR = """
nodes: {gpu: [a, b], switch: [s]}
links:
  - {between: [a, s], link: ndr}
  - {between: [b, s], BANDWIDTH}
"""
LONE = "nodes: {gpu: [a, b, c]}\nlinks: [{between: [a, b], link: ndr}]\n"
THROUGH = "nodes: {gpu: [a, b, c]}\nlinks: [{between: [a, b], link: ndr}, {between: [b, c], link: ndr}]\n"
OTHERS = "topology: [Ring]\nnpus_count: [8]\nbandwidth: [50.0]\nlatency: [500.0]\n"


def star(**options):
    return labkit.fabric("star", **{"nodes": 4, **options})


CASES = {
    "disconnected": (lambda: labkit.fabric(LONE), "in 2 pieces"),
    "only through a GPU": (
        lambda: labkit.fabric(THROUGH).all_reduce("1MB"),
        "without passing through another GPU",
    ),
    "zero bandwidth": (lambda: star(bandwidth=0), "has no bandwidth"),
    "zero bandwidth of one": (lambda: star(bandwidth=[1e9, 1e9, 0, 1e9]), "g2->switch"),
    "zero bandwidth in YAML": (
        lambda: labkit.fabric(PAIR.replace("BANDWIDTH", "bandwidth: 0, latency: 0")),
        "has no bandwidth",
    ),
    "negative latency": (lambda: star(latency=-1e-6), "latency of g0->switch"),
    "no unit": (lambda: star(bandwidth="100"), "has no unit"),
    "unknown link": (lambda: star(link="warp"), "no link 'warp'"),
    "unknown fabric": (lambda: labkit.fabric("dgx-h10"), "Did you mean 'dgx-h100'"),
    "unknown shape option": (lambda: star(k=4), "cannot be built"),
    "unknown GPU": (
        lambda: training_step(star(), Transformer(1e9, 4, 1024), 4, gpu="H999"),
        "no GPU 'H999'",
    ),
    "no GPU named": (lambda: training_step(star(), Transformer(1e9, 4, 1024), 4), "does not say which GPU"),
    "a cycle": (
        lambda: star().run([(0, 1, 1e6, [2]), (1, 2, 1e6, [0]), (2, 3, 1e6, [1])]),
        "waits for itself",
    ),
    "waits for nobody": (lambda: star().run([(0, 1, 1e6, [7])]), "waits for message 7"),
    "no such rank": (lambda: star().run([(0, 9, 1e6, [])]), "9 is no rank"),
    "a million GPUs": (lambda: star(nodes=10**6), "would take about"),
    "a million GPUs in a tree": (lambda: labkit.fabric("fat-tree", k=160), "would take about"),
    "a million GPUs in racks": (
        lambda: labkit.fabric("leaf-spine", racks=31_250, hosts=32),
        "would take about",
    ),
    "a leaf without uplinks": (lambda: labkit.fabric("leaf-spine", oversubscription=0), "must be above zero"),
    "a million GPUs in servers": (lambda: labkit.fabric("dgx-h100", nodes=125_000), "would take about"),
    "too many messages": (
        lambda: labkit.fabric("star", nodes=8192, bandwidth=[1e9 + i for i in range(8192)]).all_reduce("1GB"),
        "would take about",
    ),
    "a topology of another tool": (lambda: labkit.fabric(OTHERS), "is not a topology of labkit"),
    "JSON of another tool": (
        lambda: labkit.fabric('{"graph": {},\n "nodes": [], "links": []}'),
        "not a topology",
    ),
    "not YAML": (lambda: labkit.fabric("nodes: [\n  gpu: {"), "is not YAML"),
    "no such file": (lambda: labkit.fabric("/nowhere/fabric.yaml"), "cannot be read"),
    "unknown kind of node": (lambda: labkit.fabric("nodes: {tpu: [a]}\nlinks: []\n"), "of kind 'tpu'"),
    "unknown node in a link": (
        lambda: labkit.fabric("nodes: {gpu: [a]}\nlinks: [{between: [a, z], link: ndr}]\n"),
        "speaks of 'z'",
    ),
    "a link without rate": (
        lambda: labkit.fabric("nodes: {gpu: [a, b]}\nlinks: [{between: [a, b]}]\n"),
        "needs a 'link', or a 'bandwidth' and a 'latency'",
    ),
    "no GPU": (lambda: Topology("empty", nx.DiGraph(), ()), "has no GPU"),
    "unknown algorithm": (lambda: star().all_reduce("1MB", "rings"), "no 'rings' algorithm"),
    "unknown protocol": (lambda: star().all_reduce("1MB", protocol="fast"), "is no protocol"),
    "unknown routing": (lambda: star().all_reduce("1MB", routing="magic"), "is no routing"),
    "no dimensions": (
        lambda: star().all_reduce("1MB", routing="dimension-ordered"),
        "needs a ring or a torus",
    ),
    "torus algorithm elsewhere": (lambda: star().all_reduce("1MB", "torus"), "ring or torus"),
    "switches that cannot add": (
        lambda: labkit.fabric("dgx-a100").all_reduce("1MB", "in-switch"),
        "cannot add",
    ),
    "no switch at all": (lambda: labkit.fabric("ring").all_reduce("1MB", "in-switch"), "none can add"),
    "odd k": (lambda: labkit.fabric("fat-tree", k=5), "must be even"),
    "half a node": (lambda: star(nodes=2.5), "not a whole number"),
    "too many ranks": (lambda: star().all_reduce("1MB", ranks=5), "room for 2 to 4"),
    "one GPU twice": (lambda: star().all_reduce("1MB", placement=["g0", "g0"]), "given to two ranks"),
    "unknown GPU in a placement": (lambda: star().all_reduce("1MB", placement=["g0", "g9"]), "is no GPU"),
    "uneven groups": (lambda: star().all_reduce("1MB", groups=[[0, 1], [2]]), "of one size"),
    "no chunks": (lambda: star().all_reduce("1MB", chunks=0), "chunks=0"),
    "a size in nothing": (lambda: star().all_reduce("64"), "has no unit"),
    "an option of another algorithm": (
        lambda: star().all_reduce("1MB", "tree", columns=2),
        "takes no columns",
    ),
    "uneven servers": (
        lambda: labkit.fabric("dgx-h100", nodes=2).all_reduce("1MB", "hierarchical", ranks=11),
        "equally many ranks",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_sentence(case):
    work, says = CASES[case]
    with pytest.raises(LabkitError) as caught:
        work()
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
