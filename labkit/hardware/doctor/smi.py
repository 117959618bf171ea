"""What the driver's own tool says of the GPUs, read and diagnosed as a pasted report would be."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from labkit.hardware.devices import answer
from labkit.hardware.doctor.report import Finding
from labkit.hardware.doctor.system import printed

Run = Callable[..., str | None]
_STATES = {"error": "warning", "warning": "warning", "note": "ok"}


def gpus(gpu_here: bool, run: Run = printed) -> Iterator[Finding]:
    """NVML, slices, topology, and everything that `diagnosis` finds in ``nvidia-smi -q`` and ``topo -m``."""
    query = run("nvidia-smi", "-q")
    if query is None:
        if gpu_here:
            yield Finding(
                "nvidia-smi",
                "warning",
                "does not run",
                "The GPUs can be used, but neither their health nor their links can be looked at.",
                "Install the driver's utilities (nvidia-utils), or start the container with "
                "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
            )
        return
    yield from _diagnosed(query + "\n" + (run("nvidia-smi", "topo", "-m") or ""))
    yield from _peers()


def _diagnosed(text: str) -> Iterator[Finding]:
    from labkit.hardware.diagnosis import diagnose
    from labkit.hardware.reports.smi_q import SmiQuery
    from labkit.hardware.reports.topo import Topology

    reading = diagnose(text)
    for report in reading.reports:
        if isinstance(report, SmiQuery):
            yield Finding("nvidia-smi", "ok", report.headline())
            yield from _slices(report)
        elif isinstance(report, Topology):
            yield _topology(report)
    if not reading.recognised:
        first = text.strip().splitlines()[:1]
        yield Finding(
            "nvidia-smi",
            "warning",
            first[0] if first else "prints nothing",
            "The driver's tool cannot reach the driver, so nothing else will.",
            "Reload the driver (sudo rmmod nvidia_uvm nvidia && sudo modprobe nvidia), or reboot.",
        )
    for finding in reading.findings:
        if finding.severity != "note":
            yield _as_finding(finding)


def _as_finding(found: Any) -> Finding:
    """A diagnosis names the fault first, and then what to do about it."""
    what, _, do = str(found.message).partition(". ")
    means, _, more = what.partition(": ")
    evidence = f" ({found.evidence.strip()})" if found.evidence else ""
    do = do or more or "nvidia-smi -q shows the details"
    return Finding("GPU health", _STATES[found.severity], f"{means}{evidence}", (more or means) + ".", do)


def _slices(report: Any) -> Iterator[Finding]:
    sliced = [number for number, gpu in enumerate(report.gpus) if (gpu.mig_mode or "").lower() == "enabled"]
    if not sliced:
        return
    where = "GPU " + ", ".join(map(str, sliced))
    if os.environ.get("CUDA_VISIBLE_DEVICES", "").startswith("MIG-"):
        yield Finding("MIG", "ok", f"on, {where}; CUDA_VISIBLE_DEVICES names the slice")
        return
    yield Finding(
        "MIG",
        "warning",
        f"on, {where}",
        "A process sees one slice of one GPU only, and utilisation cannot be read.",
        "nvidia-smi -L lists the slices: export CUDA_VISIBLE_DEVICES=MIG-... chooses one",
    )


def _topology(report: Any) -> Finding:
    pairs = [
        report.link(one, other)
        for number, one in enumerate(report.gpus)
        for other in report.gpus[number + 1 :]
    ]
    kinds = sorted({str(link) for link in pairs if link})
    if not kinds:
        return Finding("topology", "ok", f"{len(report.gpus)} GPU, {len(report.nics)} NICs")
    shown = f"{len(report.gpus)} GPUs joined by {', '.join(kinds)}; {len(report.nics)} NICs"
    if {"SYS", "SOC"} & set(kinds):
        means = "Some pairs of GPUs hang on different sockets: what they exchange crosses both."
        return Finding(
            "topology", "warning", shown, means, "Keep a job's GPUs on one socket: nvidia-smi topo -m"
        )
    return Finding("topology", "ok", shown)


def _peers() -> Iterator[Finding]:
    """Which GPUs may copy to each other directly, asked of the driver."""
    from labkit.hardware.driver import peer_access

    count = len(answer().cards)
    if count < 2:
        return
    barred = [pair for pair, able in peer_access(count).items() if not able]
    if not barred:
        yield Finding("peer access", "ok", f"every GPU of {count} reaches every other directly")
        return
    i, j = barred[0]
    yield Finding(
        "peer access",
        "warning",
        f"{len(barred)} of {count * (count - 1)} directed pairs lack it (first: GPU {i} to GPU {j})",
        "Copies between them go through the host's memory. GeForce cards are sold so; others should have it.",
        "nvidia-smi topo -p2p r tells why; on servers switch PCIe ACS and the IOMMU off for the GPUs",
    )
