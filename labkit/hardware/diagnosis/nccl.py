"""What NCCL's log tells: which ways it took, what it warned of, which rank was late."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

from labkit.hardware.diagnosis.case import Case
from labkit.hardware.diagnosis.errors import DUPLICATE, SHARED_MEMORY, WIRE
from labkit.hardware.diagnosis.finding import Finding
from labkit.hardware.reports.nccl_log import NcclLog, Warned

# pattern of a warning -> severity, what it means and what to do
_WARNINGS: tuple[tuple[str, str, str], ...] = (
    ("Duplicate GPU detected", "error", DUPLICATE),
    (
        r"creating shared memory segment|failed to extend /dev/shm|posix_fallocate failed|/dev/shm.*No space left"
        r"|attaching to shared memory segment",
        "error",
        SHARED_MEMORY,
    ),
    (
        r"status=12|vendor err 129|retry exceeded|RETRY_EXC|retry counter exceeded",
        "error",
        WIRE,
    ),
    (
        r"Got completion .*status=\d+|Got async event|ibv_\w+ failed",
        "error",
        "The InfiniBand or RoCE card reports an error. Run 'ibstat' and 'ib_write_bw' between the two nodes next.",
    ),
    (
        r"fallen off the bus|GPU is lost|Xid",
        "error",
        "A GPU has fallen off the bus: look for 'Xid' in dmesg and restart the node.",
    ),
    (
        r"Cuda failure.*out of memory",
        "error",
        "A GPU had no memory left for NCCL's buffers: see who holds it with 'nvidia-smi'.",
    ),
    (
        r"driver version is insufficient",
        "error",
        "The driver is older than the CUDA runtime of this NCCL needs: install a newer driver.",
    ),
    (
        r"[Nn]o socket interface found",
        "error",
        "NCCL found no network interface: set NCCL_SOCKET_IFNAME to one that 'ip addr' shows as up.",
    ),
    (
        r"[Cc]onnect(?:ion)? (?:to|refused|closed|reset|timed out)|Connection (?:refused|closed|reset|timed "
        r"out)|No route to host"
        r"|Call to (?:connect|recv|bind)|socketProgress|Net : ",
        "error",
        "Ranks lost or never had a connection. Usually another rank died first: look for the earliest error "
        "of any rank. "
        "At the start, check firewall and NCCL_SOCKET_IFNAME (the interface that all nodes share).",
    ),
    (
        r"Cuda failure",
        "error",
        "A CUDA call failed inside NCCL: the error that another rank printed before it is the cause.",
    ),
    (
        r"[Mm]ismatch",
        "error",
        "Ranks do not agree (versions, sizes or the collective called): every rank must run the same program.",
    ),
)


def nccl(case: Case) -> Iterator[Finding]:
    for log in case.all(NcclLog):
        yield from _warnings(log)
        yield from _sockets(log)
        yield from _shared_memory(log)
        yield from _direct(log)
        yield from _ranks(log)
        yield from _late(log)


def _warnings(log: NcclLog) -> Iterator[Finding]:
    said: set[str] = set()
    for warning in log.warnings:
        severity, text = _meaning(warning)
        if text not in said and len(said) < 12:
            said.add(text)
            yield Finding(severity, text, log.quote(f"warn:{warning.message}"))


def _meaning(warning: Warned) -> tuple[str, str]:
    for pattern, severity, text in _WARNINGS:
        if re.search(pattern, warning.message):
            return severity, text
    return "note", f"NCCL warns (on {warning.host or 'a host not named'}): {warning.message}"


def _sockets(log: NcclLog) -> Iterator[Finding]:
    apart = (log.nodes or 1) > 1 or len(log.hosts) > 1
    if not log.transports.get("NET/Socket") and not (log.network == "Socket" and apart):
        return
    disabled = log.environment.get("NCCL_IB_DISABLE") == "1"
    why = (
        "NCCL_IB_DISABLE=1 is set: unset it"
        if disabled
        else "run 'ibstat' next, and in a container pass /dev/infiniband"
    )
    keys = ("env:NCCL_IB_DISABLE",) if disabled else ("no device",)
    yield Finding(
        "warning",
        "NCCL talks between nodes over TCP sockets, which copy through the CPU and reach a fraction of what "
        "RDMA does. If the "
        f"nodes have InfiniBand or RoCE, {why}.",
        log.quote(*keys, "via:NET/Socket", "network"),
    )


def _shared_memory(log: NcclLog) -> Iterator[Finding]:
    if not log.transports.get("SHM"):
        return
    disabled = log.environment.get("NCCL_P2P_DISABLE") == "1"
    why = (
        "NCCL_P2P_DISABLE=1 is set: unset it"
        if disabled
        else "run 'nvidia-smi topo -m' and 'nvidia-smi topo -p2p r' next"
    )
    yield Finding(
        "warning",
        "NCCL sends between GPUs of one node through the host's shared memory, because they cannot reach "
        "each other directly, or "
        f"not well. If the cards have NVLink or share a PCIe switch, {why}.",
        log.quote(*(("env:NCCL_P2P_DISABLE",) if disabled else ()), "via:SHM"),
    )


def _direct(log: NcclLog) -> Iterator[Finding]:
    plain = [name for name in log.transports if name.startswith("NET/IB") and not name.endswith("GDRDMA")]
    if plain and not any(name.endswith("GDRDMA") for name in log.transports):
        yield Finding(
            "warning",
            "NCCL uses RDMA but not GPUDirect: data stops in the host's memory on its way. Load "
            "nvidia-peermem ('sudo modprobe "
            "nvidia-peermem') or use a kernel with DMA-BUF, and check that each NIC is near its GPU "
            "('nvidia-smi topo -m').",
            log.quote("no gdr", f"via:{plain[0]}"),
        )


def _ranks(log: NcclLog) -> Iterator[Finding]:
    """Ranks that began and did not come through, and ranks that never showed."""
    stuck = sorted(set(log.started) - set(log.complete))
    if log.complete and stuck:
        text = (
            f"Rank {_some(stuck)} began to initialise and never finished, although others did: look at its own "
            "log first."
        )
        yield Finding("warning", text, log.quote(f"rank{stuck[0]}"))
    if log.complete or not log.nranks or len(log.started) < 2 or log.nranks > 100_000:
        return
    missing = sorted(set(range(log.nranks)) - set(log.started))
    if missing:
        text = (
            f"Rank {_some(missing)} of {log.nranks} never shows, and no rank finishes its initialisation: "
            "they wait for it. See "
            "whether its process runs, and whether its host reaches the others."
        )
        yield Finding("warning", text, log.quote(f"rank{log.started[0]}"))


def _late(log: NcclLog) -> Iterator[Finding]:
    """Initialisation ends for all at once, so that who took the shortest came last."""
    if len(log.init_seconds) < 3:
        return
    usual = median(log.init_seconds.values())
    rank, least = min(log.init_seconds.items(), key=lambda entry: entry[1])
    if usual - least > 5 and least < 0.5 * usual:
        text = (
            f"Rank {rank} was slow: it came about {usual - least:.0f} s after the others, which waited for "
            "it. See what it did "
            "before (reading data, compiling, a slow file system)."
        )
        yield Finding("warning", text, log.quote(f"timing{rank}"))


def _some(ranks: list[int]) -> str:
    shown = ", ".join(map(str, ranks[:5]))
    return f"{shown} and {len(ranks) - 5} more" if len(ranks) > 5 else shown
