"""Without contention, collectives take what the alpha-beta model says, to 1e-9."""

from __future__ import annotations

import math

import pytest

import labkit

ALPHA, BETA, SIZE = 4e-6, 2e9, 48e6
EXACT = {"rel": 1e-9, "abs": 0}


def star(nodes: int):
    """Two cables and a switch between any two hosts: alpha is two latencies."""
    return labkit.fabric("star", nodes=nodes, bandwidth=BETA, latency=ALPHA / 2)


def mesh(nodes: int):
    return labkit.fabric("full-mesh", nodes=nodes, bandwidth=BETA, latency=ALPHA)


@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize("n", [2, 3, 7, 16, 100])
@pytest.mark.parametrize("made", [star, mesh])
def test_ring(made, n, fold):
    got = made(n).all_reduce(SIZE, "ring", fold=fold).seconds
    assert got == pytest.approx(2 * (n - 1) * (ALPHA + SIZE / n / BETA), **EXACT)


@pytest.mark.parametrize("in_order", [True, False])
def test_ring_on_equal_links_does_not_care_for_order(in_order):
    got = star(12).all_reduce(SIZE, "ring", in_order=in_order, fold=False).seconds
    assert got == pytest.approx(22 * (ALPHA + SIZE / 12 / BETA), **EXACT)


@pytest.mark.parametrize("n", [2, 3, 8, 13, 64])
@pytest.mark.parametrize("made", [star, mesh])
def test_tree(made, n):
    got = made(n).all_reduce(SIZE, "tree").seconds
    assert got == pytest.approx(2 * math.ceil(math.log2(n)) * (ALPHA + SIZE / BETA), **EXACT)
    down = made(n).broadcast(SIZE, "tree").seconds
    assert down == pytest.approx(math.ceil(math.log2(n)) * (ALPHA + SIZE / BETA), **EXACT)


@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize("n", [2, 8, 64])
@pytest.mark.parametrize("made", [star, mesh])
def test_halving_doubling(made, n, fold):
    got = made(n).all_reduce(SIZE, "halving-doubling", fold=fold).seconds
    assert got == pytest.approx(2 * math.log2(n) * ALPHA + 2 * (n - 1) / n * SIZE / BETA, **EXACT)


@pytest.mark.parametrize(("n", "core"), [(3, 2), (12, 8)])
def test_halving_doubling_folds_in_the_ranks_beyond_a_power_of_two(n, core):
    expected = 2 * math.log2(core) * ALPHA + 2 * (core - 1) / core * SIZE / BETA + 2 * (ALPHA + SIZE / BETA)
    assert mesh(n).all_reduce(SIZE, "halving-doubling").seconds == pytest.approx(expected, **EXACT)


@pytest.mark.parametrize("chunks", [1, 5, 32])
def test_chain_in_chunks(chunks):
    got = star(6).broadcast(SIZE, "chain", chunks=chunks).seconds
    assert got == pytest.approx((6 - 2 + chunks) * (ALPHA + SIZE / chunks / BETA), **EXACT)


@pytest.mark.parametrize("operation", ["reduce_scatter", "all_gather", "all_to_all"])
def test_halves_of_a_ring_and_pairwise_exchange(operation):
    got = getattr(star(10), operation)(SIZE).seconds
    assert got == pytest.approx(9 * (ALPHA + SIZE / 10 / BETA), **EXACT)


@pytest.mark.parametrize(
    ("operation", "algorithm"), [("reduce_scatter", "halving"), ("all_gather", "doubling")]
)
def test_halving_and_doubling_alone(operation, algorithm):
    got = getattr(star(16), operation)(SIZE, algorithm).seconds
    assert got == pytest.approx(4 * ALPHA + 15 / 16 * SIZE / BETA, **EXACT)


def test_all_to_all_at_once_shares_every_uplink():
    got = star(9).all_to_all(SIZE, "direct").seconds
    assert got == pytest.approx(ALPHA + 8 / 9 * SIZE / BETA, **EXACT)


@pytest.mark.parametrize("columns", [2, 4])
def test_two_dimensional(columns):
    rows = 16 // columns
    inner = 2 * (columns - 1) * (ALPHA + SIZE / columns / BETA)
    outer = 2 * (rows - 1) * (ALPHA + SIZE / 16 / BETA)
    got = star(16).all_reduce(SIZE, "2d", columns=columns).seconds
    assert got == pytest.approx(inner + outer, **EXACT)


def test_in_the_switch_data_goes_up_once_and_comes_down_once():
    got = star(8).all_reduce(SIZE, "in-switch", chunks=1).seconds
    assert got == pytest.approx(ALPHA + 2 * SIZE / BETA, **EXACT)
    many = star(8).all_reduce(SIZE, "in-switch", chunks=100).seconds
    assert many == pytest.approx((100 + 1) * (ALPHA / 2 + SIZE / 100 / BETA), **EXACT)


def test_nvls_sends_one_share_more_than_the_data():
    n, chunks = 8, 200
    got = star(n).all_reduce(SIZE, "nvls", chunks=chunks)
    assert got.links["g0->switch"].bytes == pytest.approx(SIZE * (1 + 1 / n))
    assert got.links["switch->g0"].bytes == pytest.approx(SIZE * (1 + 1 / n))
    assert got.seconds > SIZE * (1 + 1 / n) / BETA


def test_a_double_tree_in_chunks_nears_twice_the_data_over_one_link():
    n = 16
    small, large = (mesh(n).all_reduce(SIZE, "double-tree", chunks=c).seconds for c in (1, 64))
    assert large < small
    assert SIZE / BETA < large < 2.2 * SIZE / BETA


def test_torus_with_64_chunks_is_near_its_six_link_bound():
    bound = 2 * 63 / 64 * SIZE / (6 * BETA)
    got = labkit.fabric("torus", dims=(4, 4, 4), bandwidth=BETA, latency=1e-7).all_reduce(
        SIZE, "torus", chunks=64
    )
    assert bound <= got.seconds <= 1.15 * bound
    assert all(load.busy > 0.85 for load in got.links)
