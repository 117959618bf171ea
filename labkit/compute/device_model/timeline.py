"""What a recorded program would do when: the result of the device model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any

from labkit.compute.device_model import hazards
from labkit.compute.device_model.operations import COPY_IN, COPY_OUT, HOST, KERNEL, Operation
from labkit.compute.device_model.order import Order
from labkit.compute.device_model.schedule import Span, schedule
from labkit.hardware.html import table
from labkit.hardware.records import GPU
from labkit.hardware.units import show_bytes, show_rate, show_time

ENGINES = ("copy engine in", "compute", "copy engine out", HOST)
_SHOWN = 12


@dataclass(frozen=True, repr=False)
class Timeline:
    """Operations with the time at which each would run.

    Attributes
    ----------
    operations : tuple of Operation
        In the order of submission.
    spans : tuple of (start, end)
        Seconds from the beginning, one an operation.
    how, on : str
        ``"modelled"`` or ``"measured"``, and on which card.
    hazards : tuple of Hazard
        From the dependency graph, so the same however the times fall.
    """

    operations: tuple[Operation, ...]
    spans: tuple[Span, ...]
    how: str
    on: str
    hazards: tuple[hazards.Hazard, ...]
    assumptions: tuple[str, ...] = field(default=(), repr=False)

    @property
    def seconds(self) -> float:
        """From the beginning to the end of the last operation."""
        return max((end for _, end in self.spans), default=0.0)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that were used, in the order of their first use."""
        return tuple(dict.fromkeys(one.stream for one in self.operations if one.stream))

    @cached_property
    def order(self) -> Order:
        """What surely runs before what."""
        return Order(self.operations)

    def busy(self, engine: str) -> float:
        """Seconds that an engine (one of ENGINES) is busy."""
        return _length(self._merged([engine]))

    @property
    def overlapped(self) -> float:
        """Seconds in which a copy and a kernel run at the same time."""
        copies, kernels = self._merged(["copy engine in", "copy engine out"]), self._merged(["compute"])
        return _length(
            [(max(a, c), min(b, d)) for a, b in copies for c, d in kernels if max(a, c) < min(b, d)]
        )

    def bytes(self, kind: str) -> int:
        """Bytes copied, for ``"copy in"`` or ``"copy out"``."""
        return sum(one.bytes for one in self.operations if one.kind == kind)

    def rate(self, kind: str, start: float, end: float) -> float:
        """Bytes a second over the link between two moments, for ``"copy in"`` or ``"copy out"``.

        A copy's bytes are spread evenly over its time.
        """
        moved = 0.0
        for one, (begins, ends) in zip(self.operations, self.spans, strict=True):
            if one.kind == kind and ends > begins:
                moved += one.bytes * max(0.0, min(end, ends) - max(start, begins)) / (ends - begins)
        return moved / (end - start) if end > start else 0.0

    def _merged(self, engines: Iterable[str]) -> list[Span]:
        wanted = set(engines)
        chosen = sorted(s for one, s in zip(self.operations, self.spans, strict=True) if one.engine in wanted)
        merged: list[Span] = []
        for start, end in chosen:
            if merged and start <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(merged[-1][1], end)
            else:
                merged.append((start, end))
        return merged

    def __repr__(self) -> str:
        what = f"{_count(len(self.operations), 'operation')}, {_count(len(self.streams), 'stream')}"
        found = _count(len(self.hazards), "hazard") if self.hazards else "no hazard"
        return f"Timeline({what}: {show_time(self.seconds)}, {found}, {self.how} on {self.on})"

    def _repr_html_(self) -> str:
        rows = [self._row(engine) for engine in ENGINES if self.busy(engine)]
        caption = f"{show_time(self.seconds)}, {self.how} on {self.on}"
        said = "".join(f"<li>{escape(str(one))}</li>" for one in self.hazards[:_SHOWN])
        more = len(self.hazards) - _SHOWN
        rest = f"<li>and {more} more</li>" if more > 0 else ""
        listed = (
            f"<b>{_count(len(self.hazards), 'hazard')}</b><ul>{said}{rest}</ul>"
            if said
            else "<p>No hazard.</p>"
        )
        return table(("engine", "busy", "share", "bytes"), rows, caption) + listed

    def _row(self, engine: str) -> tuple[str, ...]:
        kind = {"copy engine in": COPY_IN, "copy engine out": COPY_OUT}.get(engine)
        busy = self.busy(engine)
        moved = f"{show_bytes(self.bytes(kind))} at {show_rate(self.bytes(kind) / busy)}" if kind else ""
        return escape(engine), show_time(busy), f"{busy / self.seconds:.0%}", moved

    def to_dict(self) -> dict[str, Any]:
        return {
            "how": self.how,
            "on": self.on,
            "seconds": self.seconds,
            "operations": [
                {**one.to_dict(), "start": start, "end": end}
                for one, (start, end) in zip(self.operations, self.spans, strict=True)
            ],
            "hazards": [one.to_dict() for one in self.hazards],
            "assumptions": list(self.assumptions),
        }


def timeline_of(operations: Sequence[Operation], card: GPU) -> Timeline:
    """Schedule a program on a modelled card."""
    found = hazards.find(operations)
    return Timeline(
        tuple(operations), schedule(operations), "modelled", card.id, found, _assumptions(operations)
    )


def _assumptions(operations: Sequence[Operation]) -> tuple[str, ...]:
    said = [
        "One kernel at a time, one copy at a time in each direction; the two directions do not slow each other.",
        "Submitting takes the host no time.",
    ]
    if any(one.kind == KERNEL and one.how == "given" for one in operations):
        said.append("Durations of kernels that the program gives are taken as they are.")
    return tuple(said)


def _length(spans: Iterable[Span]) -> float:
    return sum(end - start for start, end in spans)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
