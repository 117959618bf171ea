"""RDMA and GPUDirect: whether they are here, and what a message between GPUs of two machines costs with and without.

RDMA has the network card read and write registered memory of processes, past the kernel. GPUDirect RDMA extends that
to the memory of GPUs: no copy through host memory at either end. What cannot be measured here is modelled from
the catalogue's figures.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labkit.hardware.catalog import latency, link
from labkit.hardware.units import parse, show_bytes, show_time

WAYS = ("gpudirect", "staged", "tcp")
_DEVICES = Path("/sys/class/infiniband")
_PEER_MODULES = ("nvidia_peermem", "nv_peer_mem")


@dataclass(frozen=True)
class RdmaDevice:
    """A card that speaks RDMA, as the kernel describes its first port: InfiniBand or Ethernet (RoCE)."""

    name: str
    state: str
    rate: str
    link_layer: str


@dataclass(frozen=True)
class Rdma:
    """What this machine has.

    Attributes
    ----------
    devices : tuple of RdmaDevice
    peer_memory : str
        The kernel module by which cards reach GPU memory; empty without one. With dma-buf none is needed.
    """

    devices: tuple[RdmaDevice, ...]
    peer_memory: str

    label = "found on this machine"

    @property
    def gpudirect(self) -> bool:
        """Whether a module for GPUDirect RDMA and a card for it are both here."""
        return bool(self.devices and self.peer_memory)

    def to_dict(self) -> dict[str, Any]:
        return {"label": self.label, **asdict(self), "gpudirect": self.gpudirect}

    def __repr__(self) -> str:
        if not self.devices:
            return "Rdma(no RDMA device here: /sys/class/infiniband has none; its figures are modelled)"
        names = ", ".join(f"{one.name} ({one.link_layer}, {one.rate}, {one.state})" for one in self.devices)
        peer = self.peer_memory or "no peer memory module (dma-buf may do without)"
        return f"Rdma({names}; {peer})"


def rdma(devices: Path = _DEVICES, modules: Path = Path("/sys/module")) -> Rdma:
    """What the kernel says of RDMA devices, and of access to GPU memory by them."""
    found = sorted(devices.iterdir()) if devices.is_dir() else []
    peer = next((name for name in _PEER_MODULES if (modules / name).is_dir()), "")
    return Rdma(tuple(map(_device, found)), peer)


def _device(path: Path) -> RdmaDevice:
    port = next(iter(sorted((path / "ports").glob("*"))), path)
    state, rate, layer = (_word(port / name) for name in ("state", "rate", "link_layer"))
    return RdmaDevice(path.name, state.partition(": ")[2] or state, rate.partition(" (")[0], layer)


def _word(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return "unknown"


@dataclass(frozen=True)
class GpuMessage:
    """A message from a GPU of one machine to a GPU of another, modelled.

    Attributes
    ----------
    way : str
        ``"gpudirect"``: from card to card, past host memory. ``"staged"``: by RDMA, through host memory. ``"tcp"``:
        through host memory and the kernel's buffers.
    size : int
    seconds : float
    copies : int
        Times that the data is copied between memories of one machine, both ends together.
    """

    way: str
    size: int
    seconds: float
    copies: int
    source: str

    label = "modelled"

    def to_dict(self) -> dict[str, Any]:
        return {"label": self.label, **asdict(self)}

    def __repr__(self) -> str:
        return (
            f"GpuMessage({show_bytes(self.size)}, {self.way}: {show_time(self.seconds)}, "
            f"{self.copies} copies, modelled)"
        )


def gpu_message(
    size: int | str, way: str = "gpudirect", network: str = "ndr", host_link: str = "pcie5"
) -> GpuMessage:
    """What a message would take (modelled): the wait of a small one, plus its bytes through every stage in turn.

    The catalogue's ``mpi-gpu-gpudirect``, ``mpi-gpu-staged`` and ``tcp`` latencies (the middle of each range) and the
    raw rates of its links; copies in kernel memory are taken at UCX's figure for copies. Stages follow one another,
    as they do without a pipeline of chunks; with one, the slowest stage alone would remain.

    Parameters
    ----------
    size : int or str
    way : {"gpudirect", "staged", "tcp"}
    network, host_link : str
        Links of the catalogue.
    """
    from labkit.errors import LabkitError
    from labkit.hardware.catalog import protocol

    if way not in WAYS:
        raise LabkitError(f"{way!r} is no way between GPUs of two machines: take {', '.join(WAYS)}.")
    count = int(parse(size, "size"))
    wire, pcie = link(network).raw_GBps * 1e9, link(host_link).raw_GBps * 1e9
    memory = protocol("ucx")["bcopy_bandwidth_default_MBps"] * 1e6
    small = {"gpudirect": "mpi-gpu-gpudirect", "staged": "mpi-gpu-staged", "tcp": "tcp"}[way]
    stages = {"gpudirect": 0.0, "staged": 2 / pcie, "tcp": 2 / pcie + 2 / memory}[way]
    wait = latency(small)
    seconds = sum(wait.us) / 2 * 1e-6 + count * (1 / wire + stages)
    return GpuMessage(way, count, seconds, {"gpudirect": 0, "staged": 2, "tcp": 4}[way], wait.source)
