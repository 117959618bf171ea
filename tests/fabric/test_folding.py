"""Folding must never change a result, and must give up where nothing is alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labkit

CASES = [
    ("star", {"nodes": 256}, "ring", {}),
    ("star", {"nodes": 60}, "2d", {}),
    ("star", {"nodes": 64}, "halving-doubling", {"chunks": 3}),
    ("star", {"nodes": 24}, "halving-doubling", {}),
    ("ring", {"nodes": 30}, "ring", {}),
    ("torus", {"dims": (4, 4)}, "ring", {}),
    ("torus", {"dims": (4, 3, 2)}, "torus", {"chunks": 4}),
    ("torus", {"dims": (8, 2)}, "halving-doubling", {}),
    ("full-mesh", {"nodes": 12}, "halving-doubling", {}),
    ("fat-tree", {"k": 4}, "ring", {}),
    ("fat-tree", {"k": 8, "oversubscription": 2}, "ring", {"routing": "shortest"}),
    ("fat-tree", {"k": 4}, "halving-doubling", {"routing": "shortest"}),
    ("dragonfly", {}, "ring", {}),
    ("dgx-h100", {"nodes": 4}, "hierarchical", {}),
    ("dgx-h100", {"nodes": 4}, "ring", {}),
    ("dgx-v100", {"nodes": 2}, "hierarchical", {"chunks": 2}),
    ("nvl72", {}, "2d", {}),
    ("star", {"nodes": 16}, "ring", {"placement": "random", "protocol": "simple"}),
    ("dgx-a100", {"nodes": 4}, "ring", {"placement": "round-robin"}),
]


def agree(one, other) -> None:
    assert one.seconds == pytest.approx(other.seconds, rel=1e-9)
    np.testing.assert_allclose(one.links.bytes, other.links.bytes, rtol=1e-9, atol=1e-3)
    assert one.messages == other.messages == other.simulated


@pytest.mark.parametrize(("name", "shape", "algorithm", "options"), CASES)
def test_folded_equals_unfolded(name, shape, algorithm, options):
    made = labkit.fabric(name, **shape)
    agree(*(made.all_reduce("24MB", algorithm, fold=fold, **options) for fold in (True, False)))


@pytest.mark.parametrize("nodes", [16, 64, 256])
def test_a_ring_on_a_star_is_simulated_a_message_a_step(nodes):
    result = labkit.fabric("star", nodes=nodes).all_reduce("1GB")
    assert (result.simulated, result.messages) == (2 * (nodes - 1), 2 * nodes * (nodes - 1))


@given(
    st.lists(st.sampled_from([1e9, 2e9, 3e9]), min_size=4, max_size=24),
    st.sampled_from(["ring", "halving-doubling", "2d", "tree"]),
    st.integers(1, 3),
    st.booleans(),
)
@settings(max_examples=60)
def test_folding_is_exact_on_unequal_hosts(rates, algorithm, chunks, alternate):
    """Repeated, alternating and arbitrary speeds: some fold, some must not, and all agree."""
    rates = (rates[:2] * len(rates))[: len(rates)] if alternate else rates
    made = labkit.fabric("star", nodes=len(rates), bandwidth=rates, latency=1e-6)
    agree(*(made.all_reduce("6MB", algorithm, chunks=chunks, fold=fold) for fold in (True, False)))


@given(st.permutations(range(16)), st.sampled_from(["ring", "2d", "halving-doubling"]))
@settings(max_examples=30)
def test_folding_is_exact_for_any_placement_on_a_tree(order, algorithm):
    made = labkit.fabric("fat-tree", k=4)
    options = {"placement": list(order), "routing": "shortest"}
    agree(*(made.all_reduce("6MB", algorithm, fold=fold, **options) for fold in (True, False)))


def test_nothing_is_folded_where_all_hosts_differ():
    rates = np.linspace(1e9, 2e9, 40)
    result = labkit.fabric("star", nodes=40, bandwidth=rates, latency=1e-6).all_reduce("6MB")
    assert result.simulated == result.messages


def test_hosts_that_repeat_fold_to_one_of_each():
    """Speeds a, b, c, a, b, c, ...: a message crosses an a and a b, a b and a c, or a c and an a."""
    made = labkit.fabric("star", nodes=36, bandwidth=[1e9, 2e9, 4e9] * 12, latency=1e-6)
    result = made.all_reduce("6MB")
    assert result.simulated == 3 * result.messages // 36


def test_groups_fold_together():
    made = labkit.fabric("star", nodes=32)
    groups = np.arange(32).reshape(4, 8).tolist()
    agree(*(made.all_reduce("6MB", groups=groups, fold=fold) for fold in (True, False)))
