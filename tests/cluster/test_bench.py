"""The benchmark's own arithmetic."""

from __future__ import annotations

import pytest

from labkit.bench.cluster import _fit


def test_alpha_and_beta_are_found_again() -> None:
    sizes = [2**power for power in range(18, 24)]
    alpha, beta = _fit(sizes, [1e-3 + size / 1e8 for size in sizes])
    assert (alpha, beta) == (pytest.approx(1e-3), pytest.approx(1e8))


def test_a_links_first_burst_does_not_make_it_faster() -> None:
    sizes = [2**power for power in range(18, 24)]
    alpha, beta = _fit(sizes, [(size - 131072) / 1.2e8 for size in sizes])
    assert (alpha, beta) == (0, pytest.approx(1.2e8))
