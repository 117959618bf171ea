"""What was played on a stage of ranks: results, messages, events; or who waits for whom."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from labkit.errors import LabkitError

_NAMED = 6


@dataclass(frozen=True)
class Message:
    """One message.

    Attributes
    ----------
    order : int
        Its place among all messages, as they were sent.
    step : int
        In which step it went, from 0: with its receive, where there was one.
    source, to : int
        Ranks.
    elements, bytes : int
    kind : str
        ``"send"``, or the collective of `labkit.network` that it was part of, such as ``"all_reduce"``.
    received : bool
        False when nobody took it.
    """

    order: int
    step: int
    source: int
    to: int
    elements: int
    bytes: int
    kind: str
    received: bool


@dataclass(frozen=True)
class Event:
    """What a rank did, in order: ``what`` is ``"send"``, ``"receive"`` (it posted one), ``"waits to send"``,
    ``"waits to receive"``, ``"received"`` or ``"ended"``."""

    order: int
    step: int
    rank: int
    what: str
    other: int | None
    elements: int


@dataclass(frozen=True)
class Wait:
    """A rank that cannot go on: ``what`` is ``"send"`` or ``"receive"``; whether the other rank has returned."""

    rank: int
    what: str
    other: int
    other_ended: bool

    def __str__(self) -> str:
        verb = "receive from" if self.what == "receive" else "send to"
        ended = ", which has ended" if self.other_ended else ""
        return f"rank {self.rank} waits to {verb} rank {self.other}{ended}"


@dataclass(frozen=True)
class Play:
    """What came of a play.

    Attributes
    ----------
    ranks : int
    results : tuple
        What the function returned, a rank each.
    messages : tuple of Message
        In the order in which they were sent.
    events : tuple of Event
        Everything that any rank did, in order.
    """

    ranks: int
    results: tuple[Any, ...]
    messages: tuple[Message, ...]
    events: tuple[Event, ...]

    @property
    def steps(self) -> int:
        """How many steps it took."""
        return 1 + max((one.step for one in self.messages), default=-1)

    @property
    def bytes_sent(self) -> tuple[int, ...]:
        """Bytes that each rank sent."""
        return tuple(sum(m.bytes for m in self.messages if m.source == rank) for rank in range(self.ranks))

    @property
    def bytes_received(self) -> tuple[int, ...]:
        """Bytes that each rank received."""
        taken = [m for m in self.messages if m.received]
        return tuple(sum(m.bytes for m in taken if m.to == rank) for rank in range(self.ranks))

    @property
    def unreceived(self) -> tuple[Message, ...]:
        """Messages that nobody took."""
        return tuple(m for m in self.messages if not m.received)

    def to_dict(self) -> dict[str, Any]:
        plain = {name: [asdict(one) for one in getattr(self, name)] for name in ("messages", "events")}
        return {"ranks": self.ranks, "steps": self.steps, "results": list(self.results), **plain}

    def __repr__(self) -> str:
        count = f"{self.steps} steps, {len(self.messages)} messages"
        return f"Play(on {self.ranks} ranks: {count}, {sum(self.bytes_sent)} bytes, counted)"

    def _repr_html_(self) -> str:
        from labkit.hardware.html import table

        rows = [(str(step), self._sent(step)) for step in range(self.steps)]
        return table(("step", "messages (elements)"), rows, repr(self))

    def _sent(self, step: int) -> str:
        now = [one for one in self.messages if one.step == step]
        return ", ".join(f"{one.source} to {one.to} ({one.elements})" for one in now)


class Deadlock(LabkitError):
    """Nobody can go on.

    Attributes
    ----------
    waits : tuple of Wait
        Every rank that has not ended, and what it waits for.
    play : Play
        What had happened until then.
    """

    def __init__(self, waits: tuple[Wait, ...], play: Play):
        self.waits, self.play = waits, play
        super().__init__(f"Nobody can go on: {_listed(waits)}. {_advice(waits)}")


def _listed(waits: tuple[Wait, ...]) -> str:
    named = [str(one) for one in waits[:_NAMED]]
    if len(waits) > _NAMED:
        named.append(f"{len(waits) - _NAMED} more ranks wait")
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


def _advice(waits: tuple[Wait, ...]) -> str:
    if all(one.what == "send" for one in waits):
        return "A send is over only when the other rank receives."
    return "Every receive needs a send from that very rank, and every send a receive."
