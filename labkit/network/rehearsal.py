"""Collectives in rehearsal: the very functions that ranks run, on threads and NumPy arrays, step by step.

A play (see `labkit.network.stage`) in which every rank starts with one bit of its own in every element, and the
reduction is a sum, so what an element holds tells whose contributions have reached it. No process starts and torch is
not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabkitError
from labkit.network import p2p
from labkit.network.actor import Actor
from labkit.network.stage import Stage

Array = NDArray[np.int64]
MAX_RANKS = 16


@dataclass(frozen=True)
class Message:
    """One message: from whom to whom, in which step, and which elements of the sender's data."""

    step: int
    source: int
    to: int
    start: int
    stop: int


@dataclass(frozen=True)
class Rehearsal:
    """Who sent what in which step, and whose contributions each element held before it.

    Attributes
    ----------
    name : str
    ranks, steps : int
    messages : tuple of Message
    states : tuple
        ``states[step][rank][element]`` is a tuple of the ranks whose contribution is in it; one more entry
        than steps, the last being the result.
    """

    name: str
    ranks: int
    steps: int
    messages: tuple[Message, ...]
    states: tuple[tuple[tuple[tuple[int, ...], ...], ...], ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __repr__(self) -> str:
        return (
            f"Rehearsal({self.name} on {self.ranks} ranks: {self.steps} steps, {len(self.messages)} messages)"
        )

    def _repr_html_(self) -> str:
        from labkit.hardware.html import table

        rows = [(str(step), self._sent(step)) for step in range(self.steps)]
        return table(("step", "messages (elements)"), rows, repr(self))

    def _sent(self, step: int) -> str:
        now = [one for one in self.messages if one.step == step]
        return ", ".join(f"{one.source} to {one.to} ({one.start}:{one.stop})" for one in now)


def rehearse(
    function: Callable[..., Any], ranks: int, elements: int | None = None, arguments: Sequence[Any] = ()
) -> Rehearsal:
    """Run ``function(data, *arguments)`` on every rank of a rehearsal.

    Parameters
    ----------
    function : callable
        A collective of `labkit.network.collectives`, or one's own made of `labkit.network.isend`, `irecv`.
    ranks : int
        1 to 16.
    elements : int, optional
        Length of each rank's data; one element a rank by default.

    Raises
    ------
    LabkitError
        When ranks wait for messages that nobody sends, naming them; a mistake in the function as it is.
    """
    if not 1 <= ranks <= MAX_RANKS:
        raise LabkitError(f"A rehearsal has 1 to {MAX_RANKS} ranks, not {ranks}.")
    stage = _Rehearsed(ranks, ranks if elements is None else elements)
    stage.run(function, [(data, *arguments) for data in stage.data])
    name = getattr(function, "name", getattr(function, "__name__", "function"))
    return stage.rehearsal(name)


class _Rehearsed(Stage):
    """A play in which every rank's data is looked at before each step."""

    def __init__(self, ranks: int, elements: int):
        super().__init__(ranks, rendezvous=False, actor=_Actor)
        self.data: list[Array] = [np.full(elements, 1 << rank, dtype=np.int64) for rank in range(ranks)]
        self.starts: list[int] = []  # of each message, in the order of sending
        self.snapshots: list[dict[int, Array]] = [{} for _ in range(ranks)]

    def rehearsal(self, name: str) -> Rehearsal:
        played = self.written_down()
        states = [
            tuple(_contributions(self._at(rank, step)) for rank in range(self.ranks))
            for step in range(played.steps)
        ]
        states.append(tuple(_contributions(data) for data in self.data))
        messages = [
            Message(one.step, one.source, one.to, start, start + one.elements)
            for one, start in zip(played.messages, self.starts, strict=True)
        ]
        messages.sort(key=lambda one: (one.step, one.source, one.to, one.start))
        return Rehearsal(name, self.ranks, played.steps, tuple(messages), tuple(states))

    def _at(self, rank: int, step: int) -> Array:
        """A rank's data when the step begins: as last seen until then."""
        seen = self.snapshots[rank]
        until = [at for at in seen if at <= step]
        return seen[max(until)] if until else np.full_like(self.data[rank], 1 << rank)


class _Actor(Actor):
    stage: _Rehearsed

    def isend(self, data: Array, to: int) -> p2p.Transfer:
        if len(data):
            self.stage.starts.append(self._position(data))
        return super().isend(data, to)

    def combine(self, op: str, into: Array, other: Array) -> None:
        into += other  # whatever the operation: a sum of bits shows who is in it

    def about_to_act(self) -> None:
        super().about_to_act()
        self.stage.snapshots[self.rank].setdefault(self.step, self.stage.data[self.rank].copy())

    def _position(self, data: Array) -> int:
        base = self.stage.data[self.rank]
        offset = data.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        return int(offset // base.itemsize) if 0 <= offset < base.nbytes else 0


def _contributions(data: Array) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(bit for bit in range(MAX_RANKS) if int(value) >> bit & 1) for value in data)
