"""Who sends how much to whom, and what each message waits for.

A `Schedule` lists every message and every dependency. `Steps` say the same shorter, for algorithms in which all
ranks take steps together: a few patterns of messages, and the order in which they are repeated. A schedule of
16,384 ranks in a ring has half a billion messages, and two lines of steps.

Messages go between *places*: numbers of nodes in a topology. The same node may stand for several places, each with
a memory of its own of what it has received; that is how a GPU runs several rings at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from labkit.errors import LabkitError
from labkit.hardware.units import show_bytes

MOST_BYTES = 8 * 2**30
BYTES_A_MESSAGE, BYTES_A_HOP = 150, 50  # what the engine keeps of each


@dataclass(frozen=True, eq=False)
class Messages:
    """Arrays: place `source`, place `target`, `size` in bytes."""

    source: np.ndarray
    target: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, source: Iterable[int], target: Iterable[int], size: float | Iterable[float]) -> Messages:
        ends = [np.asarray(end, np.int64).ravel() for end in (source, target)]
        return cls(ends[0], ends[1], np.broadcast_to(np.asarray(size, float), ends[0].shape).copy())

    def __len__(self) -> int:
        return len(self.size)


def joined(parts: Sequence[Messages]) -> Messages:
    """One after the other."""
    return Messages(
        np.concatenate([part.source for part in parts]),
        np.concatenate([part.target for part in parts]),
        np.concatenate([part.size for part in parts]),
    )


@dataclass(frozen=True, eq=False)
class Schedule:
    """Message i is ``messages[which[i]]``; message ``after[j]`` waits for message ``before[j]``, for every j.

    `places` are the numbers of the nodes that the places stand for.
    """

    places: np.ndarray
    messages: Messages
    which: np.ndarray
    before: np.ndarray
    after: np.ndarray

    def __len__(self) -> int:
        return len(self.which)

    def followers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """How many messages each waits for; and the messages that wait for it, as offsets and a list."""
        count = len(self)
        order = np.argsort(self.before, kind="stable")
        at = np.zeros(count + 1, np.int32)
        np.cumsum(np.bincount(self.before, minlength=count), out=at[1:])
        waits = np.bincount(self.after, minlength=count).astype(np.int32)
        return waits, at, self.after[order].astype(np.int32)


@dataclass(frozen=True, eq=False)
class Steps:
    """Patterns of messages, and a `program` of (pattern, how many times in a row).

    forwards : a message waits for what its source received since it last sent, or, having received nothing since,
        for what it waited for then; without it, ranks send what is their own.
    in_order : a message also waits for the last messages of its source.
    in_turn : a message also waits for the last messages to its target, which takes one at a time.
    """

    places: np.ndarray
    patterns: tuple[Messages, ...]
    program: tuple[tuple[int, int], ...]
    forwards: bool = True
    in_order: bool = True
    in_turn: bool = False

    @property
    def messages(self) -> Messages:
        """The messages of all patterns."""
        return joined(self.patterns)

    def count(self) -> int:
        return sum(len(self.patterns[pattern]) * times for pattern, times in self.program)

    def schedule(self) -> Schedule:
        """Every message of every step, with what it waits for."""
        offsets = np.cumsum([0] + [len(pattern) for pattern in self.patterns])
        ledger, which = _Ledger(self), []
        for pattern, times in self.program:
            ledger.repeat(self.patterns[pattern], times)
            which.append(np.tile(np.arange(offsets[pattern], offsets[pattern + 1]), times))
        before, after = ledger.edges()
        return Schedule(self.places, self.messages, np.concatenate(which), before, after)


class _Mail:
    """(place, message) pairs: who has received, or sent, which message."""

    def __init__(self) -> None:
        self.place, self.message = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def add(self, place: np.ndarray, message: np.ndarray) -> None:
        self.place = np.concatenate([self.place, place])
        self.message = np.concatenate([self.message, message])

    def take(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Remove, and return, the pairs of these places."""
        mine = np.isin(self.place, places)
        taken = self.place[mine], self.message[mine]
        self.place, self.message = self.place[~mine], self.message[~mine]
        return taken

    def waited_for(self, source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Every (pair, message to send) with the same place: message in the mail, index of the one to send."""
        order = np.argsort(self.place, kind="stable")
        first = np.searchsorted(self.place[order], source, "left")
        many = np.searchsorted(self.place[order], source, "right") - first
        sender = np.repeat(np.arange(len(source)), many)
        nth = np.arange(len(sender)) - np.repeat(np.cumsum(many) - many, many)
        return self.message[order[np.repeat(first, many) + nth]], sender


class _Ledger:
    """Works out what waits for what, step after step."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.fresh, self.held, self.sent, self.taken = _Mail(), _Mail(), _Mail(), _Mail()
        self.count = 0
        self.before: list[np.ndarray] = []
        self.after: list[np.ndarray] = []

    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        return np.concatenate(self.before), np.concatenate(self.after)

    def repeat(self, pattern: Messages, times: int) -> None:
        """From its second time on a pattern waits for itself, if whoever receives in it also sends."""
        steady = bool(np.isin(pattern.target, pattern.source).all())
        for _ in range(min(times, 2) if steady else times):
            self._once(pattern)
        if steady and times > 2:
            self._again(len(pattern), times - 2)

    def _once(self, pattern: Messages) -> None:
        numbers = self.count + np.arange(len(pattern))
        pairs = [self._received(pattern.source)] if self.steps.forwards else []
        pairs += [self.sent.waited_for(pattern.source)] if self.steps.in_order else []
        pairs += [self.taken.waited_for(pattern.target)] if self.steps.in_turn else []
        self.before.append(np.concatenate([before for before, _ in pairs]) if pairs else numbers[:0])
        self.after.append(
            self.count + (np.concatenate([sender for _, sender in pairs]) if pairs else numbers[:0])
        )
        self.fresh.add(pattern.target, numbers)
        self.sent.take(pattern.source)
        self.sent.add(pattern.source, numbers)
        self.taken.take(pattern.target)
        self.taken.add(pattern.target, numbers)
        self.count += len(pattern)

    def _received(self, source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        places, messages = self.fresh.take(source)
        self.held.take(places)
        self.held.add(places, messages)
        return self.held.waited_for(source)

    def _again(self, length: int, times: int) -> None:
        """Repeat the last step: what it waits for in the step before it moves along, older things stay."""
        shift = length * np.arange(1, times + 1)[:, None]
        before, after = self.before[-1], self.after[-1]
        moves = before >= self.count - 2 * length
        self.before.append((before + shift * moves).ravel())
        self.after.append((after + shift).ravel())
        for mail in (self.fresh, self.held, self.sent, self.taken):
            mail.message = mail.message + length * times * (mail.message >= self.count - 2 * length)
        self.count += length * times


def pipelined(schedule: Schedule, chunks: int) -> Schedule:
    """The same for each of so many equal chunks; a message of a chunk waits for the same one of the chunk before."""
    if chunks == 1:
        return schedule
    count = len(schedule)
    shift = count * np.arange(chunks)[:, None]
    ahead = np.arange(count * (chunks - 1))
    messages = replace(schedule.messages, size=schedule.messages.size / chunks)
    return Schedule(
        schedule.places,
        messages,
        np.tile(schedule.which, chunks),
        np.concatenate([(schedule.before + shift).ravel(), ahead]),
        np.concatenate([(schedule.after + shift).ravel(), ahead + count]),
    )


def afford_messages(count: int, hops: float, what: str) -> None:
    """Refuse to simulate more messages than memory holds; `hops` is the mean length of their routes."""
    needed = count * (BYTES_A_MESSAGE + BYTES_A_HOP * hops)
    if needed > MOST_BYTES:
        raise LabkitError(
            f"{what} is {count:,} messages, which would take about {show_bytes(needed)} of memory one by one (at most "
            f"{show_bytes(MOST_BYTES)} is used): take fewer ranks or chunks, or equal links, which can be folded."
        )


def from_list(
    places: Sequence[int] | np.ndarray, messages: Sequence[tuple[int, int, float, Sequence[int]]]
) -> Schedule:
    """A schedule of (source place, target place, bytes, [numbers of the messages it waits for]).

    Raises
    ------
    LabkitError
        For a message that waits for one that does not exist. (Waiting in a circle is found when it is run.)
    """
    for number, (*_, waits) in enumerate(messages):
        if wrong := [other for other in waits if not 0 <= other < len(messages)]:
            raise LabkitError(
                f"Message {number} waits for message {wrong[0]}, and there are only {len(messages)}."
            )
    edges = [(other, number) for number, (*_, waits) in enumerate(messages) for other in waits]
    return Schedule(
        np.asarray(places, np.int64),
        Messages.of([m[0] for m in messages], [m[1] for m in messages], [m[2] for m in messages]),
        np.arange(len(messages)),
        np.array([before for before, _ in edges], np.int64),
        np.array([after for _, after in edges], np.int64),
    )


def circle(schedule: Schedule, stuck: np.ndarray) -> list[int]:
    """Messages that wait for each other in a circle, of a schedule that came to a halt with `stuck` messages."""
    waiting = set(np.flatnonzero(stuck).tolist())
    awaited = {
        after: before
        for before, after in zip(schedule.before.tolist(), schedule.after.tolist(), strict=True)
        if before in waiting
    }
    seen: list[int] = []
    message = min(waiting & set(awaited))
    while message not in seen:
        seen.append(message)
        message = awaited[message]
    return seen[seen.index(message) :]
