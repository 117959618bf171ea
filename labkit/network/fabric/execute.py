"""A schedule on a topology: routes, delays, folding, the engine, and how many bytes each link carried."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from labkit.errors import LabkitError
from labkit.network.fabric import engine
from labkit.network.fabric.folding import fold
from labkit.network.fabric.protocols import Protocol, media
from labkit.network.fabric.routing import Routes, repeated, routes
from labkit.network.fabric.schedule import (
    Schedule,
    Steps,
    afford_messages,
    circle,
    pipelined,
)
from labkit.network.fabric.topology import Topology


@dataclass(frozen=True, eq=False)
class Outcome:
    """`seconds` until the last message has arrived, and `link_bytes` by link of the topology.

    `messages` counts them all, `simulated` those that were looked at one by one; fewer when folded. `schedule`,
    `start` and `finish` are those of the messages simulated.
    """

    seconds: float
    link_bytes: np.ndarray
    messages: int
    simulated: int
    schedule: Schedule
    start: np.ndarray
    finish: np.ndarray
    found: Routes

    @property
    def routes(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the links each simulated message crossed (of nothing folded)."""
        at, crossed = repeated(self.found, self.schedule.which)
        return tuple(tuple(crossed[one:end].tolist()) for one, end in itertools.pairwise(at.tolist()))


@dataclass(frozen=True, eq=False)
class _Case:
    """What the engine needs, of all links or of one link of each colour."""

    plan: Steps | Schedule
    routes: Routes
    weight: np.ndarray
    capacity: np.ndarray
    delay: np.ndarray


def execute(
    topology: Topology,
    plan: Steps | Schedule,
    protocol: Protocol,
    policy: str,
    seed: int,
    chunks: int,
    folding: bool,
) -> Outcome:
    """Simulate a plan cut into `chunks`.

    Raises
    ------
    LabkitError
        For a schedule that waits for itself, and one too large for memory.
    """
    messages, links = plan.messages, topology.links
    found = routes(topology, plan.places[messages.source], plan.places[messages.target], policy, seed)
    piece = messages.size / chunks
    wait = _over_routes(found, links.latency)
    delay = wait + protocol.overhead(piece, wait, _slowest(found, media(links.kinds)))
    case = _Case(plan, found, np.ones(len(found[1])), links.capacity * protocol.efficiency, delay)
    folded = fold(plan, found, case.capacity, delay) if folding and isinstance(plan, Steps) else None
    if folded is not None:
        case = _Case(folded.steps, folded.routes, folded.weight, folded.capacity, folded.delay)
    schedule, start, finish = _run(case, chunks)
    carried = _carried(case, schedule, len(case.capacity))
    if folded is not None:
        carried = carried[folded.link_colour]
    total = (plan.count() if isinstance(plan, Steps) else len(plan)) * chunks
    seconds = protocol.once_s + float(finish.max(initial=0.0))
    return Outcome(
        seconds, carried / protocol.efficiency, total, len(schedule), schedule, start, finish, found
    )


def _run(case: _Case, chunks: int) -> tuple[Schedule, np.ndarray, np.ndarray]:
    count = case.plan.count() if isinstance(case.plan, Steps) else len(case.plan)
    hops = len(case.routes[1]) / max(1, len(case.delay))
    afford_messages(count * chunks, hops, "This schedule")
    whole = case.plan.schedule() if isinstance(case.plan, Steps) else case.plan
    schedule = pipelined(whole, chunks)
    at, crossed = repeated(case.routes, schedule.which)
    weight = repeated_like(case.routes, case.weight, schedule.which)
    waits, next_at, next_flow = schedule.followers()
    start, finish = engine.run(
        case.capacity,
        case.delay[schedule.which],
        schedule.messages.size[schedule.which],
        np.zeros(len(schedule)),
        at,
        crossed,
        weight,
        waits,
        next_at,
        next_flow,
    )
    if np.isnan(finish).any():
        ring = circle(schedule, np.isnan(finish))
        chain = " -> ".join(str(message) for message in [*ring[::-1], ring[-1]][:9])
        raise LabkitError(
            f"The schedule waits for itself: messages {chain} form a circle, so none of them can start."
        )
    return schedule, start, finish


def repeated_like(given: Routes, values: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Values of hops, for the routes number `which`."""
    return values[repeated((given[0], np.arange(len(values))), which)[1]]


def _over_routes(found: Routes, values: np.ndarray) -> np.ndarray:
    """The sum of a value of links over each route."""
    owner = np.repeat(np.arange(len(found[0]) - 1), np.diff(found[0]))
    return np.bincount(owner, weights=values[found[1]], minlength=len(found[0]) - 1)


def _slowest(found: Routes, medium: np.ndarray) -> np.ndarray:
    """The highest medium number on each route."""
    top = np.zeros(len(found[0]) - 1, np.int64)
    np.maximum.at(top, np.repeat(np.arange(len(top)), np.diff(found[0])), medium[found[1]])
    return top


def _carried(case: _Case, schedule: Schedule, links: int) -> np.ndarray:
    """Bytes over each link."""
    times = np.bincount(schedule.which, minlength=len(schedule.messages))
    moved = np.repeat(times * schedule.messages.size, np.diff(case.routes[0]))
    return np.bincount(case.routes[1], weights=moved * case.weight, minlength=links)
