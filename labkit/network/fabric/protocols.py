"""What a message costs beside its bytes on the wire: headers, handshakes, copies, and the software around them.

Figures come from the catalogue. ``"ideal"`` costs nothing, so that times follow from links alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from labkit.errors import LabkitError
from labkit.hardware.catalog import latency, protocol

# Delay of each message in seconds, from its bytes, the latency of its route in seconds, and its slowest medium.
Overhead = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
MEDIA = ("nvlink", "pci", "net")
_NET = {"edr", "hdr", "ndr", "xdr", "slingshot11"}


@dataclass(frozen=True)
class Protocol:
    """`once_s` is paid once an operation, `overhead` by every message; `efficiency` is payload over wire bytes."""

    name: str
    overhead: Overhead
    once_s: float = 0.0
    efficiency: float = 1.0
    source: str = ""


def named(name: str, shape: str = "ring", pcie_bytes_per_s: float = 25e9) -> Protocol:
    """The protocol of that name.

    Parameters
    ----------
    name : str
        ``"ideal"``; NCCL's ``"ll"``, ``"ll128"``, ``"simple"``; ``"eager"``, ``"rendezvous"``, and ``"ucx"``, which
        takes eager below its threshold; ``"gpudirect"`` and ``"staged"`` for a GPU's memory and a network card.
    shape : {"ring", "tree"}
        NCCL's tuner has figures for each.
    pcie_bytes_per_s : float
        Rate of the copies through host memory when staged.
    """
    makers: dict[str, Callable[[], Protocol]] = {
        "ideal": lambda: Protocol("ideal", _nothing),
        "ll": lambda: _nccl("ll", shape),
        "ll128": lambda: _nccl("ll128", shape),
        "simple": lambda: _nccl("simple", shape),
        "eager": lambda: Protocol("eager", _eager, source=protocol("ucx")["source"]),
        "rendezvous": lambda: Protocol("rendezvous", _rendezvous),
        "ucx": lambda: Protocol("ucx", _ucx, source=protocol("ucx")["source"]),
        "gpudirect": lambda: Protocol("gpudirect", _direct, source=latency("mpi-gpu-gpudirect").source),
        "staged": lambda: _staged(pcie_bytes_per_s),
    }
    if name not in makers:
        raise LabkitError(f"{name!r} is no protocol: use {', '.join(makers)}.")
    return makers[name]()


def media(kinds: tuple[str, ...]) -> np.ndarray:
    """For each link by its catalogue id: 0 for NVLink and whatever is unknown, 1 for PCIe, 2 for a network."""
    return np.array([_medium(kind) for kind in kinds], np.int64)


def _medium(kind: str) -> int:
    if kind in _NET or kind.endswith("gbe"):
        return 2
    return 1 if kind.startswith(("pcie", "cxl")) else 0


def _nothing(size: np.ndarray, wait: np.ndarray, medium: np.ndarray) -> np.ndarray:
    return np.zeros(len(size))


def _nccl(name: str, shape: str) -> Protocol:
    """Base latency once, hardware latency a hop between ranks; LL spends half of its bytes on flags, LL128 8 of 128."""
    facts, column = protocol("nccl-2.19-tuner"), ("ll", "ll128", "simple").index(name)
    step = np.array([facts["hardware_latency_us"][medium][shape][column] for medium in MEDIA]) * 1e-6
    return Protocol(
        name,
        lambda size, wait, medium: step[medium],
        once_s=facts["base_latency_us"][shape][column] * 1e-6,
        efficiency=(1 / 2, 120 / 128, 1.0)[column],
        source=facts["source"],
    )


def _eager(size: np.ndarray, wait: np.ndarray, medium: np.ndarray) -> np.ndarray:
    """Sent at once into buffers the receiver keeps ready: a copy at either end, and no word exchanged before."""
    return 2 * size / (protocol("ucx")["bcopy_bandwidth_default_MBps"] * 1e6)


def _rendezvous(size: np.ndarray, wait: np.ndarray, medium: np.ndarray) -> np.ndarray:
    """The sender asks, the receiver says where to: one round trip more, and no copy."""
    return 2 * wait


def _ucx(size: np.ndarray, wait: np.ndarray, medium: np.ndarray) -> np.ndarray:
    threshold = protocol("ucx")["ucxpy_rendezvous_threshold_bytes"]
    return np.where(size < threshold, _eager(size, wait, medium), _rendezvous(size, wait, medium))


def _direct(size: np.ndarray, wait: np.ndarray, medium: np.ndarray) -> np.ndarray:
    """The network card reads and writes the GPU's memory: what is left is the software's latency."""
    return np.where(medium == 2, _middle("mpi-gpu-gpudirect"), 0.0)


def _staged(pcie_bytes_per_s: float) -> Protocol:
    """Over the network by way of host memory: copied from the GPU at one end and to the GPU at the other."""

    def overhead(size: np.ndarray, wait: np.ndarray, medium: np.ndarray) -> np.ndarray:
        return np.where(medium == 2, _middle("mpi-gpu-staged") + 2 * size / pcie_bytes_per_s, 0.0)

    return Protocol("staged", overhead, source=latency("mpi-gpu-staged").source)


def _middle(name: str) -> float:
    return sum(latency(name).us) / 2 * 1e-6
