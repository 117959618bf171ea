"""Lesson 06: its figures."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from labkit.network.benchmark import BandwidthReport, Row

ALPHA, BETA = 5e-3, 1e7


def report() -> BandwidthReport:
    rows = [
        Row("all_reduce", name, 2**power, 4, "float32", 4, 0.03, 0.02, 0.05, 3, 0, True)
        for name in ("torch", "ring", "tree", "halving-doubling")
        for power in (6, 15)
    ]
    return BandwidthReport(4, "gloo", "4 ranks on gloo", tuple(rows), ())


def test_lines_are_modelled_points_measured_and_a_star_where_they_cross(require: Callable[..., None]) -> None:
    require("lab")
    from labkit.widgets.collective_times import MODELS, collective_times

    figure = collective_times(4, ALPHA, BETA, report(), most=2**20)
    names = [trace.name for trace in figure.data]
    assert names[:3] == [f"{name} (modelled)" for name in MODELS]
    assert names[3:6] == [f"{name} (measured)" for name in MODELS]
    assert names[6] == "ring and tree cross at 39.06 KiB"
    assert figure.data[6].x[0] == pytest.approx(40_000)
    assert list(figure.data[3].y) == [0.03, 0.03]
    assert max(figure.data[0].x) == 2**20


def test_no_star_where_nothing_crosses(require: Callable[..., None]) -> None:
    require("lab")
    from labkit.widgets.collective_times import collective_times

    assert len(collective_times(2, ALPHA, BETA).data) == 3


def test_reading_reports_takes_no_torch() -> None:
    import subprocess
    import sys

    code = (
        "import sys, labkit.bench.collectives, labkit.widgets.collective_bandwidth; "
        "assert 'torch' not in sys.modules; from labkit.network.benchmark import measure; assert callable(measure)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
