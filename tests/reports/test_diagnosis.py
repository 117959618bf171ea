"""Every fault that the diagnosis knows, each from a report that shows it; and healthy reports, which show none."""

from __future__ import annotations

import pytest

from labkit.hardware.diagnosis import diagnose
from labkit.hardware.diagnosis.bandwidth import limit
from labkit.hardware.diagnosis.case import Case
from labkit.hardware.reports import read

HALF = "     time   algbw   busbw #wrong"
HEAD = f"#       size         count      type   redop    root{HALF}{HALF}"
TAIL = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : {}\n"


def sizes(rates, name="NVIDIA H100 80GB HBM3", ranks=8, average="10.0", wrong=0, host="h"):
    """A run of nccl-tests: size in bytes -> bus bandwidth."""
    lines = ["# Collective test starting: all_reduce_perf", "# nThread 1 nGpus 8 minBytes 8 maxBytes 8"]
    lines += [
        f"#  Rank {i:2d} Group  0 Pid {i + 9} on {host} device {i} [0x{i}0] {name}" for i in range(ranks)
    ]
    lines.append(HEAD)
    for size, rate in rates.items():
        cell = f"{size / 1e3:.2f} {rate / 1.75:.2f} {rate:.2f} {wrong}"
        lines.append(f"{size} {size // 4} float sum -1 {cell} {cell}")
    return "\n".join(lines) + "\n" + TAIL.format(average)


def found(text, severity, *words):
    """The one finding of that severity whose message has all the words; its evidence is in the text."""
    reading = diagnose(text)
    fitting = [
        finding
        for finding in reading.findings
        if finding.severity == severity and all(word in finding.message for word in words)
    ]
    assert len(fitting) == 1, reading
    assert fitting[0].evidence
    assert fitting[0].evidence in text
    return fitting[0]


# stack


def test_driver_older_than_the_runtime_needs(sample):
    finding = found(sample("collect_env_2.9.txt"), "error", "535.183.01 is older than 580.65.06")
    assert finding.evidence == "Nvidia driver version: 535.183.01"
    assert "CUDA 12" in finding.message
    found(sample("error_driver.txt"), "error", "up to 11.4")


def test_driver_of_another_report_is_used_when_collect_env_has_none(sample):
    text = sample("collect_env_2.9.txt").replace(
        "Nvidia driver version: 535.183.01", "Nvidia driver version: Could not collect"
    )
    found(text + sample("smi_table_384.txt"), "error", "384.111 is older than 580.65.06")


def test_cpu_only_torch_on_a_gpu_machine(sample):
    finding = found(sample("collect_env_2.4_cpu.txt"), "error", "built for the CPU only", "A100")
    assert finding.evidence == "CUDA used to build PyTorch: None"
    found("AssertionError: Torch not compiled with CUDA enabled\n", "error", "built for the CPU only")


def test_cpu_only_torch_without_sign_of_a_gpu_says_what_to_run(sample):
    text = (
        sample("collect_env_2.4_cpu.txt")
        .replace("550.54.15", "Could not collect")
        .replace("GPU 0: NVIDIA A100-SXM4-40GB", "N/A")
    )
    found(text, "note", "nvidia-smi")


def test_gpu_too_old_or_too_new_for_the_build(sample):
    found(sample("collect_env_2.9.txt"), "error", "V100", "too old for this build", "13.0 dropped it")
    text = sample("collect_env_vllm.txt").replace("12.8", "12.4").replace("H200", "B200")
    found(text, "error", "B200", "too new for this build", "12.8")
    finding = found(sample("error_arch.txt"), "error", "RTX 5090 (sm_120) is too new", "sm_90")
    assert "sm_120 is not compatible" in finding.evidence
    found(sample("error_arch_old.txt"), "error", "Tesla K40c", "too old")


def test_unknown_architecture_says_what_to_run():
    text = "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
    found(text, "error", "get_arch_list")


# one machine's links


def test_nvlink_missing_where_the_card_has_it(sample):
    names = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n"
    matrix = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPHB\t0-3\nGPU1\tPHB\t X \t0-3\n"
    found(names + matrix, "error", "18 NVLinks", "shows none")
    found(matrix, "note", "nvidia-smi -L")
    pcie = names.replace("H100 80GB HBM3", "L40S") + matrix
    assert diagnose(pcie).findings == ()


def test_links_down(sample):
    found(sample("nvlink_a100.txt"), "warning", "GPU 1", "7 are inactive", "11 of 12")
    fewer = sample("topo_2024_h100.txt").replace("NV18", "NV16") + sample("smi_table_550.txt")
    found(fewer, "warning", "16 NVLinks of the 18")
    none = sample("nvlink_v100.txt").replace("25.781 GB/s", "<inactive>")
    assert {finding.severity for finding in diagnose(none).findings} == {"error"}


def test_gpus_on_different_sockets(sample):
    found(sample("topo_2022_pcie.txt"), "warning", "GPU0 and GPU4", "different sockets", "16 pairs")


def test_nic_far_from_its_gpus(sample):
    found(sample("topo_2018_v100.txt"), "warning", "GPU0, GPU1 have no NIC on their own socket")
    found(sample("nccl_topo.xml"), "warning", "0000:83:00.0 has no NIC on its own socket")


def test_peer_access_denied(sample):
    text = (
        sample("p2p_a100.txt")
        .replace("Device=0 CAN Access", "Device=0 CANNOT Access")
        .replace("0\t     1     1", "0\t     1     0")
    )
    found(text, "error", "GPU 0 cannot access GPU 1")
    geforce = text.replace("NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 4090")
    found(geforce, "note", "how these cards are sold")


def test_peers_no_faster_than_the_slot(sample):
    found(sample("p2p_a100.txt").replace("269.40", "12.40"), "error", "12.4 GB/s", "although the A100")


def test_one_slow_gpu(sample):
    text = sample("p2p_a100.txt")
    lines = text.split("\n")
    start = next(i for i, line in enumerate(lines) if "(P2P Writes) Matrix (GB/s)" in line)
    lines[start + 4] = "     2 61.40 62.40 1541.20 63.40 "
    for i in (2, 3, 5):
        cells = lines[start + i].split()
        cells[3] = "60.00"
        lines[start + i] = "     " + " ".join(cells)
    found("\n".join(lines), "warning", "GPU 2 is slower than the rest")
    found(sample("smi_table_550.txt"), "warning", "GPU 2", "231 W")


def test_peer_access_that_slows_down(sample):
    text = sample("p2p_a100.txt").replace("NVIDIA A100-SXM4-80GB", "NVIDIA L40S")
    lines = text.split("\n")
    start = next(i for i, line in enumerate(lines) if "(P2P Writes) Matrix (GB/s)" in line)
    for i in range(4):
        lines[start + 2 + i] = f"     {i} " + " ".join("664.00" if i == j else "1.90" for j in range(4))
    found("\n".join(lines), "warning", "Peer access makes copies slower", "ACS")


# NCCL


def test_sockets_and_shared_memory(sample):
    finding = found(sample("nccl_log_2.4.txt"), "warning", "TCP sockets")
    assert "No device found" in finding.evidence
    found(sample("nccl_log_2.4.txt"), "warning", "shared memory", "topo -p2p")
    finding = found(sample("nccl_log_errors.txt"), "warning", "NCCL_P2P_DISABLE=1 is set")
    assert "set by environment" in finding.evidence


def test_rdma_without_gpudirect(sample):
    found(sample("nccl_log_2.27.txt").replace("/GDRDMA", ""), "warning", "not GPUDirect")


@pytest.mark.parametrize(
    ("words", "evidence"),
    [
        (("Two ranks use one GPU",), "Duplicate GPU detected"),
        (("/dev/shm", "--shm-size"), "failed to extend /dev/shm"),
        (("Retries were exceeded on the wire",), "status=12"),
    ],
)
def test_warnings_of_nccl(sample, words, evidence):
    assert evidence in found(sample("nccl_log_errors.txt"), "error", *words).evidence


def test_slow_ranks(sample):
    found(sample("nccl_log_2.27.txt"), "warning", "Rank 2 was slow", "29 s")
    found(sample("error_timeout.txt"), "error", "Rank 2 did not time out")


def test_a_rank_that_never_shows(sample):
    lines = [
        line
        for line in sample("nccl_log_2.27.txt").split("\n")
        if "COMPLETE" not in line and "timings" not in line
    ]
    found("\n".join(line for line in lines if "rank 3 " not in line), "warning", "Rank 3 of 4 never shows")


# nccl-tests


def test_average_of_zero_because_of_one_rank():
    found(sizes({1024: 0, 2**20: 0}, ranks=1, average="0"), "warning", "one rank only", "-g 8")
    many = sizes({1024: 0}, ranks=1, average="0").replace(
        "#  Rank  0", "#  Rank  0 Group  0 Pid 3 on h device 0 [0x1] H\n#  Rank  0"
    )
    found(many, "warning", "built without MPI")


def test_wrong_results():
    finding = found(sizes({2**20: 70, 2**30: 390}, wrong=3), "error", "wrong results", "1048576 bytes")
    assert finding.evidence.startswith("1048576")


def test_collapse_at_a_size():
    finding = found(
        sizes({2**20: 70, 2**22: 180, 2**24: 60, 2**26: 250, 2**30: 390}),
        "warning",
        "collapses at 16777216 bytes",
    )
    assert finding.evidence.startswith("16777216")


def test_far_under_the_link():
    finding = found(
        sizes({2**20: 10, 2**24: 20, 2**30: 45}), "warning", "45 GB/s, 10% of the 450", "catalogue"
    )
    assert finding.evidence.startswith("1073741824")
    found(sizes({2**24: 1.1, 2**30: 1.2}, name="NVIDIA L40S"), "warning", "PCIe 4 x16")


def test_evidence_that_does_not_suffice():
    found(sizes({1024: 0.5, 2**20: 70}), "note", "too small", "-e 1G")
    two = sizes({2**24: 20, 2**30: 45})
    two = two.replace("on h device 4", "on g device 4")
    found(two, "note", "NCCL_TOPO_DUMP_FILE")


def test_network_limit_comes_from_the_topology_file(sample):
    text = sizes({2**24: 2, 2**30: 3}).replace("on h device 4", "on g device 4") + sample("nccl_topo.xml")
    found(text, "warning", "12% of the 25 GB/s", "network port")


def test_limit_is_the_catalogue_s(sample):
    reports = read(sample("nccl_all_reduce_h100.txt"))
    assert limit(reports[0], Case(reports)).GBps == 450


# health


def test_power_brake_and_narrow_slot(sample):
    assert (
        found(sample("smi_q_390.txt"), "error", "power brake").evidence == "HW Power Brake Slowdown : Active"
    )
    found(sample("smi_q_390.txt"), "warning", "4 PCIe lanes of 16")
    found(sample("smi_q_xml_535.xml"), "error", "heat")


def test_row_remap_pending(sample):
    found(sample("smi_q_570.txt"), "warning", "row remap pending")
    failed = sample("smi_q_570.txt").replace(
        "Failure Occurred                     : No", "Failure Occurred                     : Yes"
    )
    found(failed, "error", "no spare rows")


def test_gpu_that_fell_off_the_bus(sample):
    found(sample("smi_table_610.txt"), "error", "GPU 1", "fallen off the bus")
    texts = [finding.message for finding in diagnose(sample("error_lost.txt")).findings]
    assert all("fallen off the bus" in text for text in texts)
    assert texts


def test_memory_held_by_another_process(sample):
    found(sample("error_oom_old.txt"), "error", "something other than this program")
    finding = found(sample("error_oom_new.txt"), "error", "process 51123 has 40.11 GiB")
    assert "60417" not in finding.message  # its own, by the figures
    found(sample("error_oom_alone.txt"), "error", "batch smaller")
    table = sample("smi_table_384.txt")
    hidden = table.replace(
        "|    0     21874      C   python                                     10437MiB |",
        "|  No running processes found                                                 |",
    )
    found(hidden, "warning", "does not show", "fuser")
    found(table.replace("37%", " 0%"), "note", "21874")


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: CUDA error: out of memory",
        "torch.cuda.OutOfMemoryError: CUDA out of memory.",
        "numba.cuda.cudadrv.driver.CudaAPIError: [2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY",
        "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,000,000,000 bytes (allocated so far: 0 bytes).",
        "jaxlib.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4294967296 bytes.",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "ResourceExhaustedError: OOM when allocating tensor with shape[8192,8192]",
    ],
)
def test_wordings_of_out_of_memory(line):
    found(line + "\n", "error", "Out of memory")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version",
            "older than this build",
        ),
        ("RuntimeError: Found no NVIDIA driver on your system.", "No driver"),
        ("Failed to initialize NVML: Driver/library version mismatch", "old kernel module"),
        (
            "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.",
            "newer CUDA",
        ),
        ("RuntimeError: CUDA error: device-side assert triggered", "index out of range"),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "compute-sanitizer"),
        ("RuntimeError: CUDA error: invalid device ordinal", "CUDA_VISIBLE_DEVICES"),
        (
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
            "fabric",
        ),
        (
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1333, unhandled system error",
            "NCCL_DEBUG",
        ),
        (
            "RuntimeError: DataLoader worker (pid 9) is killed by signal: Bus error. out of shared memory",
            "--shm-size",
        ),
        (
            "ncclRemoteError: NET/IB: Got completion from peer 10.0.0.4<5> with status=IBV_WC_RETRY_EXC_ERR(12)",
            "on the wire",
        ),
        ("mlx5_0:1 Transport retry count exceeded: transport retry counter exceeded", "on the wire"),
        ("nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4", "12.4"),
        ("[  12.345678] NVRM: Xid (PCI:0000:3b:00): 31, pid=1", "Xid 31"),
    ],
)
def test_errors_of_programs_and_drivers(line, words):
    reading = diagnose(line + "\n")
    assert [report.kind for report in reading.reports] == ["python_error"]
    assert any(words in finding.message for finding in reading.findings), reading


def test_ordinary_errors_are_not_ours():
    assert read("ValueError: invalid literal for int() with base 10: 'x'\nKeyError: 'loss'\n") == ()


@pytest.mark.parametrize(
    "file",
    [
        "topo_2024_h100.txt",
        "topo_2019_dgx2.txt",
        "topo_1gpu.txt",
        "nvlink_v100.txt",
        "p2p_a100.txt",
        "collect_env_vllm.txt",
        "nccl_all_reduce_h100.txt",
        "nccl_old_v100.txt",
        "smi_table_470_mig.txt",
        "smi_q_610_head.txt",
    ],
)
def test_healthy_machines_have_no_findings(sample, file):
    assert diagnose(sample(file)).findings == ()


def test_every_sample_is_explained_from_its_own_lines(sample, sample_name):
    text = sample(sample_name)
    reading = diagnose(text)
    assert reading.reports
    for finding in reading.findings:
        assert finding.evidence in text
        assert finding.message.endswith((".", ")"))
