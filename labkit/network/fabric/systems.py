"""Servers full of GPUs, and clusters of them: NVLink inside, PCIe to the network cards, rails between.

``systems.yaml`` says what is in each server. All NVSwitches of a server are one node here: traffic is spread over
them evenly, so one switch with the sum of their ports is the same thing.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.catalog import link as catalogued_link
from labkit.network.fabric.topology import Topology, add_node, afford, cable, new_graph, whole
from labkit.network.fabric.wires import Wire, wire

NETWORKS = ("rail", "switch")


@cache
def systems() -> dict[str, dict[str, Any]]:
    """The servers known by name; read-only."""
    import yaml

    with open(os.path.join(os.path.dirname(__file__), "systems.yaml"), encoding="utf-8") as stream:
        return dict(yaml.safe_load(stream))


def cluster(name: str, nodes: int = 1, network: str = "rail", oversubscription: float = 1.0) -> Topology:
    """So many servers of that name, and the network between them.

    Parameters
    ----------
    network : {"rail", "switch"}
        ``"rail"``: the i-th network card of every server meets at rail switch i, and a spine joins the rails;
        ``"switch"``: one switch joins all cards.
    oversubscription : float
        How many times more a rail switch takes from its servers than it can pass to the spine.
    """
    facts, nodes = systems()[name], whole(nodes, "nodes")
    if network not in NETWORKS:
        raise LabkitError(f"{network!r} is no network between servers: use {' or '.join(NETWORKS)}.")
    if not oversubscription > 0:
        raise LabkitError(f"oversubscription={oversubscription!r} must be above zero; 1 means none.")
    per_node = facts["gpus"]
    afford(f"cluster of {name}", nodes * per_node, 3 * nodes * per_node, 10 * nodes * per_node)
    graph, gpus = new_graph(), []
    for server in range(nodes):
        gpus += _server(graph, server, facts, network=nodes > 1)
    if nodes > 1:
        _network(graph, nodes, facts, network, oversubscription)
    title = name if nodes == 1 else f"{nodes} x {name}, {network}"
    return Topology(title, graph, tuple(gpus), gpu=facts["gpu"], notes=(f"{name}: {facts['source']}",))


def rail(nodes: int = 4, server: str = "dgx-h100", oversubscription: float = 1.0) -> Topology:
    """A rail-optimised cluster: card i of every server on rail switch i."""
    return cluster(_known(server), nodes, "rail", oversubscription)


def _known(server: str) -> str:
    if server not in systems():
        raise LabkitError(f"There is no server {server!r}: known are {', '.join(systems())}.")
    return server


def _server(graph: Any, server: int, facts: dict[str, Any], network: bool) -> list[str]:
    count, order = facts["gpus"], facts.get("order") or range(facts["gpus"])
    gpus = [add_node(graph, f"n{server}.g{index}", "gpu", server=server) for index in range(count)]
    _nvlinks(graph, server, gpus, facts)
    cards = count // facts["nics"]["gpus"]
    slot = wire(facts["pcie"])
    for card in range(cards):
        switch = add_node(graph, f"n{server}.pcie{card}", "pcie", level=1, server=server)
        for gpu in gpus[card * facts["nics"]["gpus"] : (card + 1) * facts["nics"]["gpus"]]:
            cable(graph, gpu, switch, slot)
        if network:
            nic = add_node(graph, f"n{server}.nic{card}", "nic", level=2, server=server)
            cable(graph, switch, nic, slot)
    _sockets(graph, server, cards, slot)
    return [gpus[index] for index in order]


def _sockets(graph: Any, server: int, switches: int, slot: Wire) -> None:
    """Two CPUs, each with half of the PCIe switches."""
    cpus = [add_node(graph, f"n{server}.cpu{socket}", "cpu", level=2, server=server) for socket in (0, 1)]
    cable(graph, cpus[0], cpus[1], slot)
    for switch in range(switches):
        cable(graph, f"n{server}.pcie{switch}", cpus[2 * switch // switches], slot)


def _nvlinks(graph: Any, server: int, gpus: list[str], facts: dict[str, Any]) -> None:
    one = wire(facts["nvlink"])
    if "pairs" in facts:
        for pair in facts["pairs"]:
            ends, count = pair.split()
            first, second = (gpus[int(end)] for end in ends.split("-"))
            cable(graph, first, second, one.times(int(count)))
        return
    inside = add_node(
        graph,
        f"n{server}.nvswitch",
        "nvswitch",
        level=1,
        server=server,
        reduces=facts.get("in_switch", False),
    )
    all_links = one.times(catalogued_link(facts["nvlink"]).per_gpu or 1)
    for gpu in gpus:
        cable(graph, gpu, inside, all_links)


def _network(graph: Any, nodes: int, facts: dict[str, Any], network: str, over: float) -> None:
    """Rail switches and their spine, or one switch. A card's ports are used as one."""
    cards = facts["gpus"] // facts["nics"]["gpus"]
    port = wire(facts["nics"]["link"]).times(facts["nics"]["ports"])
    trunk = wire(facts["nics"]["link"], between_switches=True).times(facts["nics"]["ports"] * nodes / over)
    top = add_node(graph, "spine" if network == "rail" else "switch", "switch", level=4, reduces=True)
    for card in range(cards):
        rail = top
        if network == "rail" and cards > 1:
            rail = add_node(graph, f"rail{card}", "switch", level=3, reduces=True)
            cable(graph, rail, top, trunk)
        for server in range(nodes):
            cable(graph, f"n{server}.nic{card}", rail, port)
