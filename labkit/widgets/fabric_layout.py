"""Where to draw the nodes of a fabric: tori as grids, trees in storeys, everything else in a circle."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

Places = dict[Any, tuple[float, float]]


def places(topology: Any) -> Places:
    """Node -> (x, y) for a `labkit.network.fabric.Topology`."""
    nodes = topology.graph.nodes
    if len(topology.dims) == 1 or all(
        facts["kind"] == "gpu" and "at" not in facts for _, facts in nodes(data=True)
    ):
        return _circle(nodes)
    if topology.dims:
        return {node: _projected(facts["at"]) for node, facts in nodes(data=True)}
    return _storeys(topology.graph)


def strokes(topology: Any, one: Any, other: Any, where: Places) -> list[tuple[tuple[float, float], ...]]:
    """The lines that draw a cable: one, or, where a torus closes behind its back, a stub at either end."""
    ends = [topology.graph.nodes[node].get("at") for node in (one, other)]
    if len(topology.dims) < 2 or max(abs(a - b) for a, b in zip(*ends, strict=True)) < 2:
        return [(where[one], where[other])]
    return [
        (where[node], _outside(at, ends[not turn]))
        for turn, (node, at) in enumerate(zip((one, other), ends, strict=True))
    ]


def _outside(at: tuple[int, ...], other: tuple[int, ...]) -> tuple[float, float]:
    """A little beyond the border of the torus."""
    beyond = [a if a == b else a + (0.45 if a > b else -0.45) for a, b in zip(at, other, strict=True)]
    return _projected(beyond)


def _circle(nodes: Iterable[Any]) -> Places:
    names = list(nodes)
    turn = 2 * math.pi / len(names)
    return {name: (math.sin(turn * number), math.cos(turn * number)) for number, name in enumerate(names)}


def _projected(at: Sequence[float]) -> tuple[float, float]:
    """The last dimension to the right, the one before down, and one more a little askew."""
    x, y = float(at[-1]), -float(at[-2])
    depth = at[-3] if len(at) > 2 else 0
    return x + 0.31 * depth, y + 0.23 * depth


def _storeys(graph: Any) -> Places:
    """Level by level, every node above the middle of those it is joined to below, none above another."""
    levels: dict[int, list[Any]] = {}
    for node, facts in graph.nodes(data=True):
        levels.setdefault(facts["level"], []).append(node)
    found: Places = {}
    for height, level in enumerate(sorted(levels)):
        wish = {node: _middle(graph, node, found, order) for order, node in enumerate(levels[level])}
        ordered = sorted(levels[level], key=wish.__getitem__)
        width = max(len(names) for names in levels.values())
        for order, node in enumerate(ordered):
            found[node] = ((order + 0.5) * width / len(ordered), float(height))
    return found


def _middle(graph: Any, node: Any, found: Places, order: int) -> float:
    below = [found[other][0] for other in graph.successors(node) if other in found]
    return sum(below) / len(below) if below else float(order)
