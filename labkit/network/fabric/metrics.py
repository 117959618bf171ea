"""What a topology is worth before anything is sent over it: hops between GPUs, bandwidth between its halves."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from labkit.errors import LabkitError
from labkit.hardware.html import facts_table
from labkit.hardware.units import show_rate
from labkit.network.fabric.routing import routes
from labkit.network.fabric.topology import Topology

MOST_GPUS = 2048


@dataclass(frozen=True)
class Metrics:
    """Links between two GPUs on the way they are routed, and what half of the GPUs can send to the other half.

    `bisection` is bytes/s in one direction between the first and the second half in the order of ranks; `full` is
    its share of what those GPUs could send if nothing but their own links held them back. Modelled.
    """

    fabric: str
    gpus: int
    links: int
    most_hops: int
    mean_hops: float
    bisection: float
    full: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __repr__(self) -> str:
        return (
            f"Metrics({self.fabric}: {self.gpus} GPUs, {self.links} links, {self.mean_hops:.3g} hops and at most "
            f"{self.most_hops}, bisection {show_rate(self.bisection)} ({self.full:.0%} of full), modelled)"
        )

    def _repr_html_(self) -> str:
        facts = {
            "GPUs, links": f"{self.gpus}, {self.links}",
            "hops": f"{self.mean_hops:.3g} on average, {self.most_hops} at most",
            "bisection": f"{show_rate(self.bisection)} one way, {self.full:.0%} of full",
        }
        return facts_table(facts, f"{self.fabric}, modelled")


def metrics(topology: Topology) -> Metrics:
    """Hops and bisection; LabkitError for more than `MOST_GPUS` GPUs, of which it would take too long."""
    count = len(topology.gpus)
    if count < 2 or count > MOST_GPUS:
        raise LabkitError(
            f"Hops and bisection are for 2 to {MOST_GPUS} GPUs, and {topology.name} has {count}."
        )
    numbers = np.array([topology.place[gpu] for gpu in topology.gpus], np.int64)
    one, other = np.nonzero(~np.eye(count, dtype=bool))
    hops = np.diff(routes(topology, numbers[one], numbers[other], topology.routing)[0])
    half = topology.gpus[: count // 2]
    crossing = bisection(topology)
    out = sum(_most_out(topology, gpu) for gpu in half)
    return Metrics(
        topology.name,
        count,
        len(topology.links.names),
        int(hops.max()),
        float(hops.mean()),
        crossing,
        crossing / out,
    )


def bisection(topology: Topology) -> float:
    """Largest flow, bytes/s, from the first half of the GPUs to the others (Ford and Fulkerson, 1956).

    GPUs that do not pass traffic on do not do so here either.
    """
    import networkx as nx

    half = len(topology.gpus) // 2
    sources, sinks = set(topology.gpus[:half]), set(topology.gpus[half:])
    passing = {node for node, facts in topology.graph.nodes(data=True) if facts["transit"]}
    graph = nx.DiGraph()
    for tail, head, facts in topology.graph.edges(data=True):
        if (tail in passing or tail in sources) and (head in passing or head in sinks):
            graph.add_edge(tail, head, capacity=facts["bandwidth"])
    graph.add_edges_from(("source of all", gpu) for gpu in sources)
    graph.add_edges_from((gpu, "sink of all") for gpu in sinks)
    return float(nx.maximum_flow_value(graph, "source of all", "sink of all"))


def _most_out(topology: Topology, gpu: str) -> float:
    """What a GPU can send over all links of its fastest kind; nobody uses NVLink and PCIe at once."""
    out = [facts for _, _, facts in topology.graph.out_edges(gpu, data=True)]
    fastest = max(out, key=lambda facts: facts["bandwidth"])["kind"]
    return float(sum(facts["bandwidth"] for facts in out if facts["kind"] == fastest))
