"""The catalogue holds together: arithmetic, names, and honest answers."""

from __future__ import annotations

import dataclasses
import json

import pytest

from labkit import hardware
from labkit.errors import LabkitError
from labkit.hardware import files
from labkit.hardware.records import PRECISIONS

CARDS = hardware.gpus()
NVIDIA = [card for card in CARDS if card.vendor == "NVIDIA"]


@pytest.mark.parametrize("card", NVIDIA, ids=lambda card: card.id)
def test_fp32_peak_is_multiprocessors_times_lanes_times_clock(card):
    lanes = hardware.sm_resources(card).fp32_lanes
    computed = card.multiprocessors * lanes * 2 * card.boost_MHz * 1e6
    assert computed == pytest.approx(card.peak_flops("fp32"), rel=0.03)


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.id)
def test_a_card_is_plausible_and_has_a_source(card):
    assert card.source
    assert card.memory_GB in card.memory_sizes_GB
    assert 100 < card.memory_bandwidth_GBps < 10_000
    assert set(card.uncertain) <= {field.name for field in dataclasses.fields(card)}
    assert json.loads(json.dumps(card.to_dict()))["id"] == card.id
    if card.fabric:
        assert card.fabric.per_direction_GBps * 2 == card.fabric.total_both_ways_GBps


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.id)
def test_every_name_finds_its_card(card):
    for name in (card.id, *card.names):
        for form in (name, name.upper(), name.lower(), f"NVIDIA {name}", name.removeprefix("NVIDIA ")):
            assert hardware.gpu(form).id == card.id, form


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("H100", "H100_SXM5"),
        ("A100", "A100_80_SXM4"),
        ("A100-SXM4-80GB", "A100_80_SXM4"),
        ("A100 40GB", "A100_40_SXM4"),
        ("P100", "P100_PCIE"),
        ("rtx4090", "RTX_4090"),
        ("NVIDIA GH200 480GB", "GH200"),
        ("MI300X", "MI300X"),
    ],
)
def test_short_and_printed_names(name, identity):
    assert hardware.gpu(name).id == identity


def test_memory_named_or_reported_picks_the_size():
    assert hardware.gpu("V100").memory_GB == 16
    assert hardware.gpu("Tesla V100-SXM2-32GB").memory_GB == 32
    assert hardware.gpu("V100", memory_bytes=34_079_637_504).memory_GB == 32


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("H1000", "Did you mean H100_SXM5"),
        ("GTX 1080", "Did you mean"),
        ("", "labkit.hardware.gpus()"),
        ("RTX 3080 12GB", "prints the same name"),
        ("NVIDIA GeForce RTX 4060 Laptop GPU", "is a laptop GPU"),
        ("GeForce RTX 2080 Ti with Max-Q Design", "is a laptop GPU"),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "is a MIG slice"),
    ],
)
def test_what_is_not_in_the_catalogue_is_said(name, words):
    with pytest.raises(LabkitError, match=words.replace("(", r"\(").replace(")", r"\)")):
        hardware.gpu(name)


def test_a_twin_is_unmasked_by_its_memory():
    assert hardware.gpu("NVIDIA GeForce RTX 3080", memory_bytes=10_500_000_000).id == "RTX_3080"
    with pytest.raises(LabkitError, match="912 GB/s"):
        hardware.gpu("NVIDIA GeForce RTX 3080", memory_bytes=12_880_000_000)


def test_peaks_are_dense_and_nulls_stay():
    assert hardware.gpu("A100").peak_flops("fp16_tensor") == 312e12
    assert hardware.gpu("V100").fp8_TFLOPS is None
    with pytest.raises(LabkitError, match="it has fp32, fp16_tensor, int8"):
        hardware.gpu("V100").peak_flops("fp8")
    with pytest.raises(LabkitError, match=", ".join(PRECISIONS)):
        hardware.gpu("V100").peak_flops("fp61")


def test_doubt_is_carried():
    assert hardware.gpu("B200").uncertain == ("memory_bandwidth_GBps",)
    assert hardware.gpu("V100").uncertain == ("int8_TOPS",)
    assert hardware.latency("tcp").uncertain is False
    assert "uncertain" in repr(hardware.latency("pcie-dma-read"))


def test_limits_of_a_multiprocessor():
    for capability in files.load("gpus")["sm_resources"]:
        limits = hardware.sm_resources(capability)
        assert limits.threads == limits.warps * 32
        assert limits.shared_per_block_KiB <= limits.shared_KiB
    with pytest.raises(LabkitError, match="gfx942"):
        hardware.sm_resources("MI300X")


@pytest.mark.parametrize("link", hardware.links(), ids=lambda link: link.id)
def test_a_link_holds_together(link):
    assert link.source
    assert set(link.uncertain) <= {field.name for field in dataclasses.fields(link)}
    if link.achieved_GBps:
        low, high = link.achieved_GBps
        assert 0 < low <= high < link.raw_GBps
    if link.per_gpu and link.total_both_ways_GBps:
        assert link.per_gpu * link.raw_GBps * 2 == link.total_both_ways_GBps
    if link.tcp_goodput_mtu1500_GBps:
        assert link.tcp_goodput_mtu1500_GBps == pytest.approx(link.raw_GBps * 1448 / 1538, rel=0.01)
        assert link.tcp_goodput_mtu9000_GBps == pytest.approx(link.raw_GBps * 8948 / 9038, rel=0.01)
    for name in (link.id, *link.names):
        assert hardware.link(name.upper()) == link


def test_an_unknown_link_suggests_the_nearest():
    with pytest.raises(LabkitError, match="Did you mean pcie6"):
        hardware.link("PCIe7")


@pytest.mark.parametrize("latency", hardware.latencies(), ids=lambda latency: latency.id)
def test_a_latency_is_a_range_with_a_source(latency):
    low, high = latency.us
    assert 0 < low <= high
    assert latency.source
    assert hardware.latency(latency.id) is latency


@pytest.mark.parametrize("claim", hardware.claims(), ids=lambda claim: claim.id)
def test_a_claim_has_verdict_figure_and_lesson(claim):
    assert claim.verdict in ("true", "mostly_true", "misleading", "false", "unsourced", "bug")
    assert claim.basis in ("derived", "documented", "recalled")
    assert 0 <= int(claim.lesson) <= 12
    assert len(claim.lesson) == 2
    assert len(claim.figure) > 20
    assert hardware.claim(claim.id) is claim


def test_published_tables():
    rows = hardware.published("nccl_allreduce")
    sources = files.load("measured/sources")["nccl_allreduce"]
    assert {row["config"] for row in rows} == set(sources["configurations"]) == set(sources["gpus"])
    largest = max((row for row in rows if "H100" in row["config"]), key=lambda row: row["size_bytes"])
    bus_bandwidth = largest["size_bytes"] / largest["time_us"] * 1e6 * 2 * 7 / 8
    assert 400e9 < bus_bandwidth < 500e9
    assert len(hardware.published("onebit_adam_profile")) == 11
    with pytest.raises(LabkitError, match="nccl_allreduce"):
        hardware.published("nccl_all_reduce")


def test_protocols_and_glossary():
    assert hardware.protocol("nccl-2.19-tuner")["base_latency_us"]["ring"][2] == 8.4
    assert hardware.glossary()["warp"] == "线程束"
    assert all(term and chinese for term, chinese in hardware.glossary().items())


def test_records_show_themselves():
    assert repr(hardware.gpu("A100")) == (
        "GPU(A100_80_SXM4: 80 GB at 2039 GB/s, 19.5 TFLOPS fp32, 108 multiprocessors, 400 W)"
    )
    assert repr(hardware.link("pcie4")) == "Link(pcie4: 31.51 GB/s one way a x16 slot, 24 to 26.5 achieved)"
    assert "<td" in hardware.gpu("A100")._repr_html_()
    assert "fp8_TFLOPS" not in hardware.gpu("A100")._repr_html_()
