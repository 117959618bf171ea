"""One rank of a play: its sends, its receives, and when it has to wait (see `labkit.network.stage`)."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.errors import LabkitError
from labkit.network import p2p
from labkit.network.played import Event, Message

if TYPE_CHECKING:
    from labkit.network.stage import Stage


class Over(BaseException):
    """The play has ended elsewhere; no ``except Exception`` of an answer holds it up."""


@dataclass
class Parcel:
    """A message on its way: what was in the buffer when it was given."""

    source: int
    to: int
    step: int
    data: Any
    kind: str
    taken: bool = False

    def message(self, order: int) -> Message:
        count: int = len(self.data)
        size = count * _item_bytes(self.data)
        return Message(order, self.step, self.source, self.to, count, size, self.kind, self.taken)


class Pair:
    """Messages from one rank to another, and the receives for them, in order."""

    def __init__(self) -> None:
        self.parcels: list[Parcel] = []
        self.steps: list[int] = []  # when each receive was posted


class Actor:
    """One rank; see `labkit.network.p2p.Endpoint`."""

    def __init__(self, stage: Stage, rank: int):
        self.rank, self.size = rank, stage.ranks
        self.stage = stage
        self.step = 0
        self.free_to_send = self.free_to_receive = 0  # the first step without a message of that direction
        self.turn = threading.Semaphore(0)
        self.waiting: tuple[str, int, Callable[[], bool]] | None = None
        self.ended = False
        self.names: list[str] = []

    def isend(self, data: Any, to: int) -> p2p.Transfer:
        self.about_to_act()
        if not len(data):
            return _Nothing()
        step = max(self.step, self.free_to_send)
        self.free_to_send = step + 1
        parcel = Parcel(self.rank, to, step, _copy(data), self.kind)
        pair = self.stage.pairs[self.rank, to]
        pair.parcels.append(parcel)
        self.stage.messages.append(parcel)
        self.note("send", to, len(data))
        return _Sending(self, pair, len(pair.parcels) - 1, data)

    def irecv(self, into: Any, source: int) -> p2p.Transfer:
        self.about_to_act()
        if not len(into):
            return _Nothing()
        pair = self.stage.pairs[source, self.rank]
        pair.steps.append(self.step)
        self.note("receive", source, len(into))
        return _Receiving(self, pair, len(pair.steps) - 1, into, source)

    def exchange(self, outgoing: Any, to: int, incoming: Any, source: int) -> None:
        receiving, sending = self.irecv(incoming, source), self.isend(outgoing, to)
        receiving.wait()
        sending.wait()

    def scratch(self, like: Any) -> Any:
        return np.empty_like(like) if isinstance(like, np.ndarray) else like.new_empty(like.shape)

    def combine(self, op: str, into: Any, other: Any) -> None:
        module = np if isinstance(into, np.ndarray) else sys.modules["torch"]
        getattr(module, _COMBINE[op])(into, other, out=into)

    @contextlib.contextmanager
    def noting(self, name: str) -> Iterator[None]:
        self.names.append(name)
        try:
            yield
        finally:
            self.names.pop()

    @property
    def kind(self) -> str:
        return self.names[0] if self.names else "send"

    def about_to_act(self) -> None:
        """Called before each send and receive."""
        if self.stage.failure is not None:
            raise Over

    def wait(self, what: str, other: int, ready: Callable[[], bool]) -> None:
        """Let the others run until ``ready()``."""
        self.about_to_act()
        if ready():
            return
        self.waiting = (what, other, ready)
        self.note(f"waits to {what}", other)
        self.stage.hand_on(self.rank)
        self.wait_for_turn()
        self.waiting = None

    def wait_for_turn(self) -> None:
        self.turn.acquire()
        if self.stage.failure is not None:
            raise Over

    def can_go_on(self) -> bool:
        return self.waiting is None or self.waiting[2]()

    def passed(self, step: int) -> None:
        """What this rank does from now on comes after ``step``."""
        self.step = max(self.step, step + 1)

    def note(self, what: str, other: int | None = None, elements: int = 0) -> None:
        self.stage.events.append(Event(len(self.stage.events), self.step, self.rank, what, other, elements))


class _Nothing:
    """A message without content is not sent."""

    def wait(self) -> None:
        pass


class _Sending:
    def __init__(self, actor: Actor, pair: Pair, number: int, buffer: Any):
        self.actor, self.pair, self.number, self.buffer = actor, pair, number, buffer
        self.parcel = pair.parcels[number]
        self.over = False

    def wait(self) -> None:
        if self.over:
            return
        step, to = self.parcel.step, self.parcel.to
        if self.actor.stage.rendezvous:
            self.actor.wait("send", to, lambda: len(self.pair.steps) > self.number)
            step = max(step, self.pair.steps[self.number])
        if not _same(self.buffer, self.parcel.data):
            raise LabkitError(
                f"Rank {self.actor.rank} changed the data of its message to rank {to} before wait() said that "
                "they had gone: what arrives would be a matter of luck."
            )
        self.over = True
        self.actor.passed(step)


class _Receiving:
    def __init__(self, actor: Actor, pair: Pair, number: int, into: Any, source: int):
        self.actor, self.pair, self.number, self.into, self.source = actor, pair, number, into, source
        self.over = False

    def wait(self) -> None:
        if self.over:
            return
        self.actor.wait("receive", self.source, lambda: len(self.pair.parcels) > self.number)
        parcel = self.pair.parcels[self.number]
        self._fits(parcel.data)
        _write(self.into, parcel.data)
        parcel.taken = self.over = True
        # a message that came early is taken when its turn comes
        parcel.step = max(self.pair.steps[self.number], parcel.step, self.actor.free_to_receive)
        self.actor.free_to_receive = parcel.step + 1
        self.actor.passed(parcel.step)
        self.actor.note("received", self.source, len(self.into))

    def _fits(self, data: Any) -> None:
        me, count, sent = self.actor.rank, len(self.into), len(data)
        if count != sent:
            raise LabkitError(
                f"Rank {me} receives {count} elements from rank {self.source}, which sent {sent}."
            )
        if self.into.dtype != data.dtype:
            raise LabkitError(
                f"Rank {me} receives {self.into.dtype} from rank {self.source}, which sent {data.dtype}."
            )


_COMBINE = {
    "sum": "add",
    "product": "multiply",
    "min": "minimum",
    "max": "maximum",
    "band": "bitwise_and",
    "bor": "bitwise_or",
    "bxor": "bitwise_xor",
}


def _item_bytes(data: Any) -> int:
    return int(data.itemsize if isinstance(data, np.ndarray) else data.element_size())


def _copy(data: Any) -> Any:
    return data.copy() if isinstance(data, np.ndarray) else data.detach().clone()


def _write(into: Any, data: Any) -> None:
    if isinstance(into, np.ndarray):
        into[...] = data
    else:
        into.detach().copy_(data)


def _same(buffer: Any, data: Any) -> bool:
    """Bit by bit, so that NaN equals itself."""
    if isinstance(buffer, np.ndarray):
        return buffer.tobytes() == data.tobytes()
    view = sys.modules["torch"].uint8
    return bool((buffer.detach().view(view) == data.view(view)).all())
