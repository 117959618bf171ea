"""Topologies of your own: from YAML, or from what tools print.

A YAML file lists nodes and links::

    name: two pairs
    nodes:
      gpu: [a0, a1, b0, b1]
      switch: [left, right]
    links:
      - {between: [a0, left], link: nvlink3, count: 4}
      - {between: [left, right], bandwidth: 25Gbit/s, latency: 5us}
    servers: [[a0, a1], [b0, b1]]     # which GPUs share a machine (optional)
    routing: shortest                 # or ecmp (optional)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from labkit.errors import LabkitError
from labkit.network.fabric.shapes import given
from labkit.network.fabric.topology import Topology, add_node, new_graph, whole

_LEVELS = {"gpu": 0, "pcie": 1, "nvswitch": 1, "nic": 2, "cpu": 2, "switch": 3}
_KEYS = {"name", "nodes", "links", "servers", "routing"}
_HELP = "a topology has 'nodes' (kind: [names]) and 'links' (a list of {between: [a, b], link: ndr})"


def from_yaml(source: str | os.PathLike[str]) -> Topology:
    """A topology from YAML text or a YAML file.

    Raises
    ------
    LabkitError
        For a file that cannot be read, is not YAML, or is a topology of another tool.
    """
    text, where = text_of(source)
    return from_mapping(_parsed(text, where), where)


def from_mapping(facts: Any, where: str = "the topology") -> Topology:
    """A topology from plain dictionaries and lists, as YAML or JSON give them."""
    if not isinstance(facts, Mapping) or not isinstance(facts.get("nodes"), Mapping) or "links" not in facts:
        found = (
            f"its keys are {', '.join(map(str, facts))[:80]}"
            if isinstance(facts, Mapping)
            else "it is no mapping"
        )
        raise LabkitError(f"{where} is not a topology of labkit ({found}): {_HELP}.")
    if unknown := set(facts) - _KEYS:
        raise LabkitError(
            f"{where} has the key {min(map(str, unknown))!r}, which labkit does not know: {_HELP}."
        )
    graph = new_graph()
    for kind, names in facts["nodes"].items():
        if kind not in _LEVELS:
            raise LabkitError(f"{where} has nodes of kind {kind!r}: known are {', '.join(_LEVELS)}.")
        for name in names:
            add_node(graph, str(name), kind, _LEVELS[kind])
    for entry in facts["links"]:
        _add_link(graph, entry, where)
    for number, server in enumerate(facts.get("servers", ())):
        for gpu in server:
            _node(graph, gpu, where)["server"] = number
    gpus = tuple(str(name) for name in facts["nodes"].get("gpu", ()))
    return Topology(str(facts.get("name", where)), graph, gpus, str(facts.get("routing", "shortest")))


def _add_link(graph: Any, entry: Any, where: str) -> None:
    if not isinstance(entry, Mapping) or len(entry.get("between", ())) != 2:
        raise LabkitError(f"{where} has the link {entry!r}: write {{between: [a, b], link: ndr}}.")
    one, other = map(str, entry["between"])
    for end in (one, other):
        _node(graph, end, where)
    if "link" not in entry and not {"bandwidth", "latency"} <= set(entry):
        raise LabkitError(
            f"{where}: the link {one}-{other} needs a 'link', or a 'bandwidth' and a 'latency'."
        )
    made = given(entry.get("link"), entry.get("bandwidth"), entry.get("latency"), f"{one}-{other}")
    made = made.times(whole(entry.get("count", 1), f"count of {one}-{other}"))
    ends = [(one, other)] if entry.get("one_way") else [(one, other), (other, one)]
    for tail, head in ends:
        graph.add_edge(tail, head, bandwidth=made.bandwidth, latency=made.latency, kind=made.kind)


def _node(graph: Any, name: Any, where: str) -> dict[str, Any]:
    if str(name) not in graph:
        raise LabkitError(f"{where} speaks of {name!r}, which is not among its nodes.")
    facts: dict[str, Any] = graph.nodes[str(name)]
    return facts


def text_of(source: str | os.PathLike[str]) -> tuple[str, str]:
    """A text and what to call it: the source itself if it has several lines, else the file of that name."""
    if isinstance(source, str) and "\n" in source:
        return source, "the text"
    where = os.fspath(source)
    try:
        with open(where, encoding="utf-8") as stream:
            return stream.read(), where
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise LabkitError(f"The topology file {where} cannot be read: {why}.") from None


def _parsed(text: str, where: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" at line {mark.line + 1}" if mark else ""
        raise LabkitError(f"{where} is not YAML{line}: {_HELP}.") from None
