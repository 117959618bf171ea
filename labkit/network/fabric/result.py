"""What a simulated collective took, and what it did to every link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labkit.hardware.html import facts_table
from labkit.hardware.units import show_bytes, show_rate, show_time

LABEL = "simulated (modelled)"


@dataclass(frozen=True)
class LinkLoad:
    """One direction of one link: bytes carried, and the share of the whole time they kept it busy."""

    name: str
    kind: str
    bytes: float
    busy: float

    def __repr__(self) -> str:
        return f"LinkLoad({self.name}, {self.kind}: {show_bytes(self.bytes)}, {self.busy:.0%} busy, {LABEL})"


@dataclass(frozen=True, eq=False)
class LinkLoads(Sequence[LinkLoad]):
    """The load of every link, in the order of the topology's links; `bytes` and `busy` are arrays."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    bytes: np.ndarray
    busy: np.ndarray

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return tuple(self[index] for index in range(*place.indices(len(self))))
        if isinstance(place, str):
            place = self.names.index(place)
        return LinkLoad(
            self.names[place], self.kinds[place], float(self.bytes[place]), float(self.busy[place])
        )

    def __iter__(self) -> Iterator[LinkLoad]:
        return (self[place] for place in range(len(self)))

    def hottest(self, count: int = 1) -> tuple[LinkLoad, ...]:
        """The busiest links, busiest first; of equals, the first in the topology."""
        # Rounded, so that which of many equal links comes first does not hang on the last bit.
        order = np.argsort(-np.round(self.busy, 9), kind="stable")
        return tuple(self[int(place)] for place in order[:count])

    def __repr__(self) -> str:
        return f"LinkLoads({len(self)} links, {np.count_nonzero(self.bytes)} of them used, {LABEL})"


@dataclass(frozen=True, eq=False)
class Timeline:
    """When each message started and arrived, seconds, between which nodes, and over which links."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    bytes: np.ndarray
    start_s: np.ndarray
    finish_s: np.ndarray
    links: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        return f"Timeline({len(self)} messages, {LABEL})"


@dataclass(frozen=True)
class CollectiveResult:
    """Time and traffic of one collective on a fabric: simulated, never measured.

    `algorithm_bandwidth` is size over time, `bus_bandwidth` that times the factor by which nccl-tests makes
    operations comparable with a link's rate; both bytes/s. `messages` of which `simulated` were followed one by
    one, the others being exactly alike.
    """

    operation: str
    algorithm: str
    fabric: str
    ranks: int
    size_bytes: float
    seconds: float
    algorithm_bandwidth: float
    bus_bandwidth: float
    protocol: str
    routing: str
    chunks: int
    messages: int
    simulated: int
    links: LinkLoads = field(compare=False)
    timeline: Timeline | None = field(default=None, compare=False)
    calibration: str | None = None

    @property
    def label(self) -> str:
        """What stands beside the number wherever it is shown."""
        return LABEL if self.calibration is None else f"{LABEL}, constants fitted to {self.calibration}"

    @property
    def hot(self) -> LinkLoad:
        """The busiest link."""
        return self.links.hottest()[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, every link included; the timeline is left out."""
        plain = {
            name: getattr(self, name)
            for name in self.__dataclass_fields__
            if name not in ("links", "timeline")
        }
        loads = [
            {"name": load.name, "kind": load.kind, "bytes": load.bytes, "busy": load.busy}
            for load in self.links
        ]
        return {"label": self.label, **plain, "hot": self.hot.name, "links": loads}

    def __repr__(self) -> str:
        return (
            f"CollectiveResult({self.operation} {self.algorithm}, {show_bytes(self.size_bytes)} on {self.ranks} ranks "
            f"of {self.fabric}: {show_time(self.seconds)}, {show_rate(self.algorithm_bandwidth)} algorithm and "
            f"{show_rate(self.bus_bandwidth)} bus bandwidth, hot link {self.hot.name}, {self.label})"
        )

    def _repr_html_(self) -> str:
        hot = self.hot
        facts = {
            "fabric": f"{self.fabric}, {self.ranks} ranks, {self.routing} routing, protocol {self.protocol}",
            "size": show_bytes(self.size_bytes) + (f" in {self.chunks} chunks" if self.chunks > 1 else ""),
            "time": show_time(self.seconds),
            "algorithm bandwidth": show_rate(self.algorithm_bandwidth),
            "bus bandwidth": show_rate(self.bus_bandwidth),
            "hot link": f"{hot.name} ({hot.kind}): {show_bytes(hot.bytes)}, {hot.busy:.0%} of the time busy",
            "messages": f"{self.messages:,}" + (f", {self.simulated:,} of them simulated, the others being alike"
                                                if self.simulated < self.messages else ""),
        }  # fmt: skip
        return facts_table(facts, f"{self.operation}, {self.algorithm}: {self.label}")
