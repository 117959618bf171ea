"""Send and receive between ranks: the two things every collective is made of.

Inside ``labkit.ranks(n).run`` they go over gloo or NCCL, through the emulated link when one was asked for,
and their payload is counted. The very same functions also run in a play (`labkit.network.stage`) and in rehearsal,
on threads, where every message is written down.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from labkit.errors import LabkitError

if TYPE_CHECKING:
    from labkit.network.context import RankContext
    from labkit.network.launch.meter import Meter
    from labkit.network.link import Pace

OPERATIONS = ("sum", "product", "min", "max", "band", "bor", "bxor")


class Transfer(Protocol):
    """A message on its way."""

    def wait(self) -> None:
        """Until the buffer may be used again (sending), or holds the message (receiving)."""
        ...


class Endpoint(Protocol):
    """One rank's connection to the others. Buffers are one-dimensional and contiguous."""

    rank: int
    size: int

    def isend(self, data: Any, to: int) -> Transfer: ...

    def irecv(self, into: Any, source: int) -> Transfer: ...

    def exchange(self, outgoing: Any, to: int, incoming: Any, source: int) -> None:
        """Send and receive at the same time: if all sent first and received then, none might ever receive."""
        ...

    def scratch(self, like: Any) -> Any:
        """A buffer like this one, with anything in it; it is lent until the next call.

        Fresh memory costs a page fault every 4 KiB, often more than the transfer into it.
        """
        ...

    def combine(self, op: str, into: Any, other: Any) -> None:
        """``into = into op other``, element by element."""
        ...

    def noting(self, name: str) -> contextlib.AbstractContextManager[Any]:
        """The body is the collective of this name."""
        ...


_process: Endpoint | None = None
_thread = threading.local()


def endpoint() -> Endpoint:
    """This rank's connection.

    Raises
    ------
    LabkitError
        Outside ranks and rehearsals.
    """
    found = getattr(_thread, "endpoint", None) or _process
    if found is None:
        raise LabkitError("There is nobody to talk to here: run this function with labkit.ranks(n).run(...).")
    return found


def isend(data: Any, to: int) -> Transfer:
    """Start sending a tensor to rank ``to``; leave it unchanged until ``wait()`` has returned."""
    here = endpoint()
    return here.isend(flat(data), peer(here, to))


def irecv(into: Any, source: int) -> Transfer:
    """Start receiving from rank ``source`` into a tensor of the same size and type as the one sent."""
    here = endpoint()
    return here.irecv(flat(into), peer(here, source))


def send(data: Any, to: int) -> None:
    """Send and wait until the buffer may be used again: on gloo, when the other rank has posted its receive."""
    with endpoint().noting("send"):
        isend(data, to).wait()


def recv(into: Any, source: int) -> None:
    """Receive, waiting for it."""
    with endpoint().noting("recv"):
        irecv(into, source).wait()


def exchange(outgoing: Any, to: int, incoming: Any, source: int) -> None:
    """Send and receive at the same time, and wait for both; also right on NCCL, where the two are one."""
    here = endpoint()
    with here.noting("send"):
        here.exchange(flat(outgoing), peer(here, to), flat(incoming), peer(here, source))


def flat(tensor: Any) -> Any:
    """The same memory as one dimension.

    Raises
    ------
    LabkitError
        For what is neither an array nor a tensor, or whose elements do not lie one after the other.
    """
    if not hasattr(tensor, "reshape") or isinstance(tensor, np.generic):
        raise LabkitError(
            f"Ranks exchange arrays and tensors, not a {type(tensor).__name__}: for one element, pass a slice of it, "
            "such as data[i : i + 1]."
        )
    contiguous = tensor.is_contiguous() if hasattr(tensor, "is_contiguous") else tensor.flags.c_contiguous
    if not contiguous:
        raise LabkitError(
            "This tensor is not contiguous (a transpose or a stepped slice): pass tensor.contiguous()."
        )
    return tensor.reshape(-1)


def peer(here: Endpoint, rank: int) -> int:
    """``rank``, if it is another one of the world."""
    if not 0 <= rank < here.size or rank == here.rank:
        others = f"others are 0 to {here.size - 1}, and not {here.rank} itself"
        there = others if here.size > 1 else "there is no other"
        raise LabkitError(f"Rank {here.rank} cannot exchange messages with rank {rank}: {there}.")
    return rank


def open_endpoint(place: RankContext, pace: Pace, meter: Meter) -> None:
    """Called once, by a rank that has joined the others."""
    global _process
    from labkit.network.endpoint import TorchEndpoint

    _process = TorchEndpoint(place.rank, place.world_size, pace, meter)


@contextlib.contextmanager
def use(other: Endpoint) -> Iterator[None]:
    """In this thread, `endpoint` is ``other`` while the body runs."""
    before = getattr(_thread, "endpoint", None)
    _thread.endpoint = other
    try:
        yield
    finally:
        _thread.endpoint = before
