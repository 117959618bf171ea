"""Three constants, fitted to every other size of a published table, predict the sizes left out."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labkit
from labkit import LabkitError
from labkit.hardware import published
from labkit.network.fabric import calibrate
from labkit.network.fabric.measurements import measured

SYSTEMS = {
    "H100x8_1node_NVLS": ("dgx-h100", {}, {"algorithm": "nvls"}),
    "A100_40x16_2node_OCI_RoCE16x100G": (
        "bm-gpu4-8",
        {"nodes": 2},
        {"algorithm": "hierarchical", "chunks": 16},
    ),
}


def table(name: str):
    return measured([row for row in published("nccl_allreduce") if row["config"] == name], name)


@pytest.mark.parametrize("least", [0, 2**10])
@pytest.mark.parametrize("parity", [0, 1])
@pytest.mark.parametrize("name", SYSTEMS)
def test_sizes_left_out_of_published_tables(name, parity, least):
    """Whether or not the fit sees the sizes outside 1 KiB to 8 GiB, and whichever half it sees."""
    server, shape, options = SYSTEMS[name]
    halves = table(name).between(least, 2**40).every_other()
    fit = calibrate(halves[parity], labkit.fabric(server, **shape), **options)
    off = np.abs(fit.errors(halves[1 - parity].between(2**10, 2**33)))
    assert np.median(off) <= 0.10
    assert off.max() <= 0.25
    assert 0.7 < fit.efficiency < 1.0  # the links of the catalogue are nearly right by themselves


@pytest.mark.parametrize("name", SYSTEMS)
def test_without_the_pipeline_s_term_sizes_in_the_middle_are_missed(name):
    server, shape, options = SYSTEMS[name]
    known, made = table(name).between(2**10, 2**33), labkit.fabric(server, **shape)
    plain = calibrate(known, made, constants=("start", "bandwidth"), **options)
    assert plain.worst > 0.25 > calibrate(known, made, **options).worst


@given(st.floats(1e-6, 1e-4), st.floats(0, 1e-4), st.floats(1e8, 1e12))
def test_exact_constants_are_found_again(start, pipeline, bandwidth):
    sizes = [2.0**power for power in range(8, 34, 2)]
    times = [start + math.sqrt(pipeline * size / bandwidth) + size / bandwidth for size in sizes]
    fit = calibrate(list(zip(sizes, times, strict=True)))
    assert fit.worst < 1e-6
    assert fit.predict(3e5) == pytest.approx(
        start + math.sqrt(pipeline * 3e5 / bandwidth) + 3e5 / bandwidth, rel=1e-5
    )


def test_point_to_point_times_give_the_link_that_a_fabric_needs():
    """alpha and beta of one link predict a ring on eight hosts."""
    pairs = [(size, 30e-6 + size / 125e6) for size in (1e3, 1e5, 1e6, 1e7)]
    fit = calibrate(pairs, constants=("start", "bandwidth"), name="ping-pong")
    made = labkit.fabric("star", nodes=8, bandwidth=fit.bandwidth, latency=fit.start_s / 2)
    assert made.all_reduce(16e6).seconds == pytest.approx(14 * (30e-6 + 2e6 / 125e6))


def test_a_calibrated_fabric_says_what_it_was_fitted_to():
    made = labkit.fabric("dgx-h100")
    fit = calibrate(table("H100x8_1node_NVLS"), made, algorithm="nvls")
    result = made.calibrated(fit).all_reduce("64MiB", "nvls")
    assert result.label == "simulated (modelled), constants fitted to H100x8_1node_NVLS"
    assert result.seconds == pytest.approx(fit.predict("64MiB"))
    assert result.seconds > made.all_reduce("64MiB", "nvls").seconds
    assert result.algorithm_bandwidth == pytest.approx(64 * 2**20 / result.seconds)
    assert result.hot.busy == pytest.approx(result.hot.bytes / 370e9 / result.seconds)
    assert made.calibrated(fit).calibrated(None).all_reduce("1MB") == made.all_reduce("1MB")
    assert "modelled" in repr(result)
    assert json.loads(json.dumps(fit.to_dict()))["label"].startswith("modelled")
    assert "H100x8_1node_NVLS" in fit._repr_html_()


LOG = """
# nThread 1 nGpus 8 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
     1048576        262144     float     sum      -1    40.00   26.21   45.87      0    40.10   26.15   45.76      0
     2097152        524288     float     sum      -1    60.00   34.95   61.17      0    60.10   34.89   61.06      0
     4194304       1048576     float     sum      -1   100.00   41.94   73.40      0   100.10   41.90   73.33      0
# Avg bus bandwidth    : 60.0
"""
ROWS = [
    {"size_bytes": 2**20, "time_us": 40},
    {"size_bytes": 2**21, "time_us": 60},
    {"size_bytes": 2**22, "time_us": 100},
]


@pytest.mark.parametrize(
    "source",
    [
        LOG,
        json.dumps(ROWS),
        json.dumps({"collective": "all_reduce", "rows": ROWS}),
        "\n".join(map(json.dumps, ROWS)),
        [(2**20, 40e-6), ("2MiB", "60us"), (2**22, 1e-4)],
    ],
)
def test_measurements_are_read_from_logs_json_and_pairs(source, tmp_path):
    expected = ((2.0**20, 2.0**21, 2.0**22), pytest.approx((40e-6, 60e-6, 1e-4)))
    found = measured(source)
    assert (found.sizes, found.seconds) == expected
    if isinstance(source, str):
        path = tmp_path / "log.txt"
        path.write_text(source)
        assert measured(path).sizes == expected[0]
        assert measured(path).source == "log.txt"


@pytest.mark.parametrize(
    ("source", "options", "says"),
    [
        ([(1e3, 1e-6), (1e6, 1e-5)], {}, "3 constants need as many sizes"),
        ("nothing\nhere", {}, "No size with a time was found"),
        ("/nowhere/log.txt", {}, "cannot be read"),
        ("{broken\n", {}, "looks like JSON and is not"),
        ([1, 2, 3], {}, "is no measurement"),
        ([(1e3, 1e-5), (1e6, 1e-5), (1e9, 1e-5)], {}, "takes no longer for larger sizes"),
        ([(1e3, 1e-6)], {"constants": ("alpha",)}, "'alpha' is no constant"),
        ([(1e3, 1e-6)], {"constants": ("start",)}, "Without a fabric"),
        ([(1e3, 1e-6)] * 3, {}, "3 constants need as many sizes"),
    ],
)
def test_bad_measurements_get_one_sentence(source, options, says):
    with pytest.raises(LabkitError) as caught:
        calibrate(source, **options)
    assert says in str(caught.value)
