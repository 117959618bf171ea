"""The matrix of nvidia-smi topo -m, from one GPU to sixteen, of every era."""

from __future__ import annotations

import pytest

from labkit.hardware.reports import read
from labkit.hardware.reports.topo import Topology


def only(text) -> Topology:
    (report,) = read(text)
    assert isinstance(report, Topology)
    return report


def test_eight_gpus_and_eight_nics(sample):
    report = only(sample("topo_2024_h100.txt"))
    assert len(report.gpus) == len(report.nics) == 8
    assert report.link("GPU0", "GPU7") == "NV18"
    assert report.link("GPU3", "NIC3") == "PIX"
    assert report.link("NIC0", "GPU5") == "SYS"
    assert report.cpu_affinity[0] == "0-47,96-143"
    assert report.numa_affinity[7] == "1"
    assert report.gpu_numa_id == (None,) * 8  # it says N/A
    assert report.nic_names["NIC7"] == "mlx5_7"
    assert not report.cut


def test_old_layout_without_numa_column(sample):
    report = only(sample("topo_2018_v100.txt"))
    assert report.nics == ("mlx5_0",)
    assert report.link("GPU0", "GPU3") == "NV2"
    assert report.cpu_affinity == ("0-19", "0-19", "20-39", "20-39")
    assert report.numa_affinity == (None,) * 4


def test_sixteen_gpus_and_one(sample):
    assert len(only(sample("topo_2019_dgx2.txt")).gpus) == 16
    one = only(sample("topo_1gpu.txt"))
    assert one.matrix == (("X",),)
    assert one.cpu_affinity == ("0-11",)


def test_words_before_2017():
    report = only("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tSOC\t0-7\nGPU1\tSOC\t X \t8-15\n")
    assert report.link("GPU0", "GPU1") == "SOC"


@pytest.mark.parametrize("width", [60, 80, 100, 132])
def test_wrapped_by_a_terminal(sample, width):
    text = sample("topo_2024_h100.txt")
    whole = only(text)
    lines = [
        line[i : i + width] for line in text.expandtabs().split("\n") for i in range(0, len(line) or 1, width)
    ]
    wrapped = only("\n".join(lines))
    assert wrapped.devices == whole.devices
    assert wrapped.matrix == whole.matrix
    assert wrapped.cpu_affinity == whole.cpu_affinity


def test_affinity_broken_inside_a_word_is_not_guessed(sample):
    text = sample("topo_2024_h100.txt").expandtabs()
    lines = [line[i : i + 72] for line in text.split("\n") for i in range(0, len(line) or 1, 72)]
    assert only("\n".join(lines)).cpu_affinity == (None,) * 8


def test_a_matrix_cut_in_the_middle(sample):
    text = sample("topo_2024_h100.txt")
    report = only(text[: len(text) // 3])
    assert report.cut
    assert report.link("GPU0", "GPU1") == "NV18"
    assert report.link("GPU6", "NIC0") is None


def test_a_matrix_without_header_takes_its_rows_as_columns(sample):
    report = only(sample("topo_2024_h100.txt").split("\n", 1)[1])
    assert report.link("GPU3", "NIC3") == "PIX"
    assert report.cut


@pytest.mark.parametrize(
    "text",
    [
        "\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\n",  # topo -p2p
        "       GPU0  GPU1\nGPU0   0     15\nGPU1   15    0\n",  # rocm-smi --showtopo
        "GPU0 GPU1 are the cards we bought\n",
        "\tGPU0\tGPU1\nGPU0\tNV0\tNV0\nGPU1\tNV0\tNV0\n",
    ],
)
def test_other_matrices_are_left_alone(text):
    assert read(text) == ()
