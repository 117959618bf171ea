"""A topology: a networkx graph whose edges are links with a bandwidth and a latency, and whose GPUs have an order.

Nodes carry ``kind`` (gpu, nvswitch, switch, nic, pcie, cpu), ``server`` (which machine, or None), ``level`` (height
in a drawing) and, on a torus, ``at`` (coordinates). Edges carry ``bandwidth`` (bytes/s), ``latency`` (s) and
``kind`` (catalogue id); each edge is one direction. Traffic passes through whatever is not an end: GPUs pass
traffic on only where ``transit`` says so, as in a ring or a torus.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.errors import LabkitError
from labkit.hardware.units import show_bytes
from labkit.network.fabric.flows import delay, rate
from labkit.network.fabric.wires import Wire

if TYPE_CHECKING:
    import networkx as nx

MOST_GPUS = 200_000
BYTES_A_NODE, BYTES_A_LINK = 1_000, 700  # of a networkx graph with these attributes, seen with tracemalloc


@dataclass(frozen=True, eq=False)
class Topology:
    """A checked graph. `gpus` are its GPU nodes in the order of ranks; `routing` is how it is routed by default.

    Raises
    ------
    LabkitError
        For a graph without GPUs, in several pieces, or with a link that has no bandwidth or a negative latency.
    """

    name: str
    graph: nx.DiGraph
    gpus: tuple[str, ...]
    routing: str = "shortest"
    dims: tuple[int, ...] = ()
    gpu: str | None = None
    notes: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not self.gpus:
            raise LabkitError(f"The topology {self.name} has no GPU: give at least one node the kind 'gpu'.")
        for tail, head, facts in self.graph.edges(data=True):
            if not (facts["bandwidth"] > 0 and facts["latency"] >= 0):
                rate(facts["bandwidth"], f"{tail}->{head}")
                delay(facts["latency"], f"{tail}->{head}")
        self._refuse_pieces()

    def __repr__(self) -> str:
        return f"Topology({self.name}: {len(self.gpus)} GPUs, {len(self.links.names)} links)"

    def _refuse_pieces(self) -> None:
        import networkx as nx

        if nx.is_strongly_connected(self.graph):
            return
        pieces = sorted(nx.strongly_connected_components(self.graph), key=len)
        lost, rest = min(pieces[0], key=str), min(pieces[-1], key=str)
        raise LabkitError(
            f"{self.name}: this topology is in {len(pieces)} pieces. Nothing leads from {lost} to {rest} and back; "
            "join them with a link in both directions."
        )

    @cached_property
    def links(self) -> Links:
        """The directed links, numbered."""
        return Links.of(self.graph)

    @cached_property
    def place(self) -> dict[str, int]:
        """Name of a node -> its number."""
        return {node: number for number, node in enumerate(self.graph.nodes)}

    def servers(self) -> tuple[tuple[str, ...], ...]:
        """The GPUs of each server, in order; a GPU outside any server is one by itself."""
        found: dict[Any, list[str]] = {}
        for gpu in self.gpus:
            server = self.graph.nodes[gpu].get("server")
            found.setdefault(gpu if server is None else server, []).append(gpu)
        return tuple(map(tuple, found.values()))


@dataclass(frozen=True, eq=False)
class Links:
    """Arrays over the directed links: node numbers `tail` and `head`, `capacity` bytes/s, `latency` seconds."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    tail: np.ndarray
    head: np.ndarray
    capacity: np.ndarray
    latency: np.ndarray

    @classmethod
    def of(cls, graph: nx.DiGraph) -> Links:
        number = {node: index for index, node in enumerate(graph.nodes)}
        edges = list(graph.edges(data=True))
        return cls(
            names=tuple(f"{tail}->{head}" for tail, head, _ in edges),
            kinds=tuple(facts.get("kind", "custom") for _, _, facts in edges),
            tail=np.array([number[tail] for tail, _, _ in edges], np.int32),
            head=np.array([number[head] for _, head, _ in edges], np.int32),
            capacity=np.array([facts["bandwidth"] for *_, facts in edges], float),
            latency=np.array([facts["latency"] for *_, facts in edges], float),
        )

    def cables(self, kind: str) -> float:
        """How many cables of a catalogue id there are; a thick one counts as so many of the thinnest."""
        rates = self.capacity[[name == kind for name in self.kinds]]
        return float(rates.sum() / rates.min() / 2) if len(rates) else 0.0


def new_graph() -> nx.DiGraph:
    try:
        import networkx as nx
    except ImportError:
        raise LabkitError(
            "Topologies are networkx graphs: pip install 'gpu-labkit[lab]' brings networkx."
        ) from None
    return nx.DiGraph()


def add_node(graph: nx.DiGraph, name: str, kind: str, level: int = 0, **facts: Any) -> str:
    """Add a node that passes traffic on unless it is a GPU (or says otherwise with `transit`)."""
    graph.add_node(name, **{"kind": kind, "level": level, "server": None, "transit": kind != "gpu", **facts})
    return name


def cable(graph: nx.DiGraph, one: str, other: str, there: Wire, back: Wire | None = None) -> None:
    """Join two nodes in both directions."""
    for tail, head, wire in ((one, other, there), (other, one, back or there)):
        graph.add_edge(tail, head, bandwidth=wire.bandwidth, latency=wire.latency, kind=wire.kind)


def afford(name: str, gpus: int, nodes: int, links: int) -> None:
    """Refuse a topology that is too large before it eats the memory; `nodes` includes the GPUs."""
    if gpus > MOST_GPUS:
        size = show_bytes(nodes * BYTES_A_NODE + links * BYTES_A_LINK)
        raise LabkitError(
            f"A {name} of {gpus:,} GPUs would take about {size} for its {links:,} links, before any flow is "
            f"simulated: ask for at most {MOST_GPUS:,} GPUs."
        )


def whole(value: Any, what: str, least: int = 1) -> int:
    """A whole number of something, at least `least`; LabkitError in words otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise LabkitError(f"{what}={value!r} is not a whole number of at least {least}.")
    return int(value)


def each(values: Any, count: int, what: str) -> list[Any]:
    """`values` if it is a sequence of `count`, or the one value `count` times."""
    if isinstance(values, (str, int, float, Wire)) or not isinstance(values, (Sequence, np.ndarray)):
        return [values] * count
    if len(values) != count:
        raise LabkitError(
            f"{what} has {len(values)} values, and {count} are wanted: one each, or one for all."
        )
    return list(values)
