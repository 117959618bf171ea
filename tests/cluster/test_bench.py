"""The benchmark's own arithmetic."""

from __future__ import annotations

import pytest

from labkit.bench.cluster import _MESSAGES, _fit


def test_alpha_and_beta_are_found_again() -> None:
    sizes = [2**power for power in range(18, 24)]
    fitted = _fit(sizes, [1e-3 + size / 1e8 for size in sizes])
    assert (fitted.start_s, fitted.bandwidth) == (pytest.approx(1e-3), pytest.approx(1e8))


def test_a_links_first_burst_makes_it_little_faster() -> None:
    sizes = _MESSAGES
    fitted = _fit(sizes, [(size - 131072) / 1.2e8 for size in sizes])
    assert fitted.start_s == 0
    assert fitted.bandwidth == pytest.approx(1.2e8, rel=0.08)
