"""How busy links are while a simulated collective runs: over its time, and as a recording to play again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.errors import LabkitError
from labkit.hardware.units import show_time
from labkit.network.fabric.result import LABEL, CollectiveResult, Timeline
from labkit.network.fabric.topology import Topology
from labkit.telemetry.recording import Recording
from labkit.telemetry.series import Series

if TYPE_CHECKING:
    from labkit.network.fabric.machine import Fabric

INTERVAL = 0.25  # seconds of the recording between samples
SECONDS = 20.0
MOST_LANES = 12
PAUSE = 1.0  # seconds of nothing after each collective

Lanes = dict[str, np.ndarray]


def use(topology: Topology, timeline: Timeline, edges: np.ndarray) -> np.ndarray:
    """The share of each link's capacity that is used between neighbouring `edges` (seconds).

    A message's bytes are spread evenly from its start to its arrival. Shape: (len(edges) - 1, links).
    """
    hops = np.array([len(route) for route in timeline.links], np.int64)
    crossed = np.array([link for route in timeline.links for link in route], np.int64)
    length = np.maximum(timeline.finish_s - timeline.start_s, 1e-30)
    capacity, until = topology.links.capacity, []
    for edge in edges:
        there = timeline.bytes * np.clip((edge - timeline.start_s) / length, 0.0, 1.0)
        until.append(np.bincount(crossed, weights=np.repeat(there, hops), minlength=len(capacity)))
    spans = np.maximum(np.diff(edges), 1e-30)[:, None]
    return np.minimum(np.diff(np.array(until), axis=0) / capacity / spans, 1.0)


def classes(topology: Topology) -> Lanes:
    """Links by what they join, such as ``"gpu to nvswitch"``; on a torus by dimension and direction."""
    found: dict[str, list[int]] = {}
    nodes = topology.graph.nodes
    for number, (tail, head) in enumerate(topology.graph.edges):
        found.setdefault(_class((tail, nodes[tail]), (head, nodes[head]), topology), []).append(number)
    return {name: np.array(numbers) for name, numbers in found.items()}


def _class(tail: tuple[str, Any], head: tuple[str, Any], topology: Topology) -> str:
    if topology.dims:
        ways = enumerate(zip(tail[1]["at"], head[1]["at"], strict=True))
        dimension, (here, there) = next((d, pair) for d, pair in ways if pair[0] != pair[1])
        up = (there - here) % topology.dims[dimension] == 1
        return f"dimension {dimension}, {'up' if up else 'down'}"
    return f"{_stem(*tail)} to {_stem(*head)}"


def _stem(name: str, facts: Mapping[str, Any]) -> str:
    """What a node is: its kind, or, of a switch such as ``rail3``, the word it is named after."""
    word = re.match(r"[A-Za-z]{3,}", str(name))
    return word[0] if facts["kind"] == "switch" and word else facts["kind"]


def recording(
    fabric: Fabric,
    results: CollectiveResult | Mapping[str, CollectiveResult],
    lanes: str | list[str] = "classes",
    seconds: float = SECONDS,
) -> Recording:
    """Simulated load of links as a recording, for ``labkit.replay(...)``; it says that it is simulated.

    Parameters
    ----------
    results : CollectiveResult or mapping of name to CollectiveResult
        Simulated on `fabric` with ``timeline=True``. Several follow one another on one scale of time; each is a span.
    lanes : {"classes", "hottest"} or list of str
        A lane for each class of links that carries anything (the mean over its links; of many classes, the twelve
        that carry most), for each of the eight busiest links, or for the classes and links named (see `classes`).
    seconds : float
        How long the recording is to last, for all of the simulated time.

    Raises
    ------
    LabkitError
        For results without a timeline, and links that do not exist.
    """
    named = results if isinstance(results, Mapping) else {results.algorithm: results}
    if not named:
        raise LabkitError("There is no result to record: give one, or a mapping of names to results.")
    if missing := [name for name, result in named.items() if result.timeline is None]:
        raise LabkitError(
            f"{missing[0]!r} has no timeline to record: ask for one, as in all_reduce(size, timeline=True)."
        )
    chosen = _lanes(fabric.topology, named, lanes)
    total = sum(result.seconds for result in named.values())
    scale = seconds / total
    made = Recording(
        INTERVAL,
        began=0.0,
        machine=f"{LABEL}: {fabric.name}; a second here is {show_time(1 / scale)} of simulated time",
    )
    at = 0.0
    for name, result in named.items():
        at = _append(made, fabric.topology, name, result, chosen, scale, at)
    return made


def _append(
    made: Recording,
    topology: Topology,
    name: str,
    result: CollectiveResult,
    lanes: Lanes,
    scale: float,
    at: float,
) -> float:
    """Add one collective from `at` seconds of the recording on, and a pause; when the next one may begin."""
    timeline = result.timeline
    assert timeline is not None
    count = max(2, round(result.seconds * scale / INTERVAL))
    edges = np.linspace(0.0, result.seconds, count + 1)
    shares = use(topology, timeline, edges)
    number = made.begin(name, at)
    for row in shares:
        at += INTERVAL
        made.append(
            at, {_series(lane, links): 100 * float(row[links].mean()) for lane, links in lanes.items()}, {}
        )
    made.end(number, at)
    made.append(at + INTERVAL, {_series(lane, links): 0.0 for lane, links in lanes.items()}, {})
    return at + PAUSE


def _series(lane: str, links: np.ndarray) -> Series:
    of = f"mean of {len(links)} links" if len(links) > 1 else "one link"
    return Series(f"link.{lane}", lane, "%", "modelled", "link", of=of, device="Links")


def _lanes(topology: Topology, named: Mapping[str, CollectiveResult], lanes: str | list[str]) -> Lanes:
    carried = np.sum([result.links.bytes for result in named.values()], axis=0)
    if lanes == "classes":
        used = {lane: links for lane, links in classes(topology).items() if carried[links].any()}
        busiest = sorted(used, key=lambda lane: -carried[used[lane]].mean())[:MOST_LANES]
        return {lane: links for lane, links in used.items() if lane in busiest}
    names = topology.links.names
    if lanes == "hottest":
        hottest = [load.name for result in named.values() for load in result.links.hottest(8)]
        lanes = list(dict.fromkeys(hottest))[:MOST_LANES]
    known = {**{name: np.array([number]) for number, name in enumerate(names)}, **classes(topology)}
    wanted = [lanes] if isinstance(lanes, str) else lanes
    if unknown := [name for name in wanted if name not in known]:
        raise LabkitError(
            f"{unknown[0]!r} is neither a link nor a class of links of {topology.name}: use 'classes', 'hottest', or "
            f"names such as {names[0]!r} or {next(iter(classes(topology)))!r}."
        )
    return {name: known[name] for name in wanted}
