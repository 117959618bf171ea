"""NVLink states, collect_env, the topology NCCL detects, and the test of peer access."""

from __future__ import annotations

from labkit.hardware.reports import read


def only(text):
    (report,) = read(text)
    return report


def test_nvlink_status(sample):
    report = only(sample("nvlink_a100.txt"))
    assert [gpu.active for gpu in report.gpus] == [12, 11]
    assert report.gpus[1].links[7].GBps is None
    assert report.gpus[0].links[0].GBps == 25
    old = only(sample("nvlink_v100.txt"))
    assert old.gpus[3].links[5].GBps == 25.781
    assert old.gpus[3].name == "Tesla V100-SXM2-32GB"


def test_nvlink_status_cut(sample):
    text = sample("nvlink_a100.txt")
    assert only("\n".join(text.split("\n")[:20])).cut


def test_a_list_of_gpus_alone_is_no_report():
    assert (
        read("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n") == ()
    )


def test_collect_env_of_2018(sample):
    report = only(sample("collect_env_1.0.txt"))
    assert (report.pytorch_version, report.cuda_built, report.driver_version) == (
        "1.0.0",
        "10.0.130",
        "390.87",
    )
    assert report.cuda_available is False
    assert report.debug_build is False
    assert report.gpus == ("GeForce GTX 1080 Ti",) * 2
    assert report.packages["torch"] == "1.0.0"
    assert report.rocm_built is None  # no such line then


def test_collect_env_of_a_cpu_build(sample):
    report = only(sample("collect_env_2.4_cpu.txt"))
    assert (report.cuda_built, report.cuda_built_printed) == (None, "None")
    assert report.cuda_runtime_version is None  # "Could not collect"
    assert report.gpus == ("NVIDIA A100-SXM4-40GB",)
    assert report.cpu["model"] == "AMD EPYC 7543 32-Core Processor"
    assert report.cpu["sockets"] == "2"
    assert report.packages == {"numpy": "2.1.0", "torch": "2.4.1+cpu"}
    assert not report.cut


def test_collect_env_of_2025_and_vllm(sample):
    new = only(sample("collect_env_2.9.txt"))
    assert (new.cuda_built, new.cuda_runtime_version, new.xpu_available) == ("13.0", "12.4.131", False)
    copy = only(sample("collect_env_vllm.txt"))
    assert (copy.pytorch_version, copy.cuda_available, copy.driver_version) == (
        "2.8.0+cu128",
        True,
        "570.133.20",
    )
    assert copy.gpus == ("NVIDIA H200",)


def test_collect_env_cut(sample):
    text = sample("collect_env_2.9.txt")
    assert only(text[: text.index("cuDNN")]).cut


def test_nccl_topology(sample):
    report = only(sample("nccl_topo.xml"))
    near, far = report.gpus
    (nic,) = report.nics
    assert (near.sm, near.nvlinks, near.link_width, near.numa) == (80, 12, 16, "0")
    assert far.link_width == 8
    assert nic.speed_Gbps == 200
    assert report.distance(near, nic) == "PIX"
    assert report.distance(far, nic) == "SYS"
    assert not report.cut


def test_nccl_topology_cut(sample):
    text = sample("nccl_topo.xml")
    report = only(text[: text.index('<cpu numaid="1"')])
    assert report.cut
    assert len(report.gpus) == 1


def test_p2p_test(sample):
    report = only(sample("p2p_a100.txt"))
    assert [gpu.bus for gpu in report.gpus] == ["7", "f", "47", "4e"]
    assert all(all(row) for row in report.peer_access)
    assert report.bandwidth()[0][1] == 269.4
    assert report.bandwidth("bidirectional")[3][0] == 517.2
    assert report.bandwidth(enabled=False)[0][0] == 1540.1
    assert report.matrices["latency_enabled_writes_gpu"][0][0] == 2.31
    assert not report.cut


def test_p2p_test_cut(sample):
    text = sample("p2p_a100.txt")
    report = only(text[: text.index("Bidirectional P2P=Enabled") + 120])
    assert report.cut
    assert report.bandwidth()[3][0] == 273.4
