"""Topologies from what nvidia-smi and NCCL print."""

from __future__ import annotations

import networkx as nx
import pytest

import labkit
from labkit import LabkitError

H100 = """
        GPU0    GPU1    GPU2    NIC0    NIC1    CPU Affinity    NUMA Affinity
GPU0     X      NV18    NV18    PIX     SYS     0-15            0
GPU1    NV18     X      NV18    NODE    SYS     0-15            0
GPU2    NV18    NV18     X      SYS     PXB     16-31           1
NIC0    PIX     NODE    SYS      X      SYS
NIC1    SYS     SYS     PXB     SYS      X
"""
CUBE = """
        GPU0    GPU1    GPU2    GPU3    CPU Affinity
GPU0     X      NV2     NV1     SYS     0-7
GPU1    NV2      X      SYS     NV1     0-7
GPU2    NV1     SYS      X      NV2     8-15
GPU3    SYS     NV1     NV2      X      8-15
"""
PCIE = """
        GPU0    GPU1    GPU2    GPU3    CPU Affinity
GPU0     X      PIX     NODE    SYS     0-7
GPU1    PIX      X      NODE    SYS     0-7
GPU2    NODE    NODE     X      SYS     0-7
GPU3    SYS     SYS     SYS      X      8-15
"""
XML = """<system version="1">
  <cpu numaid="0" affinity="0000ffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:11:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80" rank="0" gdr="1"><nvlink target="0000:a0:00.0" count="12" tclass="0x068000"/></gpu>
      </pci>
      <pci busid="0000:12:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="8">
        <nic><net name="mlx5_0" dev="0" speed="200000" port="1" guid="0x1" maxconn="131072" gdr="1"/></nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="ffff0000" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:21:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="1" sm="80" rank="1" gdr="1"><nvlink target="0000:a0:00.0" count="12" tclass="0x068000"/></gpu>
    </pci>
  </cpu>
</system>
"""


def test_nvlinks_of_all_pairs_lead_through_a_switch():
    graph = labkit.fabric(H100, gpu="H100").graph
    assert graph.edges["GPU0", "nvswitch"]["bandwidth"] == pytest.approx(370e9)
    assert graph.edges["GPU0", "nvswitch"]["kind"] == "nvlink4"
    assert nx.shortest_path_length(graph, "GPU0", "NIC0") == 2
    homes = nx.get_node_attributes(graph, "kind")
    assert [homes[node] for node in nx.shortest_path(graph, "GPU2", "NIC1")] == ["gpu", "pcie", "nic"]
    assert sum(kind == "cpu" for kind in homes.values()) == 2


def test_nvlinks_of_some_pairs_are_cables():
    graph = labkit.fabric(CUBE, gpu="V100").graph
    assert graph.edges["GPU0", "GPU1"]["bandwidth"] == 50e9
    assert graph.edges["GPU0", "GPU2"]["bandwidth"] == 25e9
    assert not graph.has_edge("GPU0", "GPU3")


def test_pcie_words_become_the_fewest_switches():
    made = labkit.fabric(PCIE)
    graph = made.graph
    assert nx.shortest_path_length(graph, "GPU0", "GPU1") == 2
    assert nx.shortest_path_length(graph, "GPU0", "GPU2") == 3
    assert nx.shortest_path_length(graph, "GPU0", "GPU3") == 4
    assert "taken to be 4" in made.topology.notes[0]


def test_a_file_is_read_as_well(tmp_path):
    path = tmp_path / "topo.txt"
    path.write_text(PCIE)
    assert repr(labkit.fabric(str(path))) == repr(labkit.fabric(PCIE))


def test_nccl_s_xml():
    made = labkit.fabric(XML)
    graph = made.graph
    assert made.topology.gpus == ("GPU0", "GPU1")
    assert graph.edges["GPU1", "nvswitch"]["bandwidth"] == pytest.approx(274e9)
    assert nx.shortest_path(graph, "GPU0", "mlx5_0") == ["GPU0", "0000:10:00.0", "mlx5_0"]
    assert made.all_reduce("64MiB").hot.kind == "nvlink3"


@pytest.mark.parametrize(
    ("text", "gpu", "says"),
    [
        (H100, None, "say which card it is"),
        (H100, "L4", "say which card it is"),
        (XML.replace('sm="80"', 'sm="70"'), None, "use the output of 'nvidia-smi topo -m'"),
        ("GPU0 said\nhello there\n", None, "not a topology"),
    ],
)
def test_reports_that_do_not_say_enough(text, gpu, says):
    with pytest.raises(LabkitError, match=says):
        labkit.fabric(text, **({"gpu": gpu} if gpu else {}))
