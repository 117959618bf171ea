"""What the doctor says of a machine: files below a root of the test's own, and programs that it puts on the path."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from labkit.hardware.doctor import interconnect, limits, namespaces, nccl, nodes, runtime, smi
from labkit.hardware.doctor.report import Finding

SAMPLES = Path(__file__).parents[1] / "reports" / "samples"
DRIVER = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n"
    "GCC version:  gcc version 12.2.0\n"
)
needs_permissions = pytest.mark.skipif(os.geteuid() == 0, reason="root may open everything")


def write(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


def helpful(findings: Iterable[Finding]) -> bool:
    """Whatever is not well says what it means and what to do."""
    return all(one.state == "ok" or (one.means and one.do) for one in findings)


def one(finding: Finding | None, state: str, says: str) -> None:
    assert finding is not None
    assert finding.state == state, finding
    assert says in f"{finding.found} {finding.means} {finding.do}"
    assert helpful([finding])


def test_driver_version_from_the_kernel(tmp_path: Path) -> None:
    assert runtime.driver_version(str(tmp_path)) is None
    assert runtime.driver_version(write(tmp_path, {"proc/driver/nvidia/version": DRIVER})) == "550.54.15"


@pytest.mark.parametrize(
    ("built", "cuda", "version", "state"),
    [
        ("12.4", (12, 4), "550.54.15", "ok"),
        ("12.8", (12, 4), "550.54.15", "ok"),  # minor versions of one CUDA fit each other
        ("12.1.105", (13, 0), "580.65.06", "ok"),
        ("13.0", (12, 4), "550.54.15", "warning"),
        ("12.4", (11, 4), "470.82.01", "warning"),
        ("13.0", (12, 4), None, "warning"),
    ],
)
def test_what_was_built_against_the_driver(
    built: str, cuda: tuple[int, ...], version: str | None, state: str
) -> None:
    finding = runtime.fits("PyTorch and driver", built, cuda, version, "a PyTorch")
    assert finding.state == state
    assert helpful([finding])
    if state == "warning":
        assert f"built for CUDA {cuda[0]}" in finding.do


def test_device_nodes(tmp_path: Path) -> None:
    assert nodes.device_nodes(str(tmp_path)) is None
    root = write(tmp_path, {"dev/nvidia0": "", "dev/nvidiactl": ""})
    one(nodes.device_nodes(root), "warning", "nvidia-modprobe")
    write(tmp_path, {"dev/nvidia-uvm": "", "dev/nvidia1": ""})
    one(nodes.device_nodes(root), "ok", "nvidia0, nvidia1")
    one(nodes.device_nodes(write(tmp_path / "wsl", {"dev/dxg": ""})), "ok", "WSL")


@needs_permissions
def test_device_nodes_of_somebody_else(tmp_path: Path) -> None:
    root = write(tmp_path, {f"dev/{name}": "" for name in ("nvidia0", "nvidiactl", "nvidia-uvm")})
    (tmp_path / "dev" / "nvidia0").chmod(0)
    one(nodes.device_nodes(root), "warning", "usermod")


def test_a_closed_node_is_told_from_an_open_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path, {f"dev/{name}": "" for name in ("nvidia0", "nvidiactl", "nvidia-uvm")})
    monkeypatch.setattr(nodes, "_open", lambda path: not path.endswith("nvidia0"))
    one(nodes.device_nodes(root), "warning", "no permission for nvidia0")


@pytest.mark.parametrize(
    ("value", "state", "says"),
    [
        (None, "ok", "not set"),
        ("", "warning", "hides every GPU"),
        ("-1", "warning", "unset CUDA_VISIBLE_DEVICES"),
        ("1", "ok", "1 GPU"),
        ("1,0", "ok", "2 GPUs"),
        ("1,7", "warning", "1 of 2 count"),
        ("7", "warning", "0 of 1 count"),
    ],
)
def test_the_variable_that_hides_gpus(
    with_driver: Callable[..., object], value: str | None, state: str, says: str
) -> None:
    variables = {"STUB_CUDA_DEVICES": "NVIDIA H100 80GB HBM3;NVIDIA H100 80GB HBM3"}
    if value is not None:
        variables["CUDA_VISIBLE_DEVICES"] = value
    program = "from labkit.hardware.doctor.nodes import visible; f = visible(); print(f.state, f.found, f.means, f.do)"
    done = with_driver("-c", program, **variables)
    assert done.stdout.split()[0] == state, done.stdout + done.stderr  # type: ignore[attr-defined]
    assert says in done.stdout  # type: ignore[attr-defined]


def printing(**outputs: str) -> Callable[..., str | None]:
    """Stands for nvidia-smi: what it prints for ``-q`` (``query``) and for ``topo -m`` (``topo``)."""

    def run(*command: str) -> str | None:
        return outputs.get("topo" if "topo" in command else "query")

    return run


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def test_gpus_without_the_drivers_tool_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(smi.gpus(False, printing())) == []
    (finding,) = smi.gpus(True, printing())
    one(finding, "warning", "NVIDIA_DRIVER_CAPABILITIES")


def test_what_the_drivers_tool_says_is_diagnosed() -> None:
    findings = list(
        smi.gpus(True, printing(query=sample("smi_q_570.txt"), topo=sample("topo_2024_h100.txt")))
    )
    by_name = {finding.name: finding for finding in findings}
    one(by_name["nvidia-smi"], "ok", "nvidia-smi -q")
    assert "NV18" in by_name["topology"].found
    assert helpful(findings)


def test_gpus_on_two_sockets_and_a_broken_driver() -> None:
    findings = list(
        smi.gpus(True, printing(query=sample("smi_q_570.txt"), topo=sample("topo_2022_pcie.txt")))
    )
    topology = next(finding for finding in findings if finding.name == "topology")
    one(topology, "warning", "sockets")
    broken = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    findings = list(smi.gpus(True, printing(query=broken)))
    one(findings[0], "warning", "No driver")
    (silent,) = smi.gpus(True, printing(query="Segmentation fault"))
    one(silent, "warning", "Reload the driver")


def test_slices_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    text = re.sub(r"(MIG Mode\s+Current\s+: )Disabled", r"\1Enabled", sample("smi_q_570.txt"))
    enabled = [f for f in smi.gpus(True, printing(query=text)) if f.name == "MIG"]
    one(enabled[0], "warning", "nvidia-smi -L lists the slices")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-1234")
    (named,) = [f for f in smi.gpus(True, printing(query=text)) if f.name == "MIG"]
    assert named.state == "ok"


def test_a_real_program_on_the_path_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat '{SAMPLES / 'smi_q_570.txt'}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert next(iter(smi.gpus(True))).state == "ok"


PEERS = "from labkit.hardware.doctor.smi import _peers\nfor f in _peers(): print(f.state, f.found, f.do)"


@pytest.mark.parametrize(("peers", "state"), [("1", "ok"), ("0", "warning")])
def test_peer_access_is_asked_of_the_driver(
    with_driver: Callable[..., object], peers: str, state: str
) -> None:
    done = with_driver("-c", PEERS, STUB_CUDA_DEVICES="A;B;C", STUB_CUDA_PEERS=peers)
    assert done.stdout.split()[0] == state, done.stdout + done.stderr  # type: ignore[attr-defined]
    assert ("6 of 6 directed pairs" in done.stdout) == (state == "warning")  # type: ignore[attr-defined]


def test_variables_of_nccl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("NCCL_")]:
        monkeypatch.delenv(name)
    root = write(tmp_path, {"sys/class/net/eth0/mtu": "1500", "sys/class/net/lo/mtu": "1"})
    (none,) = nccl.environment(root)
    assert none.state == "ok"
    cases = {
        "NCCL_P2P_DISABLE": ("1", "warning", "the host's memory"),
        "NCCL_SHM_DISABLE": ("0", "ok", ""),
        "NCCL_IB_DISABLE": ("1", "warning", "TCP sockets"),
        "NCCL_DEBUG": ("info", "warning", "hundreds of lines"),
        "NCCL_ALGO": ("Ring", "ok", ""),
    }
    for name, (value, _, _) in cases.items():
        monkeypatch.setenv(name, value)
    found = {finding.name: finding for finding in nccl.environment(root)}
    for name, (_, state, says) in cases.items():
        one(found[name], state, says)


@pytest.mark.parametrize(
    ("value", "state"),
    [
        ("eth", "ok"),
        ("=eth0", "ok"),
        ("=eth", "warning"),
        ("ib0", "warning"),
        ("^lo", "ok"),
        ("ib,eth0", "ok"),
    ],
)
def test_the_interface_that_nccl_is_told_to_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str, state: str
) -> None:
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", value)
    root = write(tmp_path, {"sys/class/net/eth0/mtu": "1500", "sys/class/net/lo/mtu": "1"})
    found = next(f for f in nccl.environment(root) if f.name == "NCCL_SOCKET_IFNAME")
    assert found.state == state
    assert helpful([found])


def test_shared_memory_of_a_container(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert limits.shared_memory(str(tmp_path / "none")) is None
    sizes = {"small": (64 * limits.MIB, 64 * limits.MIB), "full": (limits.GIB, limits.MIB)}
    sizes["enough"] = (8 * limits.GIB, 8 * limits.GIB)
    monkeypatch.setattr(limits, "_size", sizes.get)
    one(limits.shared_memory("small"), "warning", "--shm-size=8g")
    one(limits.shared_memory("full"), "warning", "1 MiB free")
    one(limits.shared_memory("enough"), "ok", "8 GiB")


def test_limits_of_a_container(tmp_path: Path) -> None:
    meminfo = {"proc/meminfo": "MemTotal:       65536000 kB\n", "proc/self/cgroup": "0::/\n"}
    root = write(tmp_path, meminfo)
    one(limits.container(root), "ok", "no container")
    write(tmp_path, {".dockerenv": "", "sys/fs/cgroup/memory.max": "1073741824\n"})
    one(limits.container(root), "warning", "in a container")
    write(tmp_path, {"sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"})
    one(limits.container(root), "warning", "0.5 of")


def test_limits_of_a_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUPYTERHUB_API_URL", raising=False)
    monkeypatch.delenv("JUPYTERHUB_USER", raising=False)
    assert list(limits.hub()) == []
    monkeypatch.setenv("JUPYTERHUB_USER", "learner")
    monkeypatch.setenv("MEM_LIMIT", str(limits.GIB))
    one(next(iter(limits.hub())), "warning", "mem_limit")
    monkeypatch.setenv("MEM_LIMIT", str(8 * limits.GIB))
    one(next(iter(limits.hub())), "ok", "8 GiB")


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_size", lambda _: (limits.GIB, 1000))
    one(limits.disk(), "warning", "pip cache purge")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of locked memory")
def test_ports_of_infiniband(tmp_path: Path) -> None:
    assert list(interconnect.infiniband(True, str(tmp_path))) == []
    port = "sys/class/infiniband/mlx5_0/ports/1"
    root = write(
        tmp_path,
        {
            f"{port}/state": "4: ACTIVE\n",
            f"{port}/rate": "400 Gb/sec (4X NDR)\n",
            f"{port}/link_layer": "InfiniBand\n",
        },
    )
    found = {finding.name: finding for finding in interconnect.infiniband(True, root)}
    one(found["InfiniBand"], "ok", "ACTIVE, 400 Gb/sec (4X NDR)")
    one(found["GPUDirect RDMA"], "warning", "modprobe nvidia_peermem")
    assert helpful(found.values())
    write(tmp_path, {"proc/modules": "nvidia_peermem 16384 0 - Live 0x0\n", f"{port}/state": "1: DOWN\n"})
    found = {finding.name: finding for finding in interconnect.infiniband(True, root)}
    one(found["InfiniBand"], "warning", "ibstat mlx5_0")
    one(found["GPUDirect RDMA"], "ok", "nvidia_peermem")
    assert "GPUDirect RDMA" not in {finding.name for finding in interconnect.infiniband(False, root)}


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
def test_tools_for_virtual_clusters(tmp_path: Path) -> None:
    one(namespaces.clusters(str(tmp_path)), "missing", "apt-get install iproute2")
    for name, code in (("ip", 0), ("tc", 0), ("unshare", 1)):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\nexit {code}\n")
        program.chmod(0o755)
    one(namespaces.clusters(str(tmp_path)), "missing", "userns")
    (tmp_path / "unshare").write_text("#!/bin/sh\nexit 0\n")
    one(namespaces.clusters(str(tmp_path)), "ok", "ip and tc")


def test_the_whole_report_tells_what_to_do_wherever_something_is_amiss(
    with_driver: Callable[..., object],
) -> None:
    import json

    done = with_driver("-m", "labkit", "doctor", "--json", STUB_CUDA_DEVICES="NVIDIA H100 80GB HBM3")
    findings = json.loads(done.stdout)["findings"]  # type: ignore[attr-defined]
    assert len(findings) > 20
    assert all(f["state"] == "ok" or (f["means"] and f["do"]) for f in findings), findings
    names = {finding["name"] for finding in findings}
    assert {"NVIDIA driver", "nvidia-smi", "shared memory", "limits", "virtual clusters", "disk"} <= names
