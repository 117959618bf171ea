"""When each rank computed, communicated and waited: traces of all ranks on one clock.

A rank *waits* inside a communication call until the last of those it depends on has entered theirs, and
*communicates* from then on; the rest of its time, Python included, it *computes*. What is under way behind
its back (an asynchronous all-reduce) is *in flight*; the part of that during which the rank computes is
overlapped. All of it is measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.units import show_time
from labkit.network import intervals

STATES = ("compute", "communicate", "wait")
_FORMAT = "labkit timeline 1"


@dataclass(frozen=True)
class Event:
    """Something a profiler saw: a ``call``, a ``flight``, an ``op`` or a ``kernel``; seconds from the start."""

    rank: int
    kind: str
    name: str
    start: float
    end: float


@dataclass(frozen=True)
class Stretch:
    """A stretch of one rank's time in one state; ``name`` is the call it is in, empty while computing."""

    rank: int
    state: str
    name: str
    start: float
    end: float


@dataclass(frozen=True)
class Timeline:
    """What all ranks did, on one clock that starts with the first of them.

    Attributes
    ----------
    ranks : int
    backend : str
    stretches : tuple of Stretch
        The states of each rank, without gaps, in order of time.
    events : tuple of Event
        In order of their start.
    left_out : int
        Events beyond the limit that a rank keeps.
    """

    ranks: int
    backend: str
    stretches: tuple[Stretch, ...]
    events: tuple[Event, ...]
    left_out: int = 0

    @property
    def seconds(self) -> float:
        """From the first rank's start to the last one's end."""
        return max((one.end for one in self.stretches), default=0.0)

    def spent(self, rank: int) -> dict[str, float]:
        """Seconds that a rank spent in each state."""
        mine = [one for one in self.stretches if one.rank == rank]
        return {s: sum(one.end - one.start for one in mine if one.state == s) for s in STATES}

    def flights(self, rank: int) -> list[tuple[float, float]]:
        """When communication of a rank was under way on both sides: disjoint intervals, in seconds."""
        ready = _ready_times(self.events)
        mine = [one for one in self.events if one.rank == rank and one.kind == "flight"]
        # a receive is posted long before its message comes: waiting for it is no communication
        moving = [(s.start, s.end) for s in self.stretches if s.rank == rank and s.state != "wait"]
        return intervals.intersection(
            intervals.union((ready[one], one.end) for one in mine), intervals.union(moving)
        )

    @property
    def overlapped(self) -> float | None:
        """The fraction of all communication time during which the rank computed; None without any."""
        total = hidden = 0.0
        for rank in range(self.ranks):
            flights = self.flights(rank)
            busy = [(s.start, s.end) for s in self.stretches if s.rank == rank and s.state == "compute"]
            total += intervals.length(flights)
            hidden += intervals.length(intervals.intersection(flights, busy))
        return hidden / total if total else None

    def order(self, rank: int, *kinds: str) -> tuple[str, ...]:
        """Names of a rank's events in order of their start; of some kinds only, when given."""
        chosen = [one for one in self.events if one.rank == rank and (not kinds or one.kind in kinds)]
        return tuple(one.name for one in chosen)

    def between(self, start: float, end: float) -> Timeline:
        """What happened from ``start`` to ``end`` (seconds), on a clock that begins there."""

        def cut(one: Any) -> Any:
            return replace(one, start=max(one.start, start) - start, end=min(one.end, end) - start)

        stretches = tuple(cut(one) for one in self.stretches if one.end > start and one.start < end)
        events = tuple(cut(one) for one in self.events if one.end > start and one.start < end)
        return replace(self, stretches=stretches, events=events)

    def to_dict(self) -> dict[str, Any]:
        return {"format": _FORMAT, **asdict(self)}

    def save(self, path: str | Path) -> Path:
        """Write a JSON file that `load` opens."""
        Path(path).write_text(json.dumps(self.to_dict()), encoding="utf-8")
        return Path(path)

    def chrome_trace(self, path: str | Path) -> Path:
        """Write a file for Perfetto or chrome://tracing: a process a rank; states, events, and flights."""
        Path(path).write_text(json.dumps({"traceEvents": _chrome_events(self)}), encoding="utf-8")
        return Path(path)

    def __repr__(self) -> str:
        return f"Timeline({self.ranks} ranks on {self.backend}, {len(self.events)} events, measured)"

    def _repr_html_(self) -> str:
        from labkit.hardware.html import table

        rows = [
            (str(rank), *(show_time(seconds) for seconds in self.spent(rank).values()))
            for rank in range(self.ranks)
        ]
        share = self.overlapped
        hidden = "no communication" if share is None else f"{share:.0%} of communication overlapped"
        return f"<p>{show_time(self.seconds)}, {hidden} (measured)</p>" + table(("rank", *STATES), rows)


def merge(traces: Sequence[dict[str, Any]], backend: str) -> Timeline:
    """One timeline from the traces of all ranks, which share the machine's clock."""
    origin = min(trace["begin"] for trace in traces)
    events = [
        Event(rank, kind, name, (start - origin) / 1e9, (end - origin) / 1e9)
        for rank, trace in enumerate(traces)
        for kind, name, start, end in trace["rows"]
    ]
    events.sort(key=lambda one: (one.start, one.rank, -one.end))
    ready = _ready_times(events)
    stretches = [
        stretch
        for rank, trace in enumerate(traces)
        for stretch in _states(
            rank, (trace["begin"] - origin) / 1e9, (trace["end"] - origin) / 1e9, events, ready
        )
    ]
    left_out = sum(trace["left_out"] for trace in traces)
    return Timeline(len(traces), backend, tuple(stretches), tuple(events), left_out)


def _ready_times(events: Iterable[Event]) -> dict[Event, float]:
    """When the last rank entered: for the k-th event of a name, over all ranks that have a k-th one."""
    count: dict[tuple[int, str, str], int] = {}
    group: dict[tuple[str, str, int], list[Event]] = {}
    for event in events:
        if event.kind in ("call", "flight"):
            key = event.rank, event.kind, event.name
            count[key] = count.get(key, 0) + 1
            group.setdefault((event.kind, *_meeting(event), count[key]), []).append(event)
    return {one: max(other.start for other in same) for same in group.values() for one in same}


def _meeting(event: Event) -> tuple[str]:
    """Events that meet each other have the same: a collective meets its namesakes, a receive its send."""
    if event.kind == "flight" and event.name.endswith(("send", "recv")):
        return (f"{event.name} of {event.rank}",)  # it does not say with whom
    word, *pair = event.name.split()
    if len(pair) != 1:
        return (event.name,)
    sender, receiver = (event.rank, pair[0]) if word.endswith("send") else (pair[0], event.rank)
    return (f"{sender} to {receiver}",)


def _states(
    rank: int, begin: float, end: float, events: Sequence[Event], ready: dict[Event, float]
) -> list[Stretch]:
    """The rank's time from `begin` to `end`, cut where it enters and leaves calls, and where those get going."""
    found = []
    at = begin
    mine = [one for one in events if one.rank == rank]
    for call in (one for one in mine if one.kind == "call" and one.end > begin):
        if call.start < at:  # another thread's call, while this one is already inside one
            continue
        going = min(max(_going(call, mine, ready), call.start), call.end)
        found += [
            Stretch(rank, "compute", "", at, call.start),
            Stretch(rank, "wait", call.name, call.start, going),
            Stretch(rank, "communicate", call.name, going, call.end),
        ]
        at = call.end
    found.append(Stretch(rank, "compute", "", at, end))
    return [one for one in found if one.end > one.start]


def _going(call: Event, mine: Sequence[Event], ready: dict[Event, float]) -> float:
    """From when on the call is under way on both sides."""
    if call.name != "wait":
        # a send may go into a buffer before anybody receives it: it never waits for its partner here
        return call.start if call.name.startswith("send") else ready[call]
    landed = [one for one in mine if one.kind == "flight" and call.start <= one.end <= call.end]
    return max((ready[one] for one in landed), default=call.start)


def _chrome_events(timeline: Timeline) -> list[dict[str, Any]]:
    lanes = {"state": 0, "call": 1, "flight": 2, "op": 3, "kernel": 4}
    found: list[dict[str, Any]] = []
    for rank in range(timeline.ranks):
        found.append({"name": "process_name", "ph": "M", "pid": rank, "args": {"name": f"rank {rank}"}})
        found += [
            {"name": "thread_name", "ph": "M", "pid": rank, "tid": lane, "args": {"name": name}}
            for name, lane in lanes.items()
        ]
    for one in timeline.stretches:
        found.append(_chrome_span(one, one.name or one.state, one.state, lanes["state"]))
    for event in timeline.events:
        found.append(_chrome_span(event, event.name, event.kind, lanes[event.kind]))
    return found


def _chrome_span(one: Event | Stretch, name: str, category: str, lane: int) -> dict[str, Any]:
    when = {"ts": 1e6 * one.start, "dur": 1e6 * (one.end - one.start)}
    return {"name": name, "cat": category, "ph": "X", "pid": one.rank, "tid": lane, **when}


def load(path: str | Path) -> Timeline:
    """A timeline that `Timeline.save` wrote.

    Raises
    ------
    LabkitError
        When the file is not one.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        if data.pop("format") != _FORMAT:
            raise ValueError
        data["stretches"] = tuple(Stretch(**one) for one in data["stretches"])
        data["events"] = tuple(Event(**one) for one in data["events"])
        return Timeline(**data)
    except OSError as error:
        raise LabkitError(f"{path} cannot be opened: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise LabkitError(f"{path} is not a timeline that Timeline.save() wrote.") from None
