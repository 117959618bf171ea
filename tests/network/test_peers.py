"""Rings and pairs from a topology matrix; bandwidth and latency between peers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import LabkitError
from labkit.hardware.reports import read
from labkit.network.peers import PeerMatrix, peers
from labkit.network.topology import link_rank, pairings, ring_order

# A DGX-1 with V100: a hypercube mesh of single and double NVLinks.
DGX1 = """\
\tGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tGPU5\tGPU6\tGPU7\tCPU Affinity
GPU0\t X \tNV1\tNV1\tNV2\tNV2\tSYS\tSYS\tSYS\t0-19
GPU1\tNV1\t X \tNV2\tNV1\tSYS\tNV2\tSYS\tSYS\t0-19
GPU2\tNV1\tNV2\t X \tNV2\tSYS\tSYS\tNV1\tSYS\t0-19
GPU3\tNV2\tNV1\tNV2\t X \tSYS\tSYS\tSYS\tNV1\t0-19
GPU4\tNV2\tSYS\tSYS\tSYS\t X \tNV1\tNV1\tNV2\t20-39
GPU5\tSYS\tNV2\tSYS\tSYS\tNV1\t X \tNV2\tNV1\t20-39
GPU6\tSYS\tSYS\tNV1\tSYS\tNV1\tNV2\t X \tNV2\t20-39
GPU7\tSYS\tSYS\tSYS\tNV1\tNV2\tNV1\tNV2\t X \t20-39
"""


def test_the_ring_of_double_links() -> None:
    (topology,) = read(DGX1)
    ring = ring_order(topology)  # type: ignore[arg-type]
    assert (ring.worst, set(ring.edges)) == ("NV2", {"NV2"})
    assert sorted(ring.groups[0]) == [f"GPU{i}" for i in range(8)]
    pairs = pairings(topology)  # type: ignore[arg-type]
    assert pairs.worst == "NV2"
    assert sorted(name for pair in pairs.groups for name in pair) == sorted(ring.groups[0])
    assert repr(ring).startswith("Order(ring GPU0-GPU3-")


@pytest.mark.parametrize(
    ("better", "worse"), [("NV12", "NV4"), ("NV1", "PIX"), ("PIX", "PXB"), ("PXB", "PHB"), ("NODE", "SYS")]
)
def test_links_in_order(better: str, worse: str) -> None:
    assert link_rank(better) > link_rank(worse)


def test_a_link_that_was_cut_away() -> None:
    with pytest.raises(LabkitError, match="link None is not one of"):
        link_rank(None)
    assert link_rank("SOC") == link_rank("SYS")


@given(size=st.integers(1, 6), data=st.data())
def test_no_ring_and_no_pairs_are_better(size: int, data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.integers(1, 5), min_size=size * size, max_size=size * size))
    matrix = [numbers[i * size : (i + 1) * size] for i in range(size)]

    def edge(pair: tuple[int, int]) -> float:
        return min(matrix[pair[0]][pair[1]], matrix[pair[1]][pair[0]])

    found = [int(name) for name in ring_order(matrix).groups[0]]
    assert sorted(found) == list(range(size))
    if size > 2:
        rings = [(0, *rest) for rest in itertools.permutations(range(1, size))]
        worst = [min(map(edge, zip(r, r[1:] + r[:1], strict=True))) for r in rings]
        assert min(map(edge, zip(found, found[1:] + found[:1], strict=True))) == max(worst)
    if size > 1:
        every = [
            [(p[k], p[k + 1]) for k in range(0, size - 1, 2)] for p in itertools.permutations(range(size))
        ]
        best = max((min(map(edge, pairs)), sum(map(edge, pairs))) for pairs in every)
        mine = [(int(one), int(other)) for one, other in pairings(matrix).groups]
        assert (min(map(edge, mine)), sum(map(edge, mine))) == best


def test_a_ring_around_a_missing_link_among_sixteen() -> None:
    matrix = [[1.0 if abs(i - j) in (1, 15) else 0.1 for j in range(16)] for i in range(16)]
    assert ring_order(matrix).worst == "1"
    with pytest.raises(LabkitError, match="at most 16"):
        ring_order([[1.0] * 17] * 17)


@pytest.mark.parametrize("over", ["loopback", "shared memory"])
def test_between_processes(server_of_the_session: None, require: Callable[..., None], over: str) -> None:
    require("torch")
    found = peers(3 if over == "loopback" else 2, over, size="1MiB", rounds=3)
    for i, (rates, waits) in enumerate(zip(found.bandwidth, found.latency, strict=True)):
        for j, (rate, wait) in enumerate(zip(rates, waits, strict=True)):
            assert (rate is None) == (wait is None) == (i == j)
            assert rate is None or rate > 1e6
            assert wait is None or 1e-7 < wait < 1
    assert found.label == f"measured between processes of this machine, {over}"
    assert found.label in found._repr_html_()
    assert len(ring_order(found.rows()).groups[0]) == len(found.names)


def test_an_emulated_link_is_measured_and_says_so(
    server_of_the_session: None, require: Callable[..., None]
) -> None:
    require("torch")
    found = peers(2, size="256KiB", rounds=3, link="400Mbit/s", latency="5ms")
    assert found.label == "emulated between processes of this machine, 400Mbit/s, 5ms"
    for one, other in ((0, 1), (1, 0)):
        rate, wait = found.bandwidth[one][other], found.latency[one][other]
        assert rate is not None
        assert rate < 60e6  # 50 MB/s, and what a busy machine blurs
        assert wait is not None
        assert wait >= 5e-3


def test_shared_memory_leaves_nothing(server_of_the_session: None, require: Callable[..., None]) -> None:
    require("torch")
    from pathlib import Path

    before = set(Path("/dev/shm").iterdir())
    peers(2, "shared memory", size="64KiB", rounds=1)
    assert not {path for path in set(Path("/dev/shm").iterdir()) - before if "labkit" in path.name}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"over": "pigeon"}, "no way between peers"),
        ({"count": 1, "over": "loopback"}, "no peer"),
        ({"size": 1}, "at least 8 bytes"),
        ({"over": "loopback", "link": "1Gbit/s"}, "takes link= or latency="),
        ({"over": "emulated link"}, "takes link= or latency="),
    ],
)
def test_what_cannot_be_measured(words: dict[str, Any], said: str) -> None:
    with pytest.raises(LabkitError, match=said):
        peers(**words)


def test_without_gpus_it_says_so(require: Callable[..., None]) -> None:
    require("torch")
    import torch

    if torch.cuda.device_count() > 1:
        pytest.skip("needs a machine with fewer than two GPUs")
    with pytest.raises(LabkitError, match="GPU peers take two"):
        peers(over="gpu")


@pytest.mark.gpu
def test_between_gpus() -> None:
    import torch

    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    found = peers(over="gpu")
    assert found.label == "measured between GPUs"
    assert found.bandwidth[0][1] > 1e9  # type: ignore[operator]


def _arrays_beside_nccl() -> list[float]:
    """As on ranks that have GPUs: arrays in the host's memory take a group of their own."""
    from unittest.mock import patch

    import numpy as np
    from torch.distributed import distributed_c10d

    from labkit.network import live, rank_context
    from labkit.network.endpoint import TorchEndpoint
    from labkit.network.launch import wire
    from labkit.network.launch.meter import Meter
    from labkit.network.link import Pace

    here = rank_context()
    meter = Meter(live.Board(wire.memory_file(), 2), here.rank)
    with patch.object(distributed_c10d, "get_backend", return_value="nccl"):
        endpoint = TorchEndpoint(here.rank, here.world_size, Pace(None, 0.0), meter)
    coming = np.zeros(3)
    with patch.object(endpoint, "_exchange_grouped", side_effect=AssertionError("NCCL has no host memory")):
        endpoint.exchange(np.full(3, 1.0 + here.rank), 1 - here.rank, coming, 1 - here.rank)
    return [float(one) for one in coming]


def test_arrays_in_the_hosts_memory_do_not_go_through_nccl(
    server_of_the_session: None, require: Callable[..., None]
) -> None:
    require("torch")
    from labkit.network.ranks import ranks

    assert ranks(2).run(_arrays_beside_nccl) == [[2.0] * 3, [1.0] * 3]


def test_the_heat_map(require: Callable[..., None]) -> None:
    require("lab")
    require("torch")
    from labkit.widgets.work_views import peer_view

    matrix = PeerMatrix(
        "loopback", ("rank 0", "rank 1"), ((None, 2e9), (1e9, None)), ((None, 5e-6), (6e-6, None)), 1
    )
    figure = peer_view(matrix)
    assert list(figure.data[0].z[0]) == [None, 2]
    assert "measured between processes" in figure.layout.title.text
