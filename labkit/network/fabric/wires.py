"""What one wire of a topology carries: rates and latencies from the catalogue, or as given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from labkit.hardware.catalog import latency as catalogued_latency
from labkit.hardware.catalog import link as catalogued_link
from labkit.hardware.records import Link
from labkit.network.fabric.flows import delay, rate

_SWITCHES = {"edr": "edr-switch", "hdr": "hdr-switch", "ndr": "ndr-switch", "xdr": "xdr-switch"}


@dataclass(frozen=True)
class Wire:
    """One direction of a cable: `bandwidth` bytes/s, `latency` seconds, `kind` a catalogue id or ``"custom"``."""

    bandwidth: float
    latency: float
    kind: str = "custom"

    def times(self, count: float) -> Wire:
        """So many of these side by side, used as one."""
        return Wire(self.bandwidth * count, self.latency, self.kind)


def wire(link: str | Link, *, between_switches: bool = False) -> Wire:
    """One link of the catalogue, at the rate large messages are known to reach on it.

    That is, where the catalogue has it: what NCCL plans with, else what copies between a pair reached, else
    the middle of the achieved range, else (NVLink 1, 2 and 5 among them) the raw rate.
    """
    found = catalogued_link(link)
    return Wire(_payload(found), _latency(found, between_switches), found.id)


def custom(bandwidth: Any, latency: Any, where: str) -> Wire:
    """A wire as given, in bytes/s and seconds or in words; LabkitError naming `where` for one that is none."""
    return Wire(rate(bandwidth, where), delay(latency, where))


def _payload(link: Link) -> float:
    """Bytes/s of one link, or slot, or port, in one direction."""
    if link.per_gpu and link.nccl_per_gpu_GBps:
        return link.nccl_per_gpu_GBps * 1e9 / link.per_gpu
    if link.per_gpu and link.pair_one_way_GBps:
        return sum(link.pair_one_way_GBps) / 2 * 1e9 / link.per_gpu
    if link.achieved_GBps:
        return sum(link.achieved_GBps) / 2 * 1e9
    return link.raw_GBps * 1e9


def _latency(link: Link, between_switches: bool) -> float:
    """Seconds a first byte takes over one cable, the switch behind it counted half to each side.

    Two cables and one switch then make the catalogue's figure from end to end; of a cable between two switches
    only the switches are counted.
    """
    if link.kind == "nvlink" or link.kind == "nvswitch":
        return _middle("nvswitch-hop")
    if link.kind == "pcie":
        return _middle("pcie-switch")
    if link.kind == "tpu-ici":
        return sum(link.latency_us or (1.0, 1.0)) / 2 * 1e-6
    switch = _middle(_SWITCHES.get(link.id, "ethernet-switch-cut-through"))
    ends = _middle("rdma-write-back-to-back") if link.kind == "infiniband" else _middle("roce")
    return switch if between_switches else (ends + switch) / 2


def _middle(name: str) -> float:
    return sum(catalogued_latency(name).us) / 2 * 1e-6
