"""What a run on a cluster gives back: the ranks' results, and what crossed each link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from labkit.hardware.units import show_bytes
from labkit.network.cluster.counters import LinkBytes
from labkit.network.results import RankResults


@dataclass(frozen=True, eq=False, repr=False)
class ClusterResults(RankResults):
    """The results of all ranks in rank order, as `RankResults`.

    Attributes
    ----------
    links : mapping of str to LinkBytes
        What the devices of each link counted during the run, both ways: payload, headers, acknowledgements, and
        the launcher's own few kilobytes.
    restarts : int
        How often all ranks were started anew.
    """

    links: Mapping[str, LinkBytes] = field(default_factory=dict)
    restarts: int = 0

    def to_dict(self) -> dict[str, Any]:
        links = {name: one.to_dict() for name, one in self.links.items()}
        return super().to_dict() | {"links": links, "restarts": self.restarts}

    def __repr__(self) -> str:
        return "Cluster" + super().__repr__().removeprefix("Rank")

    def _repr_html_(self) -> str:
        from labkit.hardware.html import table

        rows = [(name, show_bytes(one.forth), show_bytes(one.back)) for name, one in self.links.items()]
        head = ("link", "bytes from its first end", "from its second")
        return super()._repr_html_() + table(head, rows, "Counted by the links' devices (measured)")


def extended(results: RankResults, links: Mapping[str, LinkBytes], restarts: int) -> ClusterResults:
    """The same results, with what the links counted."""
    known = {one.name: getattr(results, one.name) for one in fields(RankResults)}
    return ClusterResults(**known, links=links, restarts=restarts)
