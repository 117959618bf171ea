"""Ranks on threads: a function that sends and receives, played on every rank of a small world, in one process.

    >>> def to_the_right(data):
    ...     rank, ranks = rank_context().rank, rank_context().world_size
    ...     coming = np.empty_like(data)
    ...     exchange(data, (rank + 1) % ranks, coming, (rank - 1) % ranks)
    ...     return coming
    >>> played = play(to_the_right, ranks=3, arguments=[(np.full(2, rank),) for rank in range(3)])
    >>> played.results[0], played.bytes_sent, played.steps
    (array([2, 2]), (16, 16, 16), 1)

Inside, `labkit.network`'s isend, irecv, send, recv, exchange and its collectives work as on real ranks, over NumPy
arrays or torch tensors of any type, and so does `rank_context`. One rank runs at a time, until it has to wait; then
the next one that can go on does. So every run is the same, and when nobody can go on, that is known at once.

As on gloo, and on MPI or NCCL with large messages, a send is over only when the receive for it has been posted
(rendezvous). With ``rendezvous=False`` it never waits, as with small messages on MPI (eager).

Time is counted in steps: in one step a rank sends one message and receives one, at most, and a message leaves one step
after everything that its sender had to wait for. It says in what order messages go, not how long they take.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

from labkit.errors import LabkitError
from labkit.network import context, p2p
from labkit.network.actor import Actor, Over, Pair, Parcel
from labkit.network.played import Deadlock, Event, Play, Wait

MAX_RANKS = 64


def play(
    function: Callable[..., Any],
    ranks: int,
    arguments: Sequence[Sequence[Any]] | None = None,
    rendezvous: bool = True,
) -> Play:
    """Run ``function(*arguments[rank])`` on every rank of a world of threads.

    Parameters
    ----------
    function : callable
    ranks : int
        1 to 64.
    arguments : sequence of sequences, optional
        One entry a rank; the function takes none by default.
    rendezvous : bool
        Whether a send waits for its receive.

    Returns
    -------
    Play
        What each rank returned, and all messages.

    Raises
    ------
    Deadlock
        A `LabkitError` that says who waits for whom; its ``play`` holds what had happened until then.
    Exception
        What the function raised on one rank, as it is, with that rank in a note.
    """
    given = [()] * ranks if arguments is None else arguments
    if not 1 <= ranks <= MAX_RANKS or len(given) != ranks:
        raise LabkitError(
            f"A play has 1 to {MAX_RANKS} ranks and arguments for each, not {ranks} with {len(given)}."
        )
    stage = Stage(ranks, rendezvous)
    stage.run(function, given)
    return stage.written_down()


class Stage:
    """All ranks of one play, and the messages between them."""

    def __init__(self, ranks: int, rendezvous: bool, actor: type[Actor] | None = None):
        self.ranks, self.rendezvous = ranks, rendezvous
        self.actors = [(actor or Actor)(self, rank) for rank in range(ranks)]
        self.pairs = {(a, b): Pair() for a in range(ranks) for b in range(ranks)}
        self.messages: list[Parcel] = []
        self.events: list[Event] = []
        self.results: list[Any] = [None] * ranks
        self.failure: BaseException | None = None

    def run(self, function: Callable[..., Any], arguments: Sequence[Sequence[Any]]) -> None:
        """Play it to its end; raises what went wrong."""
        threads = [
            threading.Thread(target=self._play, args=(actor, function, given), daemon=True)
            for actor, given in zip(self.actors, arguments, strict=True)
        ]
        for thread in threads:
            thread.start()
        self.actors[0].turn.release()
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            self.end(Over())  # whoever communicates next ends
            raise
        if self.failure is not None:
            raise self.failure

    def _play(self, actor: Actor, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        place = context.RankContext(actor.rank, self.ranks, backend="threads", device_name="cpu")
        with p2p.use(actor), context.use(place), contextlib.suppress(Over):
            actor.wait_for_turn()
            try:
                self.results[actor.rank] = function(*arguments)
            except Over:
                raise
            except BaseException as error:
                error.add_note(f"(on rank {actor.rank} of {self.ranks})")
                self.end(error)
            actor.note("ended")
            actor.ended = True
            self.hand_on(actor.rank)

    def hand_on(self, rank: int) -> None:
        """It is the turn of the next rank that can go on."""
        if self.failure is not None:
            return
        order = [self.actors[(rank + k) % self.ranks] for k in range(1, self.ranks + 1)]
        playing = [actor for actor in order if not actor.ended]
        for actor in playing:
            if actor.can_go_on():
                actor.turn.release()
                return
        if playing:
            self.end(Deadlock(self._waits(), self.written_down()))

    def end(self, failure: BaseException) -> None:
        """Nobody goes on: those who wait are woken, and leave."""
        if self.failure is None:
            self.failure = failure
        for actor in self.actors:
            actor.turn.release()

    def _waits(self) -> tuple[Wait, ...]:
        found = []
        for actor in self.actors:
            if actor.waiting is not None and not actor.ended:
                what, other, _ = actor.waiting
                found.append(Wait(actor.rank, what, other, self.actors[other].ended))
        return tuple(found)

    def written_down(self) -> Play:
        messages = tuple(parcel.message(order) for order, parcel in enumerate(self.messages))
        return Play(self.ranks, tuple(self.results), messages, tuple(self.events))
