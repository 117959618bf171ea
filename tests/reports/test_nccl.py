"""nccl-tests of all column layouts, and NCCL's logs of 2019 and 2025."""

from __future__ import annotations

import pytest

from labkit.hardware.reports import read
from labkit.hardware.reports.nccl_log import transport
from labkit.hardware.reports.nccl_tests import parse_row


def only(text):
    (report,) = read(text)
    return report


def test_all_reduce_of_today(sample):
    report = only(sample("nccl_all_reduce_h100.txt"))
    assert report.collective == "all_reduce"
    assert len(report.ranks) == 8
    assert report.ranks[7].name == "NVIDIA H100 80GB HBM3"
    assert len(report.rows) == 28
    last = report.rows[-1]
    assert (last.size_bytes, last.count, last.redop, last.root) == (2**30, 2**28, "sum", -1)
    assert last.in_place.busbw_GBps == last.out_of_place.busbw_GBps == report.peak_GBps
    assert last.out_of_place.wrong == 0
    assert report.avg_busbw_GBps == 121.877
    assert report.failed is False
    assert not report.cut


def test_error_column_of_old(sample):
    report = only(sample("nccl_old_v100.txt"))
    assert report.rows[0].out_of_place.error == 1e-06
    assert report.rows[0].out_of_place.wrong is None
    assert report.rows[0].root is None
    assert report.ranks[0].name == "Tesla V100-SXM2-16GB"


def test_mpi_prefixes_and_na(sample):
    report = only(sample("nccl_alltoall_mpi.txt"))
    assert (report.collective, report.version, report.nccl_version) == ("alltoall", "2.17.6", "22807")
    assert report.hosts == ("gpu-0", "gpu-1")
    assert report.rows[0].redop is None
    assert report.rows[0].out_of_place.wrong is None


def test_a_blank_operation_column(sample):
    report = only(sample("nccl_sendrecv.txt"))
    assert report.rows[0].root == -1
    assert report.rows[0].in_place.wrong is None
    assert report.rows[0].out_of_place.wrong == 0


@pytest.mark.parametrize(
    "row",
    [
        "8 2 float sum 20.1 0.00 0.00 0e+00 20.0 0.00 0.00 0e+00",
        "8 2 float sum -1 20.1 0.00 0.00 0 20.0 0.00 0.00 0",
        "8 2 float -1 20.1 0.00 0.00 0 20.0 0.00 0.00 N/A",
        "8 2 float none 3 20.1 0.00 0.00 0",
    ],
)
def test_rows_of_all_eras(row):
    parsed = parse_row(row.split(), old_columns=False)
    assert parsed.out_of_place.time_us == 20.1


@pytest.mark.parametrize(
    "row", ["8 2 float sum -1 20.1", "8 2", "8 2 float sum -1 a b c d", "x 2 float 1 2 3 4"]
)
def test_rows_that_are_none(row):
    assert parse_row(row.split(), old_columns=False) is None


@pytest.mark.parametrize("width", [72, 80, 100])
def test_rows_that_a_terminal_broke_are_whole_or_missing(sample, width):
    text = sample("nccl_all_reduce_h100.txt")
    right = {row.size_bytes: row for row in only(text).rows}
    lines = [line[i : i + width] for line in text.split("\n") for i in range(0, len(line) or 1, width)]
    wrapped = only("\n".join(lines))
    assert wrapped.rows
    for row in wrapped.rows:
        assert row.out_of_place == right[row.size_bytes].out_of_place


def test_a_run_cut_short(sample):
    text = sample("nccl_all_reduce_h100.txt")
    report = only(text[: len(text) // 2])
    assert report.cut
    assert report.avg_busbw_GBps is None


def test_two_runs_are_two_reports(sample):
    reports = read(sample("nccl_all_reduce_h100.txt") + sample("nccl_alltoall_mpi.txt"))
    assert [report.collective for report in reports] == ["all_reduce", "alltoall"]


def test_log_of_2019(sample):
    report = only(sample("nccl_log_2.4.txt"))
    assert (report.version, report.nranks, report.hosts) == ("2.4.8", 4, ("gpu2", "gpu3"))
    assert report.rings["00"] == (0, 1, 2, 3)
    assert report.transports == {"NET/Socket": 2, "P2P/IPC": 1, "SHM": 1}
    assert report.trees


def test_log_of_2025(sample):
    report = only(sample("nccl_log_2.27.txt"))
    assert (report.version, report.nodes, report.network) == ("2.27.3", 2, "IB")
    assert report.started == report.complete == (0, 1, 2, 3)
    assert report.transports == {"P2P/CUMEM": 2, "NET/IB/GDRDMA": 2}
    assert (report.coll_channels, report.nvls_channels) == (4, 16)
    assert report.environment["NCCL_DEBUG"] == "INFO"
    assert report.init_seconds["2"] == 2.12
    assert not report.cut


def test_log_lines_inside_a_run_of_nccl_tests(sample):
    rows = sample("nccl_all_reduce_h100.txt").split("\n")
    log = sample("nccl_log_2.27.txt").split("\n")
    mixed = [line for pair in zip(rows, log, strict=False) for line in pair] + rows[len(log) :]
    tests, nccl = sorted(read("\n".join(mixed)), key=lambda report: report.kind, reverse=True)
    assert len(tests.rows) == 28
    assert nccl.nranks == 4


def test_warnings_are_counted_once_each():
    line = "h:1:2 [0] misc/socket.cc:50 NCCL WARN Net : Connection closed by remote peer\n"
    report = only(line * 500)
    assert [(warning.count, warning.host) for warning in report.warnings] == [(500, "h")]


def test_a_version_alone_is_no_log():
    assert read("NCCL version 2.21.5+cuda12.4\n") == ()


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("P2P/CUMEM/read", "P2P/CUMEM"),
        ("P2P/IPC", "P2P/IPC"),
        ("P2P/direct pointer", "P2P/direct"),
        ("SHM/direct/direct", "SHM"),
        ("direct shared memory", "SHM"),
        ("NET/Socket/0", "NET/Socket"),
        ("NET/IB/3/GDRDMA", "NET/IB/GDRDMA"),
        ("NET/IB/0(1)/GDRDMA", "NET/IB/GDRDMA"),
        ("NET/AWS Libfabric/1/GDRDMA", "NET/AWS Libfabric/GDRDMA"),
        ("COLLNET/SHARP/0", "COLLNET/SHARP"),
    ],
)
def test_transports(printed, name):
    assert transport(printed) == name
