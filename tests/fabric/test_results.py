"""Results show themselves, add up, and never pass for measurements."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest

import labkit
from labkit.network.fabric.protocols import named


@pytest.fixture(scope="module")
def made():
    return labkit.fabric("dgx-h100", nodes=2)


@pytest.fixture(scope="module")
def result(made):
    return made.all_reduce("64MiB", algorithm="ring")


def test_text_is_one_deterministic_line(made, result):
    assert repr(result) == repr(made.all_reduce("64MiB", algorithm="ring"))
    assert repr(result) == (
        "CollectiveResult(all_reduce ring, 64 MiB on 16 ranks of 2 x dgx-h100, rail: 2.708 ms, 24.78 GB/s algorithm "
        "and 46.46 GB/s bus bandwidth, hot link n0.nic7->rail7, simulated (modelled))"
    )
    assert "simulated (modelled)" in result._repr_html_()
    assert repr(made) == "Fabric(2 x dgx-h100, rail: 16 GPUs, 180 links)"


def test_it_is_frozen_and_comparable(made, result):
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.seconds = 0
    assert result == made.all_reduce("64MiB")
    assert result != made.all_reduce("65MiB")


def test_to_dict_is_json_and_labelled(result):
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["label"] == "simulated (modelled)"
    assert plain["hot"] == result.hot.name
    assert len(plain["links"]) == 180


def test_bandwidths_are_those_of_nccl_tests(result):
    assert result.algorithm_bandwidth == pytest.approx(64 * 2**20 / result.seconds)
    assert result.bus_bandwidth == pytest.approx(result.algorithm_bandwidth * 2 * 15 / 16)


def test_loads_add_up_to_what_was_sent(result):
    """Each of the ring's 16 edges carries 30/16 of the size, in a server over two links, between them over eight."""
    assert result.links.bytes.sum() == pytest.approx(64 * 2**20 * 30 / 16 * (14 * 2 + 2 * 8))
    assert result.links["n0.g0->n0.nvswitch"].bytes == pytest.approx(64 * 2**20 * 30 / 16)
    assert all(0 <= load.busy <= 1 for load in result.links)
    assert result.links.hottest(1)[0] == result.hot
    assert [load.name for load in result.links[:2]] == list(result.links.names[:2])


def test_a_timeline_has_every_message_and_its_links(made):
    result = made.all_reduce("1MiB", timeline=True)
    timeline = result.timeline
    assert len(timeline) == result.messages == 2 * 15 * 16
    assert (timeline.finish_s > timeline.start_s).all()
    assert timeline.finish_s.max() == pytest.approx(result.seconds)
    moved = np.zeros(len(result.links))
    for size, links in zip(timeline.bytes, timeline.links, strict=True):
        moved[list(links)] += size
    assert moved == pytest.approx(result.links.bytes)
    assert made.all_reduce("1MiB").timeline is None


def test_placement_matters(made):
    """Round-robin sends every step over the network, and the ring of servers only two of sixteen."""
    linear, spread = (made.all_reduce("64MiB", placement=word) for word in ("linear", "round-robin"))
    network = [sum(load.bytes for load in r.links if "nic" in load.name) for r in (linear, spread)]
    assert network[1] == pytest.approx(8 * network[0])
    named_order = made.all_reduce("64MiB", placement=list(made.topology.gpus))
    assert named_order == linear


def test_groups_work_at_the_same_time_and_share_links(made):
    pairs = [[rank, rank + 8] for rank in range(8)]
    together = made.all_reduce("64MiB", groups=pairs)
    alone = made.all_reduce("64MiB", groups=pairs[:1])
    assert together.seconds == pytest.approx(alone.seconds)  # every pair has a rail of its own
    crossing = made.all_reduce("64MiB", placement="round-robin", groups=[[0, 3], [2, 1]])
    assert crossing.seconds > alone.seconds


@pytest.mark.parametrize("protocol", ["ll", "ll128", "simple"])
def test_nccl_s_protocols_cost_latency_and_bytes(made, protocol):
    plain, framed = made.all_reduce("64MiB"), made.all_reduce("64MiB", protocol=protocol)
    assert framed.seconds > plain.seconds
    assert framed.links.bytes.sum() * named(protocol).efficiency == pytest.approx(plain.links.bytes.sum())


def test_small_messages_take_ll_and_large_ones_simple(made):
    def best(size: str) -> str:
        return min(("ll", "ll128", "simple"), key=lambda each: made.all_reduce(size, protocol=each).seconds)

    assert best("1KiB") == "ll"
    assert best("4GiB") == "simple"


def test_eager_is_for_small_messages_and_rendezvous_for_large(made):
    times = {
        (size, word): made.all_reduce(size, protocol=word).seconds
        for size in ("16KiB", "64MiB")
        for word in ("eager", "rendezvous", "ucx")
    }
    assert times["16KiB", "ucx"] == times["16KiB", "eager"] < times["16KiB", "rendezvous"]
    assert times["64MiB", "ucx"] == times["64MiB", "rendezvous"] < times["64MiB", "eager"]


def test_staging_through_host_memory_costs_more_than_gpudirect(made):
    direct, staged = (made.all_reduce("64MiB", protocol=word).seconds for word in ("gpudirect", "staged"))
    assert made.all_reduce("64MiB").seconds < direct < staged


def test_a_simulation_loads_neither_torch_nor_plotly():
    code = "import labkit, sys; labkit.fabric('star').all_reduce('1MB'); print({'torch', 'plotly'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
