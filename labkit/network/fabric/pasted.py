"""Topologies of a real machine, from what it prints: ``nvidia-smi topo -m``, or NCCL's topology file.

``topo -m`` says how near two devices are, not what lies between: the switches here are the fewest that make its
words true (PIX: one PCIe switch; PXB: several; PHB and NODE: one CPU; SYS: between CPUs).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from labkit.errors import LabkitError
from labkit.hardware.catalog import gpu as catalogued
from labkit.hardware.catalog import link as catalogued_link
from labkit.network.fabric.custom import text_of
from labkit.network.fabric.topology import Topology, add_node, cable, new_graph
from labkit.network.fabric.wires import Wire, wire

if TYPE_CHECKING:
    from labkit.hardware.reports.nccl_topo_xml import NcclTopology
    from labkit.hardware.reports.topo import Topology as Matrix

# Which words join two devices below one node, from the nearest to the farthest.
_NEAR = (("PIX", 1, "pcie"), ("PXB", 2, "pcie"), ("PHB NODE", 3, "cpu"))
_GENERATIONS = {
    "2.5": 1,
    "5": 2,
    "5.0": 2,
    "8": 3,
    "8.0": 3,
    "16": 4,
    "16.0": 4,
    "32": 5,
    "32.0": 5,
    "64": 6,
    "64.0": 6,
}
Tops = list[tuple[str, list[str]]]  # a node, and the devices below it
_NVSWITCH_FROM = 80  # compute capability from which a server's NVLinks lead to switches


def is_report(text: str) -> bool:
    """Whether a text holds one of the two reports."""
    return _found(text) is not None


def from_report(source: str | os.PathLike[str], gpu: str | None = None) -> Topology:
    """The topology of the machine that printed `source` (the text, or a file with it).

    Parameters
    ----------
    gpu : str, optional
        The card, a name of the catalogue. ``topo -m`` counts NVLinks but does not say how fast they are.

    Raises
    ------
    LabkitError
        For a text that is neither report, and NVLinks of which the rate or the other end is not known.
    """
    report = _found(text_of(source)[0])
    if report is None:
        raise LabkitError(
            "This is neither the matrix of 'nvidia-smi topo -m' nor an NCCL topology file (NCCL_TOPO_DUMP_FILE): "
            "paste the whole output."
        )
    if report.kind == "nccl_topo_xml":
        return _from_xml(report)
    return _from_matrix(report, gpu)


def _found(text: str) -> Any:
    from labkit.hardware.reports import read

    kinds = ("topo", "nccl_topo_xml")
    for report in read(text):
        if report.kind in kinds and getattr(report, "gpus", None):
            return report
    return None


def _from_matrix(report: Matrix, gpu: str | None) -> Topology:
    card = None if gpu is None else catalogued(gpu)
    words = {
        frozenset((one, other)): word
        for one, row in zip(report.devices, report.matrix, strict=True)
        for other, word in zip(report.devices, row, strict=True)
        if word and one != other
    }
    slot, graph = wire(f"pcie{card.pcie.generation if card else 4}"), new_graph()
    for device in report.devices:
        add_node(
            graph,
            device,
            "gpu" if device in report.gpus else "nic",
            0 if device in report.gpus else 1,
            server=0,
        )
    tops: Tops = [(device, [device]) for device in report.devices]
    nearness = {**words, **_behind_nvlink(report, words)}
    for near, level, kind in _NEAR:
        tops = _gathered(graph, tops, nearness, near.split(), level, kind, slot)
    _between_cpus(graph, [top for top, _ in tops], slot)
    _nvlinks(graph, report.gpus, words, card)
    known = () if card else ("The PCIe generation is not in the report and taken to be 4.",)
    return Topology("nvidia-smi topo -m", graph, report.gpus, gpu=card.id if card else None, notes=known)


def _behind_nvlink(report: Matrix, words: dict[frozenset[str], str]) -> dict[frozenset[str], str]:
    """NV# hides how near two GPUs are over PCIe; those of one NUMA node, or near the same cores, share a CPU."""
    near = zip(report.numa_affinity, report.cpu_affinity, strict=True)
    homes = dict(zip(report.gpus, (node or cores for node, cores in near), strict=True))
    return {
        pair: "NODE" if len({homes.get(gpu) for gpu in pair}) == 1 else "SYS"
        for pair, word in words.items()
        if word.startswith("NV")
    }


def _gathered(
    graph: Any,
    tops: Tops,
    words: dict[frozenset[str], str],
    near: list[str],
    level: int,
    kind: str,
    slot: Wire,
) -> Tops:
    """Put those that are so near below one new node; whoever is alone stays as it is."""
    groups: list[Tops] = []
    for top in tops:
        joined = [group for group in groups if any(_meet(top, other, words, near) for other in group)]
        groups = [group for group in groups if group not in joined] + [[*itertools.chain(*joined), top]]
    gathered = []
    for i, group in enumerate(groups):
        alone = len(group) == 1 and kind != "cpu"
        gathered.append(group[0] if alone else _below(graph, group, f"{kind}{level}.{i}", level, kind, slot))
    return gathered


def _meet(one: tuple[str, list[str]], other: tuple[str, list[str]], words: Any, near: list[str]) -> bool:
    return any(words.get(frozenset(pair)) in near for pair in itertools.product(one[1], other[1]))


def _below(graph: Any, group: Tops, name: str, level: int, kind: str, slot: Wire) -> tuple[str, list[str]]:
    add_node(graph, name, kind, level, server=0)
    for top, _ in group:
        cable(graph, top, name, slot)
    return name, [device for _, devices in group for device in devices]


def _between_cpus(graph: Any, cpus: Sequence[str], slot: Wire) -> None:
    for one, other in itertools.combinations(cpus, 2):
        cable(graph, one, other, slot)


def _nvlinks(graph: Any, gpus: Sequence[str], words: dict[frozenset[str], str], card: Any) -> None:
    """Pairs joined by NV#; through a switch where all pairs print more links than a card could give to each."""
    pairs = {pair: int(words[pair][2:]) for pair in map(frozenset, itertools.combinations(gpus, 2))
             if words.get(pair, "").startswith("NV")}  # fmt: skip
    if not pairs:
        return
    if card is None or card.fabric is None or card.fabric.generation is None:
        raise LabkitError(
            "The matrix shows NVLinks and not how fast they are: say which card it is, as in gpu='A100'."
        )
    one = wire(f"nvlink{card.fabric.generation}")
    total = catalogued_link(one.kind).per_gpu or card.fabric.links
    counts = set(pairs.values())
    if (
        len(counts) == 1
        and len(pairs) == len(gpus) * (len(gpus) - 1) // 2
        and max(counts) * (len(gpus) - 1) > total
    ):
        _nvswitch(graph, gpus, one.times(max(counts)))
        return
    for pair, count in pairs.items():
        first, second = sorted(pair)
        cable(graph, first, second, one.times(count))


def _nvswitch(graph: Any, gpus: Iterable[str], links: Wire) -> None:
    inside = add_node(graph, "nvswitch", "nvswitch", 1, server=0)
    for gpu in gpus:
        cable(graph, gpu, inside, links)


def _from_xml(report: NcclTopology) -> Topology:
    graph = new_graph()
    cpus: list[str] = []
    for entry in report.cpus:
        cpus.append(add_node(graph, f"cpu{entry.get('numaid', len(cpus))}", "cpu", 3, server=0))
    gpus = []
    for number, gpu in enumerate(report.gpus):
        gpus.append(add_node(graph, f"GPU{number if gpu.dev is None else gpu.dev}", "gpu", server=0))
        _hang(graph, gpus[-1], gpu, cpus)
    for nic in report.nics:
        _hang(graph, add_node(graph, nic.name, "nic", 1, server=0), nic, cpus)
    _between_cpus(graph, cpus, wire("pcie4"))
    _switched(graph, gpus, report)
    return Topology("NCCL topology", graph, tuple(gpus))


def _hang(graph: Any, name: str, device: Any, cpus: list[str]) -> None:
    """A device below its PCIe bridges, and the outermost of those below its CPU."""
    speed = (device.link_speed or "16").split()[0]
    slot = wire(f"pcie{max(3, _GENERATIONS.get(speed, 4))}").times((device.link_width or 16) / 16)
    cpu = f"cpu{device.numa}" if f"cpu{device.numa}" in graph else cpus[0] if cpus else ""
    above = [*([cpu] if cpu else []), *device.bridges]
    for bridge in device.bridges:
        if bridge not in graph:
            add_node(graph, bridge, "pcie", 2, server=0)
    for upper, lower in itertools.pairwise([*above, name]):
        if not graph.has_edge(upper, lower):
            cable(graph, upper, lower, slot)


def _switched(graph: Any, gpus: list[str], report: NcclTopology) -> None:
    """NVLinks into a switch; of pairs the reader keeps the number of links and not where they lead."""
    counts = {gpu.nvlinks for gpu in report.gpus}
    if counts == {0}:
        return
    capabilities = {gpu.sm for gpu in report.gpus}
    if len(counts) > 1 or len(capabilities) > 1 or not (sm := capabilities.pop()) or sm < _NVSWITCH_FROM:
        raise LabkitError(
            "The NCCL topology counts NVLinks whose other ends are not all switches: use the output of "
            "'nvidia-smi topo -m' instead, which names the pairs."
        )
    generation = {80: 3, 90: 4}.get(sm, 5)
    _nvswitch(graph, gpus, wire(f"nvlink{generation}").times(counts.pop()))
