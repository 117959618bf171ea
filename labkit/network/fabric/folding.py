"""Symmetry: ranks, messages and links that nothing tells apart need to be simulated once.

Everything alike gets one colour, and colours are split until two messages of one colour start and end at places
of the same colours over links of the same colours, and two places (links) of one colour send and receive (carry)
as many messages of each colour in every pattern. Then all of one colour fare alike: by induction over the events
of the simulation they start together, are given the same share and end together. So one message, place and link
of each colour suffices. (Colour refinement to an equitable partition, as in Berkholz, Bonsma and Grohe, Tight lower
and upper bounds for the complexity of canonical colour refinement, 2017.)

Colours are split by hashes, which is fast, and the outcome is then checked by counting, which is exact: where it
does not hold, nothing is folded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from labkit.network.fabric.routing import Routes
from labkit.network.fabric.schedule import Messages, Steps

ROUNDS = 64


@dataclass(frozen=True, eq=False)
class Folded:
    """Steps, routes and links of one of each colour.

    `weight` says, hop by hop, how many messages of that colour cross each link of that colour. `link_colour` and
    `message_colour` lead from the links and messages folded to what stands for them.
    """

    steps: Steps
    routes: Routes
    weight: np.ndarray
    capacity: np.ndarray
    delay: np.ndarray
    link_colour: np.ndarray
    message_colour: np.ndarray


def fold(steps: Steps, routes: Routes, capacity: np.ndarray, delay: np.ndarray) -> Folded | None:
    """One of each colour; None where fewer than half of the messages would be saved, or the check fails.

    Parameters
    ----------
    routes : of all messages of ``steps.messages``
    capacity : float64 array of links, bytes/s
    delay : float64 array of messages, seconds from start to first byte
    """
    messages = steps.messages
    pattern = np.repeat(np.arange(len(steps.patterns)), [len(each) for each in steps.patterns])
    hop_message = np.repeat(np.arange(len(messages)), np.diff(routes[0]))
    colours = _colours(messages, pattern, delay, hop_message, routes[1], capacity)
    message, place, link = colours
    if message.max(initial=-1) + 1 > len(messages) / 2 or not _alike(
        messages, hop_message, routes[1], colours
    ):
        return None
    first = np.unique(message, return_index=True)[1]
    hop_colour, crossed, weight = _hops(message, link, hop_message, routes[1], first)
    at = np.zeros(len(first) + 1, np.int32)
    np.cumsum(np.bincount(hop_colour, minlength=len(first)), out=at[1:])
    patterns = tuple(
        _one_each(messages, place, first[pattern[first] == each]) for each in range(len(steps.patterns))
    )
    # Message colours are numbered pattern by pattern, since the pattern is the first thing they differ by.
    return Folded(
        replace(steps, patterns=patterns),
        (at, crossed.astype(np.int32)),
        weight.astype(float),
        capacity[np.unique(link, return_index=True)[1]],
        delay[first],
        link,
        message,
    )


def _one_each(messages: Messages, place: np.ndarray, chosen: np.ndarray) -> Messages:
    return Messages(place[messages.source[chosen]], place[messages.target[chosen]], messages.size[chosen])


def _colours(
    messages: Messages,
    pattern: np.ndarray,
    delay: np.ndarray,
    owner: np.ndarray,
    crossed: np.ndarray,
    capacity: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Colours of messages, places and links, split until nothing splits any more."""
    places = int(max(messages.source.max(initial=-1), messages.target.max(initial=-1))) + 1
    message = _numbered(pattern, _numbered(messages.size), _numbered(delay))
    place, link = np.zeros(places, np.int64), _numbered(capacity)
    for _ in range(ROUNDS):
        before = [int(colour.max(initial=-1)) for colour in (message, place, link)]
        over = _sum(_mix(link)[crossed], owner, len(messages))
        message = _numbered(message, place[messages.source], place[messages.target], over)
        kind = _mix(message)
        out, into = _sum(kind, messages.source, places), _sum(kind, messages.target, places)
        place = _numbered(place, out, into)
        link = _numbered(link, _sum(kind[owner], crossed, len(link)))
        if before == [int(colour.max(initial=-1)) for colour in (message, place, link)]:
            break
    return message, place, link


def _numbered(*features: np.ndarray) -> np.ndarray:
    """A number for each distinct row of features; rows keep the order of the first feature."""
    number = np.unique(features[0], return_inverse=True)[1].astype(np.int64)
    for feature in features[1:]:
        values = np.unique(feature, return_inverse=True)[1].astype(np.int64)
        number = np.unique(number * (int(values.max(initial=0)) + 1) + values, return_inverse=True)[1].astype(
            np.int64
        )
    return number


def _mix(number: np.ndarray) -> np.ndarray:
    """Well-mixed 64-bit hashes of small numbers (the finalizer of splitmix64)."""
    z = (number.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _sum(values: np.ndarray, group: np.ndarray, count: int) -> np.ndarray:
    """Sums of hashes, modulo 2^64: the same for the same multiset, in whatever order."""
    total = np.zeros(count, np.uint64)
    np.add.at(total, group, values)
    return total


def _alike(
    messages: Messages,
    owner: np.ndarray,
    crossed: np.ndarray,
    colours: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> bool:
    """Whether the colours keep their promise, by counting."""
    message, place, link = colours
    every = np.arange(len(messages))
    return (
        _even(messages.source, message, place)
        and _even(messages.target, message, place)
        and _even(every, place[messages.source], message)
        and _even(every, place[messages.target], message)
        and _even(crossed, message[owner], link)
        and _even(owner, link[crossed], message)
    )


def _even(member: np.ndarray, other: np.ndarray, colour: np.ndarray) -> bool:
    """Whether members of one colour meet each other colour equally often. `colour` is by member."""
    many = int(other.max(initial=0)) + 1
    pairs, times = np.unique(member * many + other, return_counts=True)
    kind = np.unique(colour[pairs // many] * many + pairs % many, return_inverse=True)[1]
    least, most = (
        np.full(kind.max(initial=-1) + 1, np.iinfo(np.int64).max),
        np.zeros(kind.max(initial=-1) + 1, np.int64),
    )
    np.minimum.at(least, kind, times)
    np.maximum.at(most, kind, times)
    met = np.bincount(kind)
    size = np.bincount(colour)
    owner = np.zeros(len(met), np.int64)
    owner[kind] = colour[pairs // many]
    return bool((least == most).all() and (met == size[owner]).all())


def _hops(
    message: np.ndarray, link: np.ndarray, owner: np.ndarray, crossed: np.ndarray, first: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which link colours each message colour crosses, and how many of the one there are on each of the other."""
    many = int(link.max(initial=0)) + 1
    pairs, times = np.unique(message[owner] * many + link[crossed], return_counts=True)
    return pairs // many, pairs % many, times // np.bincount(link, minlength=many)[pairs % many]
