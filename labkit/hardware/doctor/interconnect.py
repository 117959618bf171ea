"""InfiniBand and RoCE cards, and whether they may read a GPU's memory directly."""

from __future__ import annotations

from collections.abc import Iterator

from labkit.hardware.doctor.report import Finding
from labkit.hardware.doctor.system import module_loaded, names, read

CARDS = "sys/class/infiniband"
_PEER = ("nvidia_peermem", "nv_peer_mem")


def infiniband(gpu_here: bool, root: str = "/") -> Iterator[Finding]:
    """Ports with their states and rates; on GPU machines GPUDirect too. Nothing without such cards."""
    cards = names(root, CARDS)
    for card in cards:
        for port in names(root, f"{CARDS}/{card}/ports"):
            yield _port(root, card, port)
    if cards and gpu_here:
        yield _gpudirect(root)
    if cards:
        yield from _locked_memory()


def _port(root: str, card: str, port: str) -> Finding:
    folder = f"{CARDS}/{card}/ports/{port}"
    state = read(root, f"{folder}/state").strip().partition(": ")[2] or "state unknown"
    rate, kind = read(root, f"{folder}/rate").strip(), read(root, f"{folder}/link_layer").strip()
    shown = ", ".join(part for part in (f"{card} port {port}: {state}", rate, kind) if part)
    if state == "ACTIVE":
        return Finding("InfiniBand", "ok", shown)
    means = "Nothing travels over this port."
    do = f"ibstat {card} shows more: look at the cable, the switch and (on InfiniBand) the subnet manager"
    return Finding("InfiniBand", "warning", shown, means, do)


def _gpudirect(root: str) -> Finding:
    loaded = [name for name in _PEER if module_loaded(root, name)]
    if loaded:
        return Finding("GPUDirect RDMA", "ok", loaded[0])
    return Finding(
        "GPUDirect RDMA",
        "warning",
        "nvidia_peermem is not loaded",
        "Network cards read GPU memory through the host's, unless the driver and kernel offer DMA-BUF.",
        "sudo modprobe nvidia_peermem",
    )


def _locked_memory() -> Iterator[Finding]:
    """RDMA pins memory, and most systems let users pin next to none."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft == resource.RLIM_INFINITY:
        yield Finding("locked memory", "ok", "no limit")
        return
    yield Finding(
        "locked memory",
        "warning",
        f"limited to {soft // 1024} KiB",
        "RDMA has to lock the buffers it sends from: NCCL fails with 'ibv_reg_mr' or falls back to sockets.",
        "ulimit -l unlimited (in a container: --ulimit memlock=-1)",
    )
