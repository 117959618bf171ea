"""Collectives in rehearsal: the very functions that ranks run, on threads and NumPy arrays, step by step.

Every rank starts with one bit of its own in every element, and the reduction is a sum, so what an element
holds tells whose contributions have reached it. No process starts and torch is not needed. Time is counted in
steps: a message leaves one step after everything that its sender had to wait for. It is a model of the order
of messages, not of how long they take.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabkitError
from labkit.network import p2p

Array = NDArray[np.int64]
MAX_RANKS = 16
_STUCK_S = 2.0


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
    stage = _Stage(ranks, ranks if elements is None else elements)
    actors = [threading.Thread(target=stage.play, args=(rank, function, arguments)) for rank in range(ranks)]
    for actor in actors:
        actor.start()
    for actor in actors:
        actor.join()
    stage.raise_first()
    name = getattr(function, "name", getattr(function, "__name__", "function"))
    return stage.written_down(name)


class _Stage:
    """All ranks of one rehearsal, and the messages between them."""

    def __init__(self, ranks: int, elements: int):
        self.ranks = ranks
        self.data: list[Array] = [np.full(elements, 1 << rank, dtype=np.int64) for rank in range(ranks)]
        self.mail: dict[tuple[int, int], queue.SimpleQueue[tuple[Message, Array]]] = {
            (source, to): queue.SimpleQueue() for source in range(ranks) for to in range(ranks)
        }
        self.messages: list[Message] = []
        self.snapshots: list[dict[int, Array]] = [{} for _ in range(ranks)]
        self.errors: list[tuple[bool, Exception]] = []
        self.failed = threading.Event()

    def play(self, rank: int, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        actor = _Actor(self, rank)
        with p2p.use(actor):
            try:
                function(self.data[rank], *arguments)
                actor.snapshot()
            except Exception as error:
                # who waits in vain may only be suffering from another one's mistake
                self.errors.append((isinstance(error, _Stuck), error))
                self.failed.set()

    def raise_first(self) -> None:
        if not self.errors:
            return
        causes = [error for stuck, error in self.errors if not stuck]
        if causes:
            raise causes[0]
        waits = " and ".join(sorted(str(error) for _, error in self.errors))
        raise LabkitError(f"Nobody can go on: {waits}. Every receive needs a send from that very rank.")

    def written_down(self, name: str) -> Rehearsal:
        steps = 1 + max((one.step for one in self.messages), default=-1)
        states = [
            tuple(_contributions(self._at(rank, step)) for rank in range(self.ranks)) for step in range(steps)
        ]
        states.append(tuple(_contributions(data) for data in self.data))
        messages = tuple(sorted(self.messages, key=lambda one: (one.step, one.source, one.to, one.start)))
        return Rehearsal(name, self.ranks, steps, messages, tuple(states))

    def _at(self, rank: int, step: int) -> Array:
        """A rank's data when the step begins: as last seen until then."""
        seen = self.snapshots[rank]
        until = [at for at in seen if at <= step]
        return seen[max(until)] if until else np.full_like(self.data[rank], 1 << rank)


class _Stuck(Exception):
    """A rank waits in vain."""


class _Actor:
    """See `labkit.network.p2p.Endpoint`."""

    def __init__(self, stage: _Stage, rank: int):
        self.rank, self.size = rank, stage.ranks
        self.stage = stage
        self.step = 0

    def isend(self, data: Array, to: int) -> p2p.Transfer:
        self.snapshot()
        message = Message(self.step, self.rank, to, start := self._position(data), start + len(data))
        self.stage.mail[self.rank, to].put((message, data.copy()))
        return _Sent(self, self.step)

    def irecv(self, into: Array, source: int) -> p2p.Transfer:
        self.snapshot()
        return _Coming(self, into, source)

    def exchange(self, outgoing: Array, to: int, incoming: Array, source: int) -> None:
        receiving, sending = self.irecv(incoming, source), self.isend(outgoing, to)
        receiving.wait()
        sending.wait()

    def scratch(self, like: Array) -> Array:
        return np.empty_like(like)

    def combine(self, op: str, into: Array, other: Array) -> None:
        into += other  # whatever the operation: a sum of bits shows who is in it

    def noting(self, name: str) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def snapshot(self) -> None:
        """What this rank holds when its current step begins."""
        self.stage.snapshots[self.rank].setdefault(self.step, self.stage.data[self.rank].copy())

    def passed(self, step: int) -> None:
        self.step = max(self.step, step + 1)

    def _position(self, data: Array) -> int:
        base = self.stage.data[self.rank]
        offset = data.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        return int(offset // base.itemsize) if 0 <= offset < base.nbytes else 0


class _Sent:
    def __init__(self, actor: _Actor, step: int):
        self.actor, self.step = actor, step

    def wait(self) -> None:
        self.actor.passed(self.step)


class _Coming:
    def __init__(self, actor: _Actor, into: Array, source: int):
        self.actor, self.into, self.source = actor, into, source
        self.posted = actor.step

    def wait(self) -> None:
        stage, me = self.actor.stage, self.actor.rank
        for _ in range(int(_STUCK_S / 0.1)):
            try:
                message, data = stage.mail[self.source, me].get(timeout=0.1)
                break
            except queue.Empty:
                if stage.failed.is_set():
                    raise _Stuck(f"rank {me} waits for rank {self.source}") from None
        else:
            raise _Stuck(f"rank {me} waits for rank {self.source}")
        if len(data) != len(self.into):
            raise LabkitError(
                f"Rank {me} receives {len(self.into)} elements from rank {self.source}, which sent {len(data)}."
            )
        self.into[...] = data
        step = max(self.posted, message.step)  # a message that came early is taken when its turn comes
        if len(data):
            stage.messages.append(replace(message, step=step))
        self.actor.passed(step)


def _contributions(data: Array) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(bit for bit in range(MAX_RANKS) if int(value) >> bit & 1) for value in data)
