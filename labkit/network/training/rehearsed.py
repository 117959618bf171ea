"""A world of ranks on threads for training: every collective, every gradient, in order, with its bytes.

Rehearsal is stricter than the network. An asynchronous all-reduce may happen at any moment between its launch and its
wait, so here its buffer holds NaN meanwhile: who reads it too early gets NaN, every time, and who writes into it is
found out when the wait comes. On real ranks both would go well on most days. The sums travel by the ring of
`labkit.network.collectives`, so messages are counted as the play counts them. Needs NumPy only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabkitError
from labkit.network.collectives import binomial_broadcast, pairwise_all_to_all, ring_all_reduce
from labkit.network.p2p import endpoint, flat
from labkit.network.stage import play


@dataclass(frozen=True)
class Event:
    """Something that one rank did: ``what``, on what, and how many bytes.

    ``"gradient"`` of a parameter (its name); ``"launch"``, ``"wait"``, ``"changed"`` and ``"never waited"`` of an
    asynchronous all-reduce (its number); ``"all_reduce"``, ``"broadcast"``, ``"all_to_all"``; and whatever
    `RehearsedWorld.note` is told.
    """

    what: str
    name: str = ""
    bytes: int = 0


@dataclass(frozen=True)
class Rehearsed:
    """What a rehearsal of training was: each rank's result and events, and the payload bytes it sent."""

    results: tuple[Any, ...]
    events: tuple[tuple[Event, ...], ...]
    bytes_sent: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything but the results, which may be anything."""
        return {
            "events": [[list(asdict(one).values()) for one in rank] for rank in self.events],
            "bytes_sent": list(self.bytes_sent),
        }

    def __repr__(self) -> str:
        return f"Rehearsed({len(self.events)} ranks, bytes sent {list(self.bytes_sent)}, counted)"


def rehearse_training(
    function: Callable[..., Any], ranks: int, arguments: Sequence[Sequence[Any]] | None = None
) -> Rehearsed:
    """Run ``function(world, *arguments[rank])`` on every rank.

    Raises
    ------
    LabkitError
        When ranks wait for each other for ever, in words; and what the function itself raises.
    """
    worlds: list[RehearsedWorld] = []

    def on_a_rank(*given: Any) -> Any:
        world = RehearsedWorld()
        worlds.append(world)
        result = function(world, *given)
        world.finish()
        return result

    played = play(on_a_rank, ranks, arguments)
    events = tuple(tuple(world.events) for world in sorted(worlds, key=lambda one: one.rank))
    return Rehearsed(played.results, events, played.bytes_sent)


class RehearsedWorld:
    """See `labkit.network.training.World`; make it inside `labkit.network.stage.play`.

    Attributes
    ----------
    rank, world_size : int
    events : list of Event
        In order.
    """

    def __init__(self) -> None:
        here = endpoint()
        self.rank, self.world_size = here.rank, here.size
        self.events: list[Event] = []
        self._under_way: list[_Flight] = []
        self._flights: list[_Flight] = []

    def note(self, what: str, name: str = "", size: int = 0) -> None:
        self.events.append(Event(what, name, size))

    def all_reduce(self, data: Any) -> None:
        self._arrive()
        self.note("all_reduce", size=_array(data).nbytes)
        ring_all_reduce(flat(_array(data)))

    def all_reduce_async(self, data: Any) -> _Flight:
        flight = _Flight(self, len(self._flights), flat(_array(data)))
        self.note("launch", flight.name, flight.buffer.nbytes)
        self._under_way.append(flight)
        self._flights.append(flight)
        return flight

    def broadcast(self, data: Any, root: int = 0) -> None:
        self._arrive()
        array = _array(data)
        self.note("broadcast", size=array.nbytes)
        whole = np.ascontiguousarray(array)
        binomial_broadcast(whole.reshape(-1), root)
        if whole is not array:
            array[...] = whole

    def all_to_all(self, parts: Sequence[Any]) -> list[Any]:
        if len(parts) != self.world_size:
            raise LabkitError(
                f"all_to_all needs {self.world_size} parts, one for each rank, its own included; it got {len(parts)}."
            )
        self._arrive()
        arrays = [np.ascontiguousarray(_array(part)) for part in parts]
        size = sum(one.nbytes for rank, one in enumerate(arrays) if rank != self.rank)
        self.note("all_to_all", size=size)
        leaving = np.array([len(one) for one in arrays])
        coming = np.empty_like(leaving)
        pairwise_all_to_all(np.split(coming, len(parts)), np.split(leaving, len(parts)))
        received = [np.empty((count, *arrays[0].shape[1:]), arrays[0].dtype) for count in coming]
        pairwise_all_to_all(received, arrays)
        return received if isinstance(parts[0], np.ndarray) else [_like(parts[0], one) for one in received]

    def finish(self) -> None:
        """The function has returned: what nobody waited for is carried out all the same, and noted."""
        self._arrive()
        for flight in self._flights:
            if not flight.landed:
                self.note("never waited", flight.name)

    def _arrive(self, last: _Flight | None = None) -> None:
        """Carry out what is under way, in the order of its launch, up to ``last``."""
        while self._under_way and (last is None or last in self._under_way):
            self._under_way.pop(0).carry_out()


class _Flight:
    """An asynchronous all-reduce: its buffer is hidden until the wait."""

    def __init__(self, world: RehearsedWorld, number: int, buffer: NDArray[Any]):
        self.world, self.name, self.buffer = world, str(number), buffer
        self._sum: NDArray[Any] = buffer.copy()
        # NaN, or -1 where there is none
        self._hidden = np.full(buffer.nbytes, 255, np.uint8).view(buffer.dtype)
        self.landed = False
        buffer[...] = self._hidden

    def carry_out(self) -> None:
        ring_all_reduce(self._sum)

    def wait(self) -> None:
        if self.landed:
            return
        self.world._arrive(self)
        if self.buffer.tobytes() != self._hidden.tobytes():
            self.world.note("changed", self.name)
        self.buffer[...] = self._sum
        self.landed = True
        self.world.note("wait", self.name)


def watch_gradients(world: RehearsedWorld, module: Any) -> None:
    """Note every gradient of a torch module at the moment that backward has finished it."""
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            size = parameter.numel() * parameter.element_size()
            parameter.register_post_accumulate_grad_hook(partial(_noted, world, name, size))


def _noted(world: RehearsedWorld, name: str, size: int, _: Any) -> None:
    world.note("gradient", name, size)


def _array(data: Any) -> NDArray[Any]:
    """The same memory as an array."""
    if isinstance(data, np.ndarray):
        return data
    if hasattr(data, "detach"):
        array: NDArray[Any] = data.detach().numpy()
        return array
    if data is None:
        raise LabkitError(
            "None cannot be sent. If it is a gradient: a parameter that is frozen, or was not used, has none."
        )
    raise LabkitError(f"A tensor or an array is needed here, and this is {type(data).__name__}.")


def _like(tensor: Any, array: NDArray[Any]) -> Any:
    import torch

    return torch.from_numpy(array)
