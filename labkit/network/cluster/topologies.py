"""The shapes a cluster can have: one switch, a tree of switches, a ring, a torus.

In a ring and a torus nodes are wired to nodes, and pass on what is not for them; each has a routing table, made
here. Packets go along the first dimension, then the second (dimension order), the shorter way round.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from labkit.errors import LabkitError
from labkit.network.cluster.plan import MAX_NODES, End, Hop, Plan, Shape, Wire

TOPOLOGIES = ("switch", "tree", "ring", "torus")


def plan(
    nodes: int,
    topology: str,
    shape: Shape,
    *,
    leaf_size: int | None = None,
    oversubscription: float = 1.0,
    dimensions: Sequence[int] | None = None,
) -> Plan:
    """The network of so many nodes.

    Parameters
    ----------
    nodes : int
        1 to 64.
    topology : {"switch", "tree", "ring", "torus"}
    shape : Shape
        Of every node's cable. The uplinks of a tree carry ``leaf_size / oversubscription`` times its bandwidth.
    leaf_size : int, optional
        Nodes a leaf switch of a tree; the square root of their number, rounded up, without it.
    oversubscription : float
        At least 1: how many times more the nodes below a leaf switch can send than its uplink carries.
    dimensions : two int, optional
        Of a torus; as square as possible without them.

    Raises
    ------
    LabkitError
        For a number of nodes, a topology or an option that makes no network.
    """
    if isinstance(nodes, bool) or not isinstance(nodes, int) or not 1 <= nodes <= MAX_NODES:
        raise LabkitError(f"A cluster of {nodes!r} nodes cannot be: say how many, from 1 to {MAX_NODES}.")
    names = tuple(f"n{number}" for number in range(nodes))
    if topology == "switch" or (nodes == 1 and topology in TOPOLOGIES):
        return _switch(names, shape)
    if topology == "tree":
        return _tree(names, shape, leaf_size, oversubscription)
    if topology == "ring":
        return _grid(names, (nodes,), shape, f"ring of {nodes}")
    if topology == "torus":
        sides = _sides(nodes, dimensions)
        return _grid(names, sides, shape, f"{sides[0]} x {sides[1]} torus")
    raise LabkitError(f"There is no topology {topology!r}: take {', '.join(map(repr, TOPOLOGIES))}.")


def _switch(nodes: tuple[str, ...], shape: Shape) -> Plan:
    wires = tuple(Wire((End(node, "eth0"), End("s0", f"s0-{node}")), shape) for node in nodes)
    return Plan("one switch", nodes, ("s0",), wires)


def _tree(nodes: tuple[str, ...], shape: Shape, leaf_size: int | None, oversubscription: float) -> Plan:
    size = math.ceil(math.sqrt(len(nodes))) if leaf_size is None else leaf_size
    if not isinstance(size, int) or size < 1:
        raise LabkitError(f"leaf_size={leaf_size!r}: a leaf switch of the tree has at least 1 node.")
    if not 1 <= oversubscription < math.inf:
        raise LabkitError(f"oversubscription={oversubscription!r}: 1 is none, 4 means four times too little.")
    up = replace(shape, bandwidth=shape.bandwidth and shape.bandwidth * size / oversubscription)
    leaves = tuple(f"leaf{number}" for number in range(math.ceil(len(nodes) / size)))
    below = [
        Wire((End(node, "eth0"), End(leaves[i // size], f"{leaves[i // size]}-{node}")), shape)
        for i, node in enumerate(nodes)
    ]
    above = [Wire((End(leaf, f"{leaf}-spine"), End("spine", f"spine-{leaf}")), up) for leaf in leaves]
    words = f"two-level tree, {size} nodes a leaf switch, oversubscribed {oversubscription:g}:1"
    return Plan(words, nodes, (*leaves, "spine"), (*below, *above))


def _sides(nodes: int, dimensions: Sequence[int] | None) -> tuple[int, int]:
    if dimensions is None:
        short = next(side for side in range(math.isqrt(nodes), 0, -1) if nodes % side == 0)
        return short, nodes // short
    sides = tuple(dimensions)
    if len(sides) != 2 or math.prod(sides) != nodes or min(sides) < 1:
        raise LabkitError(
            f"A torus of {dimensions!r} does not have {nodes} nodes: give two sides, such as (2, 4)."
        )
    return sides[0], sides[1]


Place = tuple[int, ...]


def _grid(names: tuple[str, ...], sides: tuple[int, ...], shape: Shape, words: str) -> Plan:
    """A torus of any number of dimensions; a ring has one."""
    places = list(itertools.product(*map(range, sides)))
    name = dict(zip(places, names, strict=True))
    ports = {node: itertools.count() for node in names}
    device: dict[tuple[str, str], str] = {}
    wires = []
    for place in places:
        for axis in range(len(sides)):
            a, b = name[place], name[_step(place, axis, 1, sides)]
            if a != b and (a, b) not in device:
                device[a, b], device[b, a] = (f"eth{next(ports[node])}" for node in (a, b))
                wires.append(Wire((End(a, device[a, b]), End(b, device[b, a])), shape))
    hops = [
        _hop(name[at], name[to], name[_next(at, to, sides)], device)
        for at, to in itertools.permutations(places, 2)
    ]
    return Plan(words, names, (), tuple(wires), tuple(hops))


def _hop(at: str, to: str, following: str, device: dict[tuple[str, str], str]) -> Hop:
    return Hop(at, to, device[at, following], None if following == to else following)


def _next(at: Place, to: Place, sides: tuple[int, ...]) -> Place:
    """The neighbour of ``at`` on the way to ``to``: first along the first axis on which they differ."""
    axis = next(axis for axis in range(len(sides)) if at[axis] != to[axis])
    forward = (to[axis] - at[axis]) % sides[axis]
    return _step(at, axis, 1 if forward <= sides[axis] - forward else -1, sides)


def _step(place: Place, axis: int, by: int, sides: tuple[int, ...]) -> Place:
    return (*place[:axis], (place[axis] + by) % sides[axis], *place[axis + 1 :])
