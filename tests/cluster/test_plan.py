"""Topologies on paper: who is wired to whom, and which way packets go."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import LabkitError
from labkit.network.cluster import shaping, topologies
from labkit.network.cluster.plan import Plan, Shape

SHAPE = Shape(125e6)


@pytest.mark.parametrize(
    ("nodes", "topology", "wires", "switches"),
    [
        (8, "switch", 8, 1),
        (6, "tree", 8, 3),
        (5, "ring", 5, 0),
        (2, "ring", 1, 0),
        (1, "ring", 1, 1),
        (12, "torus", 24, 0),
    ],
)
def test_the_number_of_cables_and_switches(nodes: int, topology: str, wires: int, switches: int) -> None:
    plan = topologies.plan(nodes, topology, SHAPE)
    assert len(plan.nodes) == nodes
    assert (len(plan.wires), len(plan.switches)) == (wires, switches)
    ends = [(end.where, end.device) for wire in plan.wires for end in wire.ends]
    assert len(set(ends)) == len(ends)
    assert all(len(device) <= 15 for _, device in ends)  # what Linux allows


@given(nodes=st.integers(1, 30), topology=st.sampled_from(topologies.TOPOLOGIES))
def test_every_node_reaches_every_other_one(nodes: int, topology: str) -> None:
    plan = topologies.plan(nodes, topology, SHAPE)
    assert len({plan.address(node) for node in plan.nodes}) == nodes
    for node in plan.nodes[1:]:
        way = plan.between(plan.nodes[0], node)
        assert len(set(way)) == len(way) > 0


def _around(first: int, second: int, size: int) -> int:
    return min((first - second) % size, (second - first) % size)


@given(sides=st.tuples(st.integers(1, 5), st.integers(1, 5)))
def test_in_a_torus_the_way_is_the_shortest_and_along_one_dimension_first(sides: tuple[int, int]) -> None:
    plan = topologies.plan(math.prod(sides), "torus", SHAPE, dimensions=sides)
    if math.prod(sides) == 1:
        return
    for number, node in enumerate(plan.nodes[1:], start=1):
        row, column = divmod(number, sides[1])
        way = plan.between("n0", node)
        assert len(way) == _around(row, 0, sides[0]) + _around(column, 0, sides[1])
        if row and column:
            (second,) = {int(end[1:]) for end in way[0].split("-")} - {0}
            assert second % sides[1] == 0  # the first step changes the row alone


def test_the_uplink_of_an_oversubscribed_tree() -> None:
    plan = topologies.plan(8, "tree", SHAPE, leaf_size=4, oversubscription=4)
    rates = {wire.name: wire.shape.bandwidth for wire in plan.wires}
    assert rates["n0-leaf0"] == 125e6
    assert rates["leaf0-spine"] == 125e6 * 4 / 4
    assert plan.between("n0", "n7") == ("n0-leaf0", "leaf0-spine", "leaf1-spine", "n7-leaf1")
    assert plan.between("n0", "n3") == ("n0-leaf0", "n3-leaf0")


def test_a_plan_travels_as_json() -> None:
    plan = topologies.plan(6, "torus", Shape(1e6, 1e-3, 0.01))
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((0, "switch"), {}, "from 1 to 64"),
        ((65, "switch"), {}, "from 1 to 64"),
        ((True, "switch"), {}, "from 1 to 64"),
        ((4, "hypercube"), {}, "'switch', 'tree', 'ring', 'torus'"),
        ((4, "tree"), {"leaf_size": 0}, "at least 1 node"),
        ((4, "tree"), {"oversubscription": 0.5}, "1 is none"),
        ((6, "torus"), {"dimensions": (4, 2)}, "does not have 6 nodes"),
    ],
)
def test_what_makes_no_network(arguments: tuple, options: dict, words: str) -> None:
    with pytest.raises(LabkitError, match=words):
        topologies.plan(*arguments, SHAPE, **options)


def test_names_that_are_not_there() -> None:
    plan = topologies.plan(3, "switch", SHAPE)
    with pytest.raises(LabkitError, match=r"no 'n7' in this cluster: nodes are n0, n1, n2, switches s0"):
        plan.between("n7", "n1")
    with pytest.raises(LabkitError, match="no link to itself"):
        plan.between("n1", "n1")


def test_what_tc_is_told() -> None:
    gigabit = Shape(125e6)
    assert shaping.command("eth0", gigabit, netem=False).endswith(
        "tbf rate 1000000000bit burst 131072 limit 2500000"
    )
    assert shaping.command("eth0", Shape(125e6, cut=True), netem=True).endswith("root blackhole")
    told = shaping.command("eth0", Shape(125e6, 5e-3, 0.01), netem=True)
    assert told.endswith("netem limit 2083 delay 5000us loss 1% rate 1000000000bit")
    short = Shape(12.5e6, queue=32768)
    assert shaping.command("eth0", short, netem=False).endswith("burst 3125 limit 32768")
    assert str(short) == "100 Mbit/s, queue 32 KiB"
    assert "bfifo limit 32768" in shaping.command("eth0", Shape(queue=32768), netem=False)
    assert "limit 22 delay" in shaping.command("eth0", Shape(12.5e6, 1e-6, queue=32768), netem=True)
    assert "pfifo" in shaping.command("eth0", Shape(), netem=False)


def test_without_netem_it_says_what_is_not_shaped() -> None:
    late, lossy = Shape(1e6, 1e-3), Shape(1e6, 1e-3, 0.1)
    assert shaping.note([late], netem=True) == ""
    assert shaping.note([Shape(1e6)], netem=False) == ""
    assert "so latency is not shaped" in shaping.note([late], netem=False)
    assert "so latency and loss are not shaped" in shaping.note([lossy], netem=False)
    plan = topologies.plan(2, "ring", lossy)
    assert shaping.possible(plan, netem=False).wires[0].shape == Shape(1e6)
    assert shaping.possible(plan, netem=True) is plan


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (Shape(0.0), "cannot be kept"),
        (Shape(1e12), "cannot be kept"),
        (Shape(1e6, loss=1.5), "no share"),
        (Shape(1e6, 60), "too long"),
    ],
)
def test_shapes_that_no_wire_has(shape: Shape, words: str) -> None:
    with pytest.raises(LabkitError, match=words):
        shaping.check(shape)


def test_a_share_of_packets() -> None:
    assert shaping.share("1%") == shaping.share(0.01) == 0.01
    for wrong in ("some", None, "%"):
        with pytest.raises(LabkitError, match="no share of packets"):
            shaping.share(wrong)  # type: ignore[arg-type]
