"""Lesson 06: the record of a play, read with care, and the gates that all its exercises share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.course.checks import Call
from labkit.course.compare import number

Trouble = tuple[str, str] | None
Message = tuple[int, int, int, int]
DEADLOCK_WHY = (
    "a receive needs a send from that very rank, and a send is over only when its receive has been posted: "
    "exchange does both at once."
)


@dataclass(frozen=True)
class Played:
    """What ``l06_record.record`` wrote down; a message is its step, source, destination and elements."""

    ranks: int
    elements: int
    data: Sequence[np.ndarray]
    returned: Sequence[Any]
    deadlock: str
    messages: Sequence[Message]
    untaken: Sequence[Message]
    ready_made: Sequence[str]
    same_array: Sequence[bool]

    @property
    def steps(self) -> int:
        return 1 + max((message[0] for message in self.messages), default=-1)

    def messages_of(self, rank: int) -> int:
        return sum(source == rank for _, source, _, _ in self.messages)

    def sentence(self, rank: int, element: int, got: Any, wanted: Any) -> str:
        found = "NaN, nothing," if np.isnan(got) else number(got)
        return f"Rank {rank} has {found} in element {element}, expected {number(wanted)}."

    def went_on(self) -> Trouble:
        """Nobody is stuck, and the messages are the answer's own."""
        if self.deadlock:
            return f"Deadlock. {self.deadlock}", DEADLOCK_WHY
        if self.ready_made:
            message = (
                f"A ready-made {' and '.join(self.ready_made)} of labkit.network sends the messages here."
            )
            return message, "the task is to write it, with send, recv and exchange."
        return None

    def messages_at_least(self, target: int) -> Trouble:
        """So many messages are needed, whatever the algorithm."""
        if len(self.messages) >= target or not self.elements:
            return None
        sent = f"{len(self.messages)} message{'s' * (len(self.messages) != 1)}"
        return (
            f"The values are right, but {self.ranks} ranks sent {sent}, and cannot do with fewer than {target}.",
            "what the others have comes by messages alone.",
        )

    def neighbours(self) -> Trouble:
        """Every message goes to the right."""
        for step, source, to, _ in self.messages:
            if to != (source + 1) % self.ranks:
                right = (source + 1) % self.ranks
                return (
                    f"Rank {source} sends to rank {to} in step {step + 1}; its right neighbour is rank {right}.",
                    "in a ring everybody sends to (rank + 1) % ranks and receives from (rank - 1) % ranks.",
                )
        return None

    def sent(self, target: Callable[[Played, int], int], words: str) -> Trouble:
        """Every rank sends exactly so many elements."""
        sent = self._elements_sent()
        for rank in range(self.ranks):
            wanted = target(self, rank)
            if sent[rank] != wanted:
                found = f"{_bytes(self, sent[rank])}, target {_bytes(self, wanted)}"
                return f"The values are right, but rank {rank} sends {found}: {words}.", _too_much(
                    sent[rank], wanted
                )
        return None

    def sent_at_most(self, target: float, why: str) -> Trouble:
        sent = self._elements_sent()
        for rank in range(self.ranks):
            if sent[rank] > target:
                found = f"{_bytes(self, sent[rank])}, target {_bytes(self, int(target))} at most"
                return f"The values are right, but rank {rank} sends {found}.", why
        return None

    def steps_at_most(self, target: int, why: str) -> Trouble:
        if self.steps <= target:
            return None
        return f"The values are right, but it takes {self.steps} steps, target {target}.", why

    def left_over(self) -> Trouble:
        """Nobody's message is left lying."""
        for _, source, to, elements in self.untaken:
            message = f"Rank {source} sends {elements} elements to rank {to}, which never receives them."
            return message, "on real ranks such a send never ends."
        return None

    def _elements_sent(self) -> Counter[int]:
        sent: Counter[int] = Counter()
        for _, source, _, elements in self.messages:
            sent[source] += elements
        return sent


def read(record: Any, call: Call) -> Played | tuple[str, str]:
    """The record, if it is one; else what to say."""
    ranks, elements = call.arguments["ranks"], call.arguments["elements"]
    try:
        every = [tuple(map(int, message)) for message in record["messages"]]
        data = [np.asarray(one) for one in record["data"]]
        returned, deadlock = list(record["returned"]), str(record["deadlock"])
        ready_made, same_array = list(map(str, record["ready_made"])), list(map(bool, record["same_array"]))
        sound = all(one.shape == (elements,) and one.dtype.kind in "fi" for one in data)
        sound = (
            sound
            and len(data) == len(returned) == len(same_array) == ranks
            and all(len(message) == 5 for message in every)
        )
    except (TypeError, ValueError, KeyError):
        sound = False
    if not sound:
        return (
            "What the ranks did cannot be read.",
            "change the elements of data, and leave the array as it is.",
        )
    messages = [message[:4] for message in every]
    untaken = [message[:4] for message in every if not message[4]]
    heard = messages, untaken, ready_made, same_array
    return Played(ranks, elements, data, returned, deadlock, *heard)  # type: ignore[arg-type]


def differs(got: np.ndarray, wanted: np.ndarray) -> int | None:
    """The first element that is not what it should be."""
    wrong = ~(got == wanted)
    return int(np.argmax(wrong)) if wrong.any() else None


def _bytes(played: Played, elements: int) -> str:
    return f"{elements * played.data[0].itemsize:,} bytes"


def _too_much(sent: int, wanted: int) -> str:
    return (
        "send one chunk in a step, not all of the data."
        if sent > wanted
        else "some chunk did not go by the ring: each goes on to the right neighbour, step by step."
    )
