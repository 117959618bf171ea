"""How GPUs reach each other and their NICs: matrices of ``topo -m``, states of NVLinks, the test of peer access."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from labkit.hardware.diagnosis.case import Case, card_of
from labkit.hardware.diagnosis.finding import Finding
from labkit.hardware.records import GPU
from labkit.hardware.reports.nccl_topo_xml import NcclTopology
from labkit.hardware.reports.nvlink import LinkedGPU, NVLinkStatus
from labkit.hardware.reports.topo import Topology

FAR = ("SYS", "SOC")
_DOWN = "Run 'systemctl status nvidia-fabricmanager' next, and look for 'Xid 74' in dmesg."
_MEND = f"Run 'nvidia-smi nvlink -s' next. {_DOWN}"


def links(case: Case) -> Iterator[Finding]:
    for topology in case.all(Topology):
        yield from _nvlinks(topology, case.card)
        yield from _sockets(topology)
        yield from _nics(topology)
    for status in case.all(NVLinkStatus):
        card = card_of(tuple(gpu.name for gpu in status.gpus))
        for gpu in status.gpus:
            yield from _ports(status, gpu, card)
    for topology_xml in case.all(NcclTopology):
        yield from _xml_slots(topology_xml, case.card)
        yield from _xml_nics(topology_xml)


def has_nvlink(card: GPU | None) -> bool:
    """Whether every card of this kind is joined to its peers by NVLink, without a bridge that may be missing."""
    return bool(card and card.fabric and card.fabric.kind == "NVLink" and not card.fabric.bridged_pair)


def _pairs(topology: Topology) -> dict[tuple[str, str], str]:
    found = {pair: topology.link(*pair) for pair in combinations(topology.gpus, 2)}
    return {pair: link for pair, link in found.items() if link}


def _nvlinks(topology: Topology, card: GPU | None) -> Iterator[Finding]:
    pairs = _pairs(topology)
    counts = {pair: int(link[2:]) for pair, link in pairs.items() if link.startswith("NV")}
    lone = [gpu for gpu in topology.gpus if not any(gpu in pair for pair in counts)]
    if not pairs:
        return
    if counts and lone:
        text = f"{', '.join(lone)} reach no other GPU by NVLink, although others do: their links are down. {_MEND}"
        yield Finding("error" if has_nvlink(card) else "warning", text, topology.quote(lone[0]))
    elif not counts and card and has_nvlink(card):
        yield Finding(
            "error",
            f"The {card.name} has {card.fabric.links if card.fabric else 0} NVLinks, and the topology shows "
            "none: GPUs talk "
            f"over PCIe. {_MEND}",
            topology.quote(topology.gpus[0]),
        )
    elif not counts and card is None:
        text = (
            "No GPU reaches another by NVLink. Whether these cards have any, their names tell: run 'nvidia-smi -L' "
            "next and give both."
        )
        yield Finding("note", text, topology.quote(topology.gpus[0]))
    elif counts and card and has_nvlink(card):
        yield from _missing(topology, counts, pairs, card)


def _missing(
    topology: Topology, counts: dict[tuple[str, str], int], pairs: dict[tuple[str, str], str], card: GPU
) -> Iterator[Finding]:
    """Links that an all-to-all topology should have. With more than four GPUs it is a switch: all links to each."""
    full = card.fabric.links if card.fabric else 0
    if len(counts) < len(pairs) or not full:
        return
    switched = len(topology.gpus) > 4
    for pair, count in counts.items():
        if count < full and (switched or full % count):
            text = (
                f"{pair[0]} and {pair[1]} are joined by {count} NVLinks of the {full} that the {card.name} has. "
                f"{_MEND}"
            )
            yield Finding("warning", text, topology.quote(pair[0]))
            return


def _sockets(topology: Topology) -> Iterator[Finding]:
    far = [pair for pair, link in _pairs(topology).items() if link in FAR]
    if not far:
        return
    one, other = far[0]
    more = f" ({len(far)} pairs in all)" if len(far) > 1 else ""
    yield Finding(
        "warning",
        f"{one} and {other} hang on different sockets{more}: their traffic crosses the link between the "
        "CPUs, the slowest "
        "way inside a machine. Keep jobs of few GPUs on one socket, and bind each process to its GPU's NUMA node.",
        topology.quote(one),
    )


def _nics(topology: Topology) -> Iterator[Finding]:
    order = ("PIX", "PXB", "PHB", "NODE", *FAR)
    best: dict[str, str] = {}
    for gpu in topology.gpus:
        known = [link for nic in topology.nics if (link := topology.link(gpu, nic)) in order]
        if known:
            best[gpu] = min(known, key=order.index)
    far = [gpu for gpu, link in best.items() if link in FAR]
    if far:
        yield Finding(
            "warning",
            f"{', '.join(far)} have no NIC on their own socket: their network traffic crosses to the other CPU, and "
            "GPUDirect RDMA is not used. Move a NIC, or give multi-node jobs the GPUs that are near one.",
            topology.quote(far[0]),
        )
    near = [gpu for gpu, link in best.items() if link == "NODE"]
    if near:
        yield Finding(
            "note",
            f"{', '.join(near)} reach their nearest NIC only through the CPU: NCCL uses no GPUDirect RDMA there. A NIC "
            "under the same PCIe switch (PIX or PXB) is better.",
            topology.quote(near[0]),
        )


def _ports(status: NVLinkStatus, gpu: LinkedGPU, card: GPU | None) -> Iterator[Finding]:
    off = [port.link for port in gpu.links if port.GBps is None]
    names = ", ".join(map(str, off))
    if not gpu.links or len(off) == len(gpu.links):
        severity = "error" if has_nvlink(card) else "note"
        text = f"GPU {gpu.index} ({gpu.name}) has no active NVLink. {_DOWN}"
        keys = [f"{gpu.index}.none", *(f"{gpu.index}.{link}" for link in off), str(gpu.index)]
        yield Finding(severity, text, status.quote(*keys))
    elif off:
        text = (
            f"Of the NVLinks of GPU {gpu.index} ({gpu.name}), {names} are inactive: it has {gpu.active} of "
            f"{len(gpu.links)}. {_DOWN}"
        )
        yield Finding("warning", text, status.quote(f"{gpu.index}.{off[0]}"))
    elif card and card.fabric and has_nvlink(card) and gpu.active < card.fabric.links and not status.cut:
        text = (
            f"GPU {gpu.index} shows {gpu.active} NVLinks of the {card.fabric.links} that the {card.name} has. "
            f"{_DOWN}"
        )
        yield Finding("warning", text, status.quote(str(gpu.index)))


def _xml_slots(topology: NcclTopology, card: GPU | None) -> Iterator[Finding]:
    lanes = card.pcie.lanes if card else 16
    for i, gpu in enumerate(topology.gpus):
        if gpu.link_width and gpu.link_width < lanes:
            yield Finding(
                "warning",
                f"The GPU at {gpu.bus_id} runs on {gpu.link_width} PCIe lanes, where such cards have "
                f"{lanes}: reseat card or "
                "riser, and compare with 'nvidia-smi -q' (Link Width, Max).",
                topology.quote(f"pci {gpu.bus_id}", f"gpu{i}"),
            )


def _xml_nics(topology: NcclTopology) -> Iterator[Finding]:
    for i, gpu in enumerate(topology.gpus):
        ways = [topology.distance(gpu, nic) for nic in topology.nics]
        if ways and all(way == "SYS" for way in ways):
            yield Finding(
                "warning",
                f"The GPU at {gpu.bus_id} has no NIC on its own socket (NUMA node {gpu.numa}): its network "
                "traffic crosses to "
                "the other CPU. Move a NIC, or use the GPUs that are near one.",
                topology.quote(f"gpu{i}"),
            )
