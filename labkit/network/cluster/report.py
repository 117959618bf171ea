"""What ``labkit cluster status`` shows: every cluster of this user, its links and nodes, measured over a moment."""

from __future__ import annotations

import time
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.units import show_rate
from labkit.network.cluster import counters, handle, state

_MOMENT_S = 0.25


def snapshot() -> list[dict[str, Any]]:
    """Every cluster: name, owner, topology, links with their rates in bytes/s, nodes with their processor share."""
    return [_one(place) for place in state.places()]


def _one(place: state.Place) -> dict[str, Any]:
    told: dict[str, Any] = {"name": place.name, "owner": place.owner, "alive": place.alive()}
    if not told["alive"]:
        return told
    try:
        found = handle.attach(place.id)
    except LabkitError as error:
        return told | {"error": str(error)}
    try:
        return told | _measured(found)
    finally:
        found.close()


def _measured(found: handle.Handle) -> dict[str, Any]:
    clock = counters.NodeClock(found)
    began, bytes_before, cpu_before = time.monotonic(), counters.link_bytes(found), clock.read()
    time.sleep(_MOMENT_S)
    bytes_after, cpu_after = counters.link_bytes(found), clock.read()
    passed = time.monotonic() - began
    links = [
        {
            "link": wire.name,
            "shape": str(wire.shape),
            "forth": (bytes_after[wire.name].forth - bytes_before[wire.name].forth) / passed,
            "back": (bytes_after[wire.name].back - bytes_before[wire.name].back) / passed,
        }
        for wire in found.plan.wires
    ]
    nodes = [
        {
            "node": node,
            "address": found.plan.address(node),
            "cpu": (cpu_after[node] - cpu_before[node]) / passed,
        }
        for node in found.plan.nodes
    ]
    return {"topology": found.plan.topology, "mode": found.mode, "links": links, "nodes": nodes}


def text(clusters: list[dict[str, Any]]) -> str:
    """The same for people."""
    if not clusters:
        return "No cluster is up: 'labkit cluster up --nodes 4 --bandwidth 1Gbit/s' makes one."
    return "\n\n".join(map(_paragraph, clusters))


def _paragraph(one: dict[str, Any]) -> str:
    head = f"{one['name']}, process {one['owner']}"
    if not one["alive"]:
        return f"{head}: dead; 'labkit cluster clean' sweeps what it has left."
    if "error" in one:
        return f"{head}: {one['error']}"
    lines = [
        f"{head}: {len(one['nodes'])} nodes, {one['topology']} ({one['mode']}); rates measured over {_MOMENT_S} s"
    ]
    for node in one["nodes"]:
        lines.append(f"  {node['node']:<14} {node['address']:<14} {100 * node['cpu']:5.0f} % of a core")
    for link in one["links"]:
        forth, back = (show_rate(link[way]) for way in ("forth", "back"))
        lines.append(f"  {link['link']:<14} {link['shape']:<30} {forth:>12} forth {back:>12} back")
    return "\n".join(lines)
