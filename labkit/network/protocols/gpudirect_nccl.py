"""GPUDirect RDMA measured: the same NCCL run twice, once with it and once forbidden.

Untested: nothing here has run on machines that have the hardware. Each machine starts it, as torchrun wants.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.units import show_bytes, show_rate
from labkit.network.benchmark.report import BandwidthReport
from labkit.network.protocols.gpudirect import rdma

# NCCL_NET_GDR_LEVEL: how far apart a GPU and a card may be. SYS: anywhere in the machine; LOC: never.
LEVELS = {"gpudirect": "SYS", "staged": "LOC"}


@dataclass(frozen=True)
class GpuDirectRuns:
    """Send and receive over NCCL with GPUDirect RDMA (``gpudirect``) and through host memory (``staged``)."""

    gpudirect: BandwidthReport
    staged: BandwidthReport

    label = "measured with NCCL; this path of labkit is untested"

    def to_dict(self) -> dict[str, Any]:
        return {"label": self.label, **{way: getattr(self, way).to_dict() for way in LEVELS}}

    def __repr__(self) -> str:
        pairs = zip(self.gpudirect.rows, self.staged.rows, strict=True)
        words = [
            f"{show_bytes(one.size_bytes)}: {show_rate(one.bus_bandwidth)} against {show_rate(two.bus_bandwidth)}"
            for one, two in pairs
        ]
        return f"GpuDirectRuns(with against without: {'; '.join(words)}; {self.label})"


def command(endpoint: str, nodes: int = 2, largest: str = "256MiB") -> list[str]:
    """torchrun's words for each machine: one GPU a node, send and receive between neighbours."""
    return [
        *(sys.executable, "-m", "torch.distributed.run", f"--nnodes={nodes}", "--nproc-per-node=1"),
        *("--rdzv-backend=c10d", f"--rdzv-endpoint={endpoint}", "-m", "labkit.network.benchmark"),
        *("--operation", "send_recv", "--by", "torch", "--maxbytes", largest, "--json"),
    ]


def measure_gpudirect(endpoint: str, nodes: int = 2, largest: str = "256MiB") -> GpuDirectRuns | None:
    """Run it, at about the same time on every one of the machines.

    Parameters
    ----------
    endpoint : str
        ``host:port`` of the first machine.
    nodes : int
    largest : str
        Size of the largest message.

    Returns
    -------
    GpuDirectRuns or None
        On the machine of rank 0; None on the others.

    Raises
    ------
    LabkitError
        Where GPU or RDMA device are missing, and when a run fails.
    """
    from labkit import hardware

    if hardware.usable_gpu() is None or not rdma().devices:
        raise LabkitError(
            "GPUDirect RDMA cannot be measured here: it takes two machines or more, each with a GPU and an RDMA "
            "device (see /sys/class/infiniband). labkit.network.protocols.gpu_message(...) models it."
        )
    said = {way: _run(command(endpoint, nodes, largest), level) for way, level in LEVELS.items()}
    if not all(said.values()):
        return None
    return GpuDirectRuns(**{way: read(text) for way, text in said.items()})


def read(text: str) -> BandwidthReport:
    """The report in what a benchmark has printed, its last line."""
    return BandwidthReport.from_dict(json.loads(text.strip().splitlines()[-1]))


def _run(words: list[str], level: str) -> str:
    done = subprocess.run(
        words, env={**os.environ, "NCCL_NET_GDR_LEVEL": level}, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise LabkitError(f"The run with NCCL_NET_GDR_LEVEL={level} failed; its words are above.")
    return done.stdout
