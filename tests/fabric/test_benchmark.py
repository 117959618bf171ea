"""The benchmark's own peer is right, and its figures of correctness are met in the short form."""

from __future__ import annotations

import random

import pytest

from labkit.bench import fabric as bench
from labkit.network.fabric import simulate_flows


def test_the_peer_agrees_on_another_graph_than_it_is_timed_on():
    links, flows = bench.random_case(random.Random(99))
    flows = flows[:60]
    assert bench.progressive_filling(links, flows) == pytest.approx(
        simulate_flows(links, flows).tolist(), rel=1e-6
    )


@pytest.mark.parametrize("part", [bench._formulas, bench._published, bench._torus])
def test_figures_of_correctness_are_met(part):
    names = bench.SYSTEMS if part is bench._published else [None]
    for name in names:
        found = part(name) if name else part()
        for figure in found if name or part is bench._formulas else [found]:
            assert figure.met, figure
