"""Collectives measured: every value right, bandwidths as nccl-tests defines them, files that others read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from labkit.errors import LabkitError
from labkit.hardware.reports import read
from labkit.network.collectives_cost import halving_doubling, ring
from labkit.network.fabric.calibration import calibrate
from labkit.network.fabric.measurements import measured
from labkit.network.ranks import Ranks

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")
World = Callable[..., Ranks]


@pytest.fixture(scope="module")
def report(server_of_the_session: None) -> Any:
    from support import needs

    from labkit.bench.collectives import measured as measure_here

    needs.require("torch")
    return measure_here(3, None, None, counts=[24, 50_000], repeats=3, warmup=1)


def test_every_operation_ours_and_torchs_and_every_value_right(report: Any) -> None:
    kinds = report.kinds()
    assert {operation for operation, _ in kinds} == {
        "all_reduce",
        "all_gather",
        "reduce_scatter",
        "broadcast",
        "all_to_all",
        "send_recv",
    }
    assert all((operation, "torch") in kinds and len(kinds) == 14 for operation, _ in kinds)
    assert report.wrong == 0
    assert sorted({row.size_bytes for row in report.rows}) == [24, 50_004]  # whole elements on every rank
    assert all(0 < row.low <= row.seconds <= row.high for row in report.rows)


@pytest.mark.parametrize(
    ("operation", "factor"),
    [("all_reduce", 4 / 3), ("all_gather", 2 / 3), ("all_to_all", 2 / 3), ("broadcast", 1), ("send_recv", 1)],
)
def test_bandwidths_as_nccl_tests_counts_them(report: Any, operation: str, factor: float) -> None:
    row = report.of(operation).rows[-1]
    assert row.algorithm_bandwidth == row.size_bytes / row.seconds
    assert row.bus_bandwidth == pytest.approx(factor * row.algorithm_bandwidth)


def test_the_table_is_read_as_nccl_tests_output(report: Any) -> None:
    tests = [one for one in read(report.text()) if one.kind == "nccl_tests"]
    assert [one.collective for one in tests][:5] == [*["all_reduce"] * 4, "all_gather"]
    assert {one.collective for one in tests} >= {"alltoall", "sendrecv", "broadcast", "reduce_scatter"}
    assert all(one.failed is False and len(one.ranks) == 3 and not one.cut for one in tests)
    back = next(one for one in tests if one.collective == "broadcast").rows[-1]
    row = report.of("broadcast").rows[-1]
    assert (back.size_bytes, back.count, back.root) == (row.size_bytes, row.size_bytes // 4, 0)
    assert back.in_place.time_us == pytest.approx(row.seconds * 1e6, rel=2e-3)
    assert back.out_of_place.time_us is None
    gathered = next(one for one in tests if one.collective == "all_gather").rows[-1]
    assert gathered.count * 3 * 4 == gathered.size_bytes
    assert gathered.out_of_place.busbw_GBps is not None


def test_the_fabric_reads_json_table_and_report(report: Any) -> None:
    one = report.of("all_reduce", "ring")
    wanted = [(row.size_bytes, row.seconds) for row in one.rows]
    for source in (one, json.dumps(one.to_dict()), one.to_dict()["rows"]):
        known = measured(source)
        assert list(zip(known.sizes, known.seconds, strict=True)) == wanted
    assert measured(one.text()).seconds == pytest.approx([seconds for _, seconds in wanted], rel=2e-3)
    with pytest.raises(LabkitError, match="times of all_gather by ring, all_gather by torch"):
        measured(json.dumps(report.to_dict()))


def test_calibrate_takes_the_report(report: Any) -> None:
    from labkit.network.benchmark import BandwidthReport, Row

    rows = tuple(
        Row("all_reduce", "torch", 1 << n, 4, "float32", 4, 1e-4 + (1 << n) / 1e9, 1e-4, 1.0, 5, 0, True)
        for n in range(6, 27, 4)
    )
    made = calibrate(BandwidthReport(4, "gloo", "loopback", rows), constants=("start", "bandwidth"))
    assert made.start_s == pytest.approx(1e-4, rel=1e-3)
    assert made.bandwidth == pytest.approx(1e9, rel=1e-3)
    assert made.source == "loopback"


def test_a_report_survives_json(report: Any) -> None:
    from labkit.network.benchmark import BandwidthReport

    assert BandwidthReport.from_dict(json.loads(json.dumps(report.to_dict()))) == report
    assert repr(report) == "BandwidthReport(28 rows of 14 kinds, 3 ranks on gloo, measured)"
    assert "halving-doubling" in report._repr_html_()
    with pytest.raises(LabkitError, match="no broadcast by ring in this report"):
        report.of("broadcast", "ring")


@pytest.mark.parametrize(
    ("name", "ranks", "cost"), [("ring", 4, ring), ("halving-doubling", 6, halving_doubling)]
)
def test_the_fit_finds_alpha_and_beta(name: str, ranks: int, cost: Callable[..., float]) -> None:
    from labkit.network.benchmark import BandwidthReport, Row, fit
    from labkit.network.benchmark.fit import modelled

    def row(size: int) -> Row:
        took = cost(size, ranks, 5e-5, 2e9)
        return Row("all_reduce", name, size, 4, "float32", ranks, took, took, took, 3, 0, True)

    rows = tuple(row(8**n) for n in range(1, 9))
    (found,) = fit(BandwidthReport(ranks, "gloo", "test", rows))
    assert (found.alpha, found.beta) == (pytest.approx(5e-5), pytest.approx(2e9))
    assert found.error < 1e-9
    assert modelled(found, 1e6, ranks) == pytest.approx(cost(1e6, ranks, 5e-5, 2e9))


def test_times_that_do_not_grow_have_no_beta() -> None:
    from labkit.network.benchmark import BandwidthReport, Row, fit

    rows = tuple(
        Row("broadcast", "torch", size, 4, "float32", 2, 1e-3 / size, 1e-3, 1e-3, 3, 0, True)
        for size in (8, 8000)
    )
    (found,) = fit(BandwidthReport(2, "gloo", "test", rows))
    assert "beta not seen at these sizes" in repr(found)
    assert found.to_dict()["beta"] is None


def test_sizes_and_their_mistakes() -> None:
    from labkit.network.benchmark.sizes import sizes

    assert sizes("8B", "1KiB", 4) == [8, 32, 128, 512]
    with pytest.raises(LabkitError, match="factor above 1"):
        sizes("8B", "1KiB", 1)
    with pytest.raises(LabkitError, match="factor above 1"):
        sizes("2KiB", "1KiB", 2)


def test_a_wrong_value_is_counted(world: World) -> None:
    def with_a_mistake() -> tuple[int, int]:
        import torch
        import torch.distributed as dist

        from labkit.network.benchmark.operations import IMPLEMENTATIONS, buffers, wrong

        one = IMPLEMENTATIONS[0]
        data = buffers(one, 8, torch.float32, torch.device("cpu"))
        one.run(data)
        right = wrong(one, data, 8)
        data.sent[3] += dist.get_rank()
        return right, wrong(one, data, 8)

    assert world(2).run(with_a_mistake) == [(0, 0), (0, 1)]


def test_the_figure_has_the_limit_of_the_link(report: Any, require: Callable[..., None]) -> None:
    require("lab")
    from labkit.widgets.collective_bandwidth import collective_bandwidth

    figure = collective_bandwidth(report, link="1Gbit/s")
    assert figure.layout.shapes[0].y0 == pytest.approx(0.125e9)
    assert "1 Gbit/s" in figure.layout.annotations[0].text
    assert len(figure.data) == 28
    assert figure.data[0].name == "all_reduce, torch"
    assert "measured" in figure.layout.title.subtitle.text
    assert "data sheet" in collective_bandwidth(report, link="nvlink4").layout.annotations[0].text
    assert "fastest send and receive" in collective_bandwidth(report).layout.annotations[0].text


def test_the_command(
    server_of_the_session: None, capsys: Any, tmp_path: Any, require: Callable[..., None]
) -> None:
    require("torch")
    require("lab")
    from labkit.bench import main

    words = "collectives --ranks 2 -b 8B -e 1KiB -f 100 --repeats 2 --operation broadcast --by torch"
    plot = tmp_path / "figure.html"
    assert main([*words.split(), "--json", "--plot", str(plot)]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [row["size_bytes"] for row in data["rows"]] == [8, 800]
    assert data["fits"][0]["operation"] == "broadcast"
    assert "loopback" in plot.read_text(encoding="utf-8")
