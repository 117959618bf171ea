"""The textbook topologies: ring, star, full mesh, torus, leaf and spine, fat tree, dragonfly, PCIe tree.

In all of them a link is one direction; two nodes are always joined in both.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from labkit.errors import LabkitError
from labkit.network.fabric.topology import Topology, add_node, afford, cable, each, new_graph, whole
from labkit.network.fabric.wires import Wire, custom, wire


def given(link: Any, bandwidth: Any, latency: Any, where: str, *, between_switches: bool = False) -> Wire:
    """A wire from the catalogue's `link`, with bandwidth or latency overridden where given."""
    if bandwidth is not None and latency is not None:
        return custom(bandwidth, latency, where)
    base = wire(link, between_switches=between_switches)
    if bandwidth is None and latency is None:
        return base
    return custom(
        base.bandwidth if bandwidth is None else bandwidth,
        base.latency if latency is None else latency,
        where,
    )


def star(nodes: int = 8, link: str = "ndr", bandwidth: Any = None, latency: Any = None) -> Topology:
    """Hosts of one GPU around one switch that never blocks; `bandwidth` may be a sequence, one a host."""
    nodes = whole(nodes, "nodes", 2)
    afford("star", nodes, nodes + 1, 2 * nodes)
    graph = new_graph()
    hosts = [add_node(graph, f"g{number}", "gpu") for number in range(nodes)]
    add_node(graph, "switch", "switch", level=1)
    rates, delays = each(bandwidth, nodes, "bandwidth"), each(latency, nodes, "latency")
    made: dict[Any, Wire] = {}
    for host, speed, wait in zip(hosts, rates, delays, strict=True):
        if (speed, wait) not in made:
            made[speed, wait] = given(link, speed, wait, f"{host}->switch")
        cable(graph, host, "switch", made[speed, wait])
    return Topology(f"star of {nodes}", graph, tuple(hosts))


def ring(nodes: int = 8, link: str = "nvlink3", bandwidth: Any = None, latency: Any = None) -> Topology:
    """GPUs in a circle, each joined to the next and the one before."""
    made = torus((whole(nodes, "nodes", 2),), link, bandwidth, latency)
    return Topology(f"ring of {nodes}", made.graph, made.gpus, made.routing, made.dims)


def full_mesh(nodes: int = 8, link: str = "nvlink3", bandwidth: Any = None, latency: Any = None) -> Topology:
    """A link from every GPU to every other: nothing ever shares one."""
    nodes = whole(nodes, "nodes", 2)
    afford("full mesh", nodes, nodes, nodes * (nodes - 1))
    graph, each_wire = new_graph(), given(link, bandwidth, latency, "between the GPUs")
    gpus = [add_node(graph, f"g{number}", "gpu") for number in range(nodes)]
    for one, other in itertools.combinations(gpus, 2):
        cable(graph, one, other, each_wire)
    return Topology(f"full mesh of {nodes}", graph, tuple(gpus))


def torus(
    dims: Sequence[int] = (4, 4, 4), link: str = "tpu-v4", bandwidth: Any = None, latency: Any = None
) -> Topology:
    """A grid whose rows close into rings; GPUs pass traffic on, one dimension after the other.

    A dimension of 2 has one cable between its two GPUs, not two.
    """
    sizes = tuple(whole(size, "a side of the torus", 1) for size in dims)
    count = math.prod(sizes)
    afford("torus", count, count, 2 * len(sizes) * count)
    if count < 2:
        raise LabkitError(
            f"A torus of {'x'.join(map(str, sizes))} has nobody to talk to: make a side larger."
        )
    graph, each_wire = new_graph(), given(link, bandwidth, latency, "between the GPUs")
    places = list(itertools.product(*map(range, sizes)))
    names = {at: f"g{number}" for number, at in enumerate(places)}
    for at, name in names.items():
        add_node(graph, name, "gpu", transit=True, at=at)
    for at, dimension in itertools.product(places, range(len(sizes))):
        ahead = list(at)
        ahead[dimension] = (at[dimension] + 1) % sizes[dimension]
        if sizes[dimension] > 1:
            cable(graph, names[at], names[tuple(ahead)], each_wire)
    shape = "x".join(map(str, sizes))
    return Topology(f"torus {shape}", graph, tuple(names.values()), "dimension-ordered", sizes)


def leaf_spine(
    racks: int = 4,
    hosts: int = 8,
    spines: int = 1,
    oversubscription: float = 1.0,
    link: str = "ndr",
    bandwidth: Any = None,
    latency: Any = None,
) -> Topology:
    """Racks of `hosts`, a leaf switch each, and every leaf joined to every spine: the network of most clusters.

    With `oversubscription` o a leaf's uplinks, all together, carry an o-th of what its hosts can send.
    """
    racks, hosts, spines = whole(racks, "racks"), whole(hosts, "hosts"), whole(spines, "spines")
    if not 0 < oversubscription < math.inf:
        raise LabkitError(f"oversubscription={oversubscription!r} must be above zero; 1 means none.")
    count = racks * hosts
    if count < 2:
        raise LabkitError(
            "A leaf-spine network of one host has nobody to talk to: ask for more racks or hosts."
        )
    afford("leaf-spine network", count, count + racks + spines, 2 * count + 2 * racks * spines)
    graph = new_graph()
    gpus: list[str] = []
    down = given(link, bandwidth, latency, "host->leaf")
    up = given(link, bandwidth, latency, "leaf->spine", between_switches=True)
    up = Wire(down.bandwidth * hosts / spines / oversubscription, up.latency, up.kind)
    for spine in range(spines):
        add_node(graph, f"spine{spine}", "switch", level=2)
    for rack in range(racks):
        leaf = add_node(graph, f"leaf{rack}", "switch", level=1)
        for spine in range(spines):
            cable(graph, leaf, f"spine{spine}", up)
        for _ in range(hosts):
            gpus.append(add_node(graph, f"g{len(gpus)}", "gpu", rack=rack))
            cable(graph, gpus[-1], leaf, down)
    over = f", {oversubscription:g}:1 oversubscribed" if oversubscription != 1 else ""
    return Topology(f"{racks} racks of {hosts}{over}", graph, tuple(gpus), "ecmp")


def fat_tree(
    k: int = 4, oversubscription: int = 1, link: str = "ndr", bandwidth: Any = None, latency: Any = None
) -> Topology:
    """Al-Fares' tree of k-port switches (SIGCOMM 2008): k pods, k^3/4 hosts when not oversubscribed.

    With `oversubscription` o every edge switch serves o times as many hosts over the same uplinks.
    """
    k, over = whole(k, "k", 2), whole(oversubscription, "oversubscription", 1)
    if k % 2:
        raise LabkitError(f"k={k} is odd: half of a switch's ports lead down and half up, so k must be even.")
    half = k // 2
    count = k * half * half * over
    afford("fat tree", count, count + 5 * half * half, 2 * count + 4 * k * half * half)
    graph = new_graph()
    down = given(link, bandwidth, latency, "host->edge")
    up = given(link, bandwidth, latency, "edge->core", between_switches=True)
    for i, j in itertools.product(range(half), repeat=2):
        add_node(graph, f"core{i}.{j}", "switch", level=3)
    gpus = [gpu for pod in range(k) for gpu in _pod(graph, pod, half, over, down, up)]
    name = f"fat tree k={k}" + (f", {over}:1 oversubscribed" if over > 1 else "")
    return Topology(name, graph, tuple(gpus), "ecmp")


def _pod(graph: Any, pod: int, half: int, over: int, down: Wire, up: Wire) -> list[str]:
    gpus = []
    for i in range(half):
        above = add_node(graph, f"agg{pod}.{i}", "switch", level=2)
        for j in range(half):
            cable(graph, above, f"core{i}.{j}", up)
    for i in range(half):
        edge = add_node(graph, f"edge{pod}.{i}", "switch", level=1)
        for j in range(half):
            cable(graph, edge, f"agg{pod}.{j}", up)
        for j in range(half * over):
            gpus.append(add_node(graph, f"g{(pod * half + i) * half * over + j}", "gpu"))
            cable(graph, gpus[-1], edge, down)
    return gpus


def dragonfly(
    groups: int | None = None,
    routers: int = 4,
    hosts: int = 2,
    link: str = "slingshot11",
    bandwidth: Any = None,
    latency: Any = None,
) -> Topology:
    """Groups of routers that all know each other, and a cable between every two groups (Kim and others, ISCA 2008).

    `routers` a group, `hosts` a router; by default so many groups that every router has `hosts` global cables.
    """
    routers, hosts = whole(routers, "routers"), whole(hosts, "hosts")
    groups = routers * hosts + 1 if groups is None else whole(groups, "groups")
    count = groups * routers * hosts
    if count < 2:
        raise LabkitError(
            "A dragonfly of one host has nobody to talk to: ask for more groups, routers or hosts."
        )
    afford("dragonfly", count, count + groups * routers, 2 * count + groups * (routers**2 + groups))
    graph = new_graph()
    gpus: list[str] = []
    down = given(link, bandwidth, latency, "host->router")
    across = given(link, bandwidth, latency, "router->router", between_switches=True)
    for group, router in itertools.product(range(groups), range(routers)):
        name = add_node(graph, f"r{group}.{router}", "switch", level=1, group=group)
        for other in range(router):
            cable(graph, name, f"r{group}.{other}", across)
        for _ in range(hosts):
            gpus.append(add_node(graph, f"g{len(gpus)}", "gpu", group=group))
            cable(graph, gpus[-1], name, down)
    for one, other in itertools.combinations(range(groups), 2):
        # The cable to the k-th next group leaves from router k - 1, round and round.
        there, back = (other - one - 1) % routers, (one - other - 1) % groups % routers
        cable(graph, f"r{one}.{there}", f"r{other}.{back}", across)
    return Topology(f"dragonfly {groups}x{routers}x{hosts}", graph, tuple(gpus))


def pcie_tree(
    sockets: int = 2, switches: int = 2, gpus: int = 2, generation: int = 4, socket_link: Any = None
) -> Topology:
    """GPUs below PCIe switches below CPUs: `gpus` a switch, `switches` a socket.

    `socket_link` is the bandwidth between the two sockets; without one it is taken to be that of one slot.
    """
    sockets, switches, gpus = whole(sockets, "sockets"), whole(switches, "switches"), whole(gpus, "gpus")
    slot, graph = wire(f"pcie{whole(generation, 'generation', 3)}"), new_graph()
    names: list[str] = []
    between = slot if socket_link is None else custom(socket_link, slot.latency, "between the sockets")
    for socket, switch in itertools.product(range(sockets), range(switches)):
        cpu, below = f"cpu{socket}", f"pcie{socket}.{switch}"
        if cpu not in graph:
            add_node(graph, cpu, "cpu", level=2)
        add_node(graph, below, "pcie", level=1)
        cable(graph, below, cpu, slot)
        for _ in range(gpus):
            names.append(add_node(graph, f"g{len(names)}", "gpu"))
            cable(graph, names[-1], below, slot)
    for one, other in itertools.combinations(range(sockets), 2):
        cable(graph, f"cpu{one}", f"cpu{other}", between)
    return Topology(f"PCIe {generation} tree of {len(names)}", graph, tuple(names))
