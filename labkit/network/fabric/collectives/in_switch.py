"""All-reduce in the switches: data goes up once and comes down once, and no GPU adds anything."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from labkit.errors import LabkitError
from labkit.network.fabric.schedule import Schedule, from_list
from labkit.network.fabric.team import Team

Sends = list[tuple[int, int, float, list[int]]]


def all_reduce(team: Team, size: float) -> Schedule:
    """Everyone sends its data into a tree of switches, which add, and send the sum back down to all.

    Each GPU sends and receives `size` once, whatever n (as SHARP does; Graham and others, COMHPC 2016).
    """
    above = _tree(team)
    places = [int(node) for node in team.nodes] + sorted(set(above.values()))
    number = {node: place for place, node in reversed(list(enumerate(places)))}
    sends: Sends = []
    arrived: dict[int, list[int]] = {}
    for node in sorted(above, key=lambda each: -_depth(each, above)):
        arrived.setdefault(above[node], []).append(len(sends))
        sends.append((number[node], number[above[node]], size, arrived.get(node, [])))
    root = next(node for node in above.values() if node not in above)
    ready = {root: arrived[root]}
    for node in sorted(above, key=lambda each: _depth(each, above)):
        ready[node] = [len(sends)]
        sends.append((number[above[node]], number[node], size, ready[above[node]]))
    return from_list(np.array(places), sends)


def nvls(team: Team, size: float) -> Schedule:
    """NVLink SHARP around one switch: each GPU has the switch add one n-th of everyone's data, and multicast it.

    Each GPU sends its data and the sum of its share, size (1 + 1/n), and receives as much.
    """
    above, n = _tree(team), team.size
    if len(set(above.values())) != 1:
        raise LabkitError(
            "'nvls' needs one switch that all ranks are joined to: use 'in-switch', or one server."
        )
    switch, ranks = n, range(n)
    sends: Sends = []
    for rank in ranks:
        sends.append((rank, switch, size, []))
    sends.append(
        (switch, switch, 0.0, list(ranks))
    )  # all data of this chunk has come: from here on it is added
    for rank in ranks:
        sends.append((switch, rank, size / n, [n]))
    for rank in ranks:
        sends.append((rank, switch, size / n, [n + 1 + rank]))
    sends.append((switch, switch, 0.0, [2 * n + 1 + rank for rank in ranks]))
    for rank in ranks:
        sends.append((switch, rank, size, [3 * n + 1]))
    nodes = team.nodes[team.groups[0]]
    return from_list(np.append(nodes, next(iter(above.values()))), sends)


def _tree(team: Team) -> dict[int, int]:
    """Node number of every rank and switch of the tree -> that of the switch above it; the root has none."""
    import networkx as nx

    graph, names = team.topology.graph, list(team.topology.graph.nodes)
    if len(team.groups) != 1:
        raise LabkitError("Reduction in the switches is planned for one group of ranks at a time.")
    gpus = {names[node] for node in team.nodes[team.groups[0]]}
    inner = graph.subgraph([node for node in graph if node in gpus or graph.nodes[node]["kind"] != "gpu"])
    best: dict[Any, Any] = {}
    roots = [node for node in inner if graph.nodes[node]["kind"] in ("switch", "nvswitch")]
    for root in sorted(roots, key=lambda node: -graph.nodes[node]["level"]):
        # Nearer to all than the best so far, or of no interest: from most roots that ends the search early.
        nearer = _longest(best) - 2 if best else None
        paths = nx.single_source_shortest_path(inner, root, nearer)
        paths = {gpu: paths[gpu] for gpu in gpus if gpu in paths and not gpus & set(paths[gpu][:-1])}
        if len(paths) == len(gpus):
            best = paths
    if not best:
        raise LabkitError(
            f"No switch of {team.topology.name} is joined to all ranks, so none can add for them."
        )
    return _reducing(team, best)


def _longest(paths: dict[Any, Any]) -> int:
    return max(map(len, paths.values()))


def _reducing(team: Team, paths: dict[Any, Any]) -> dict[int, int]:
    """Of the paths from the root, the switches that add; cards and PCIe switches only pass data on."""
    nodes, place, above = team.topology.graph.nodes, team.topology.place, {}
    for path in paths.values():
        stops = [node for node in path[:-1] if nodes[node]["kind"] in ("switch", "nvswitch")] + [path[-1]]
        if unable := [stop for stop in stops[:-1] if not nodes[stop].get("reduces", True)]:
            raise LabkitError(f"{unable[0]} in {team.topology.name} cannot add: use 'ring' or 'double-tree'.")
        for over, under in itertools.pairwise(stops):
            above[place[under]] = place[over]
    return above


def _depth(node: int, above: dict[int, int]) -> int:
    return 1 + _depth(above[node], above) if node in above else 0
