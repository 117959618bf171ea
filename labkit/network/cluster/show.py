"""A cluster as tables: its nodes, and its links with what they have carried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.hardware.html import table
from labkit.hardware.units import show_bytes, show_time

if TYPE_CHECKING:
    from labkit.network.cluster.machine import Cluster


def tables(cluster: Cluster) -> str:
    """HTML for a notebook."""
    plan = cluster.handle.plan
    nodes = [
        (one.node, plan.address(one.node), "up" if one.alive else "down", show_time(one.cpu_s))
        for one in cluster.node_states()
    ]
    links = [
        (one.link, one.shape, *(f"{show_bytes(count)}" for count in (one.forth, one.back)))
        for one in cluster.link_states()
    ]
    caption = f"{len(nodes)} nodes, {plan.topology} ({cluster.label}). {cluster.note}".strip()
    return table(("node", "address", "state", "processor time"), nodes, caption) + table(
        ("link", "shape", "sent by its first end", "by its second"),
        links,
        "Bytes as the links' devices count them",
    )
