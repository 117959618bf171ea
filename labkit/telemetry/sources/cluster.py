"""The clusters of this process: what each link carries, each way, and how busy each node is."""

from __future__ import annotations

import sys
import time

from labkit.telemetry.series import Reading, Series

LIVE = "labkit.network.cluster.live"
_TOO_SOON = "the cluster has just come up"


class ClusterSource:
    """For each link the bytes a second that its devices counted, each way; for each node the processor time of
    all its processes (100 % is one core). Links are hidden where they are more than eight.

    The module that knows the clusters is looked for, never imported: without a cluster nothing is read.
    """

    def __init__(self) -> None:
        self._before: dict[str, tuple[float, float]] = {}  # key of a series -> when, and its count

    def read(self) -> list[Reading]:
        module = sys.modules.get(LIVE)
        if module is None:
            return []
        counts = [*_link_counts(module.links()), *_node_counts(module.nodes())]
        now = time.monotonic()
        before, self._before = self._before, {series.key: (now, count) for series, count, _ in counts}
        return [
            _rate(series, count * scale, before.get(series.key), now, scale)
            for series, count, scale in counts
        ]

    def close(self) -> None:
        """Nothing is held open."""


def _link_counts(links: tuple) -> list[tuple[Series, float, float]]:
    found = []
    for link in links:
        for way, (start, end) in (("forth", link.ends), ("back", link.ends[::-1])):
            key = f"cluster.{link.cluster}.{link.link}.{way}"
            name = f"Link {start} to {end}"
            series = Series(key, name, "MB/s", "measured", "cluster link", hidden=len(links) > 8)
            found.append((series, float(getattr(link, way)), 1e-6))
    return found


def _node_counts(nodes: tuple) -> list[tuple[Series, float, float]]:
    return [
        (
            Series(
                f"cluster.{node.cluster}.{node.node}",
                f"Node {node.node} CPU",
                "%",
                "measured",
                "cluster node",
            ),
            node.cpu_s,
            100.0,
        )
        for node in nodes
    ]


def _rate(
    series: Series, scaled: float, before: tuple[float, float] | None, now: float, scale: float
) -> Reading:
    if before is None or now <= before[0]:
        return Reading(series, None, _TOO_SOON)
    return Reading(series, max(0.0, (scaled - before[1] * scale) / (now - before[0])))
