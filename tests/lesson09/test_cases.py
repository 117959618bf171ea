"""What lesson 09 calls right is what the simulator says, and every learner's table is fit to be solved."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import labkit
from labkit.course.lessons import l09_cases as cases
from labkit.course.lessons import l09_simulated as simulated
from labkit.course.lessons import l09_why as why
from labkit.course.lessons import l09_why_loads as loads
from labkit.network.fabric.routing import routes

LEARNERS = range(40)


def table(make, learner: int):
    return make(np.random.default_rng(learner))


@pytest.mark.parametrize("dims", [(4, 5), (2, 3, 4), (6,), (1, 4)])
def test_the_way_is_the_simulator_s(dims):
    topology = labkit.fabric("torus", dims=dims).topology
    places = list(itertools.product(*map(range, dims)))
    for one, other in itertools.product(range(len(places)), repeat=2):
        found = routes(topology, np.array([one]), np.array([other]), "dimension-ordered")[1]
        way = [one, *(int(topology.links.head[link]) for link in found)]
        assert [places[number] for number in way] == cases.way(dims, places[one], places[other])


@pytest.mark.parametrize("learner", LEARNERS)
def test_short_cuts_name_other_links(learner):
    made = table(cases.hot_link_table, learner)
    names = (cases.hottest, cases.most_bytes, cases.most_flows, cases.slowest, cases.both_ways)
    assert len({name(made) for name in names}) == len(names)
    assert sum(rate < 25e9 for rate in made["links"].values()) == 2


def test_a_link_s_bytes_are_what_the_simulator_counts():
    """A table drawn on four racks of three, played on such a network: the same bytes over every link to a host."""
    made = table(cases.hot_link_table, 1)
    racks = labkit.fabric("leaf-spine", racks=4, hosts=3, spines=2)
    ends = [(int(path[0].split("->")[0][1:]), int(path[-1].split("->")[1][1:])) for _, path in made["flows"]]
    sent = [(one, other, size, []) for (one, other), (size, _) in zip(ends, made["flows"], strict=True)]
    played = racks.run(sent).links
    counted = cases.carried(made)
    for host in range(12):
        rack = host // 3
        assert played[f"g{host}->leaf{rack}"].bytes == counted[f"h{host}->leaf{rack}"]
        assert played[f"leaf{rack}->g{host}"].bytes == counted[f"leaf{rack}->h{host}"]


@pytest.mark.parametrize("learner", range(8))
def test_as_many_hosts_as_allowed_make_it_and_one_more_does_not(learner):
    made = table(cases.leaf_table, learner)
    hosts, ratio = cases.largest(made)
    assert ratio == pytest.approx(hosts * made["host_Gbps"] / (made["uplinks"] * made["uplink_Gbps"]))
    for count, makes_it in ((hosts, True), (hosts + 1, False)):
        over = count * made["host_Gbps"] / (made["uplinks"] * made["uplink_Gbps"])
        rate = f"{made['host_Gbps']}Gbit/s"
        racks = labkit.fabric(
            "leaf-spine", racks=2, hosts=count, oversubscription=over, bandwidth=rate, latency=0
        )
        sends = [(host, count + host, made["gigabytes"] * 1e9, []) for host in range(count)]
        assert (racks.run(sends).seconds <= made["seconds"] * (1 + 1e-9)) == makes_it


@pytest.mark.parametrize("learner", LEARNERS)
def test_groups_can_be_placed_but_not_by_just_going_on(learner):
    made = table(cases.place_table, learner)
    ranks = sum(map(len, made["groups"]))
    assert sorted(itertools.chain.from_iterable(made["groups"])) == list(range(ranks))
    assert cases.fits(made, cases.packed(made))
    assert not cases.fits(made, cases.one_after_another(made))


@pytest.mark.parametrize("learner", range(6))
def test_the_simulator_counts_the_same_bytes_over_uplinks(learner):
    made = table(cases.place_table, learner)
    assert loads.hottest(made, cases.packed(made))[1] == pytest.approx(cases.gate(made["groups"]))
    bad = cases.one_after_another(made)
    most = max(
        sum(cases.sent(made["groups"][n]) for n in found) for found in cases.uplinks(made, bad).values()
    )
    name, size = loads.hottest(made, bad)
    assert size == pytest.approx(most)
    assert "spine" in name


def test_hops_round_the_end_count_as_one():
    assert why.distance((8, 8), (0, 0), (7, 1)) == 2


def test_no_algorithm_is_the_best_for_all_jobs():
    best = set()
    for server, nodes, size in (("dgx-a100", 1, "512KiB"), ("dgx-h100", 8, "64KiB"), ("dgx-h100", 8, "1GiB")):
        known = simulated.times(server, nodes, size)
        best.add(min(known, key=known.get))
    assert {algorithm for algorithm, _ in best} == {"halving-doubling", "in-switch", "hierarchical"}
    assert ("in-switch", 1) not in simulated.times("dgx-a100", 1, "512KiB")  # its switches cannot add


def test_what_the_claim_asks_for():
    """8.59 ms for one flat ring, 1.61 ms hierarchical, 1.22 ms for a ring a rail, on eight DGX A100 (simulated)."""
    assert simulated.speedup() == pytest.approx(5.33, rel=0.01)
    assert simulated.speedup(over="rails") == pytest.approx(0.76, rel=0.01)
