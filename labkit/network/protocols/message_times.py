"""Eager against rendezvous between two real processes: times, what was counted, and where they cross."""

from __future__ import annotations

import math
import socket
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.units import parse, show_bytes, show_rate, show_time
from labkit.network.protocols.channel import PROTOCOLS, Channel, Counts
from labkit.network.protocols.pair import between, run_pair

SIZES = tuple(1 << power for power in range(3, 22))
_MAX_BYTES = 256 << 20
_WARM_UP = 2  # round trips that touch pages and fill caches
_COPY, _COPIED = 1 << 18, 1 << 24  # bytes of one copy, at most, and of all that the rate is measured with


@dataclass(frozen=True)
class ProtocolTime:
    """Messages of one size by one protocol.

    Attributes
    ----------
    size : int
        Bytes of the user's data.
    protocol : str
    seconds, low, high : float
        One way, half of there and back: the median, and the quartiles.
    sender, receiver : Counts
        What the layer counted for one message, at either end.
    """

    size: int
    protocol: str
    seconds: float
    low: float
    high: float
    sender: Counts
    receiver: Counts

    @property
    def counts(self) -> Counts:
        """Of both ends; the message itself is counted once."""
        both = self.sender + self.receiver
        return both - Counts(messages=self.receiver.messages)


@dataclass(frozen=True)
class EagerRendezvous:
    """Times of both protocols by size, and what the alpha-beta model makes of the small ones.

    Attributes
    ----------
    rows : tuple of ProtocolTime
    alpha : float
        Seconds of the smallest message, eager, one way (measured).
    copy_rate : float
        Bytes/s of a copy in the receiver's memory (measured).
    where : str
        Between what.
    """

    rows: tuple[ProtocolTime, ...]
    alpha: float
    copy_rate: float
    where: str

    @property
    def label(self) -> str:
        return f"measured and counted: {self.where}"

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(sorted({row.size for row in self.rows}))

    def of(self, protocol: str, size: int | None = None) -> tuple[ProtocolTime, ...]:
        """The rows of a protocol, of one size or of all."""
        return tuple(row for row in self.rows if row.protocol == protocol and size in (None, row.size))

    @property
    def crossover(self) -> float | None:
        """Bytes from which rendezvous is faster, of the measured times; None when it is not seen at these sizes.

        The one switch between the protocols that makes the sum of relative losses smallest, so that one
        disturbed measurement does not decide; between two sizes it is where the lines through the times cross.
        """
        eager = [row.seconds for row in self.of("eager")]
        rendezvous = [row.seconds for row in self.of("rendezvous")]
        return crossing(self.sizes, eager, rendezvous)

    @property
    def modelled(self) -> float:
        """Bytes from which rendezvous is faster, of alpha and the rate of copies (modelled)."""
        return crossover(self.alpha, self.copy_rate)

    def to_dict(self) -> dict[str, Any]:
        return {
            "label": self.label,
            **asdict(self),
            "crossover_measured": self.crossover,
            "crossover_modelled": self.modelled,
        }

    def __repr__(self) -> str:
        seen = "not seen at these sizes" if self.crossover is None else show_bytes(self.crossover)
        return (
            f"EagerRendezvous({len(self.sizes)} sizes; rendezvous wins from: measured {seen}, "
            f"modelled {show_bytes(self.modelled)}; {self.where})"
        )

    def _repr_html_(self) -> str:
        from labkit.hardware.html import table

        head = (
            "bytes",
            "protocol",
            "time",
            "control messages",
            "copied by the layer",
            "system calls",
            "round trips",
        )
        rows = [
            (show_bytes(row.size), row.protocol, show_time(row.seconds), *map(str, _shown(row.counts)))
            for row in self.rows
        ]
        return table(head, rows, f"{self.label}. {self._words()}")

    def _words(self) -> str:
        seen = "no size here" if self.crossover is None else show_bytes(self.crossover)
        return (
            f"Rendezvous is faster from {seen} (measured), from {show_bytes(self.modelled)} (modelled: 2 alpha of "
            f"{show_time(self.alpha)} against a copy at {show_rate(self.copy_rate)})."
        )


def _shown(counts: Counts) -> tuple[Any, ...]:
    return counts.control, show_bytes(counts.copied), counts.system_calls, counts.round_trips


def crossover(alpha: float | str, copy_rate: float | str) -> float:
    """Bytes from which rendezvous is faster (modelled): where the copy that eager makes takes as long as the round
    trip that rendezvous makes, ``2 alpha = n / copy_rate``.

    Parameters
    ----------
    alpha : float or str
        Seconds of a small message, one way.
    copy_rate : float or str
        Bytes/s of a copy in memory.
    """
    return 2 * parse(alpha, "time") * parse(copy_rate, "rate")


def crossing(sizes: Sequence[float], eager: Sequence[float], rendezvous: Sequence[float]) -> float | None:
    """Bytes from which ``rendezvous`` (seconds by size) lies below ``eager``; None when one wins throughout.

    Sizes ascend. Where to switch is chosen by the least sum of relative losses over all sizes.
    """
    gain = [math.log(e / r) for e, r in zip(eager, rendezvous, strict=True)]
    # Switching at place k loses what eager would have gained from k on, and rendezvous before.
    losses = [
        sum(max(0.0, g) for g in gain[:place]) + sum(max(0.0, -g) for g in gain[place:])
        for place in range(len(gain) + 1)
    ]
    place = losses.index(min(losses))
    if place in (0, len(gain)):
        return None
    before, after = gain[place - 1], gain[place]
    share = before / (before - after) if before != after else 0.5
    share = min(1.0, max(0.0, share))
    return float(sizes[place - 1] * (sizes[place] / sizes[place - 1]) ** share)


def eager_rendezvous(
    sizes: Sequence[int | str] = SIZES,
    rounds: int = 30,
    *,
    cluster: Any = None,
    nodes: tuple[str, str] | None = None,
) -> EagerRendezvous:
    """Send messages of each size there and back by each protocol, timed and counted.

    The message layer is real (`labkit.network.protocols.channel`), as are the two processes. Bounce buffers are as
    large as the largest message, so that eager can be measured where no library would use it.

    Parameters
    ----------
    sizes : sequence
        Bytes, or strings such as ``"64KiB"``.
    rounds : int
        Round trips a size and protocol; the protocols take turns, so that a disturbance hits both.
    cluster : Cluster, optional
        Between two of its nodes (``nodes``, else the first two) instead of over loopback.

    Raises
    ------
    LabkitError
        For sizes that cannot be measured, and processes that fail.
    """
    asked = sorted({int(parse(size, "size")) for size in sizes})
    if len(asked) < 2 or asked[0] < 1 or asked[-1] > _MAX_BYTES:
        raise LabkitError(f"Give two sizes or more, from 1 byte to {show_bytes(_MAX_BYTES)}.")
    if rounds < 3:
        raise LabkitError(f"rounds={rounds}: a median takes 3 round trips or more.")
    place = between(cluster, nodes)
    limit_s = place.limit_s(4 * (rounds + _WARM_UP) * sum(asked))  # there and back, by both protocols
    sender, receiver = run_pair(place, "eager_rendezvous", limit_s, sizes=asked, rounds=rounds)
    rows = [_row(*both) for both in zip(sender["rows"], receiver["rows"], strict=True)]
    return EagerRendezvous(tuple(rows), rows[0].seconds, receiver["copy_rate"], place.words)


def _row(sender: dict[str, Any], receiver: dict[str, Any]) -> ProtocolTime:
    low, middle, high = (one / 2 for one in statistics.quantiles(sender["seconds"], n=4))
    return ProtocolTime(
        sender["size"],
        sender["protocol"],
        *(middle, low, high),
        Counts(**sender["counts"]),
        Counts(**receiver["counts"]),
    )


def work(line: socket.socket, side: int, sizes: list[int], rounds: int) -> dict[str, Any]:
    """One half: side 0 sends and waits for the answer, side 1 answers by the same protocol."""
    channel = Channel(line, bounce=max(sizes))
    out, into = bytearray(max(sizes)), bytearray(max(sizes))
    turn = _there_and_back if side == 0 else _back
    rows = []
    for size in sizes:
        seconds: dict[str, list[float]] = {protocol: [] for protocol in PROTOCOLS}
        counts: dict[str, Counts] = {}
        for number in range(-_WARM_UP, rounds):
            for protocol in PROTOCOLS:
                took, counts[protocol] = turn(channel, memoryview(out)[:size], into, protocol)
                if number >= 0:
                    seconds[protocol].append(took)
        rows += [
            {"size": size, "protocol": one, "seconds": seconds[one], "counts": counts[one].to_dict()}
            for one in PROTOCOLS
        ]
    return {"rows": rows, "copy_rate": _copy_rate(min(max(sizes), _COPY))}


def _there_and_back(
    channel: Channel, out: memoryview, into: bytearray, protocol: str
) -> tuple[float, Counts]:
    """Seconds of both ways, and the counts of the way there."""
    before = channel.counts
    began = time.perf_counter()
    channel.send(out, protocol)
    counted = channel.counts - before
    channel.receive(into)
    return time.perf_counter() - began, counted


def _back(channel: Channel, out: memoryview, into: bytearray, protocol: str) -> tuple[float, Counts]:
    before = channel.counts
    channel.receive(into)
    counted = channel.counts - before
    channel.send(out, protocol)
    return 0.0, counted


def _copy_rate(size: int) -> float:
    """Bytes/s of copies as the layer makes them, from memory that is in no near cache, as data just received."""
    pieces = max(2, _COPIED // size)
    source, target = memoryview(bytearray(pieces * size)), memoryview(bytearray(pieces * size))
    target[:] = source  # touches all pages
    seconds = []
    for piece in range(pieces):
        place = slice(piece * size, (piece + 1) * size)
        began = time.perf_counter()
        target[place] = source[place]
        seconds.append(time.perf_counter() - began)
    return size / statistics.median(seconds)
