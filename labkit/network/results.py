"""What a run of ranks gives back."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, overload

from labkit.errors import LabkitError
from labkit.hardware.units import show_bytes, show_time

if TYPE_CHECKING:
    from labkit.network.timeline import Timeline


@dataclass(frozen=True)
class RankTraffic:
    """Payload that one rank moved with labkit's own sends and receives, exact, in bytes by peer.

    Headers, and what torch's own collectives move, are not in it.
    """

    rank: int
    sent: Mapping[int, int]
    received: Mapping[int, int]
    messages: int

    @property
    def bytes_sent(self) -> int:
        return sum(self.sent.values())

    @property
    def bytes_received(self) -> int:
        return sum(self.received.values())

    def __repr__(self) -> str:
        return (
            f"RankTraffic(rank {self.rank}: {self.messages} messages, {self.bytes_sent} bytes sent, "
            f"{self.bytes_received} bytes received)"
        )


@dataclass(frozen=True, eq=False)
class RankResults(Sequence[Any]):
    """The results of all ranks, in rank order: index it, iterate over it, compare it with a list.

    Attributes
    ----------
    values : tuple
        One result a rank.
    backend, reason : str
        What carried torch.distributed's messages, and why.
    link : str
        The emulated link, or empty.
    seconds : float
        From the call to the last result, measured.
    traffic : tuple of RankTraffic
        Payload bytes of labkit's own sends, receives and collectives.
    """

    values: tuple[Any, ...]
    backend: str
    reason: str
    link: str
    seconds: float = field(compare=False)
    traffic: tuple[RankTraffic, ...] = ()
    traces: tuple[Any, ...] | None = field(default=None, repr=False)

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...

    def __getitem__(self, index: int | slice) -> Any:
        return self.values[index]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, (RankResults, list, tuple)):
            return list(self.values) == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def timeline(self) -> Timeline:
        """When each rank computed, communicated and waited, on one clock.

        Raises
        ------
        LabkitError
            When the run was not traced.
        """
        if self.traces is None:
            raise LabkitError("This run was not traced: call .run(..., trace=True), then .timeline().")
        from labkit.network.timeline import merge

        return merge(self.traces, self.backend)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the values, which may be anything."""
        return {
            "ranks": len(self),
            "backend": self.backend,
            "reason": self.reason,
            "link": self.link,
            "seconds": self.seconds,
            "bytes_sent": [one.bytes_sent for one in self.traffic],
            "bytes_received": [one.bytes_received for one in self.traffic],
        }

    def __repr__(self) -> str:
        return f"RankResults({len(self)} on {self.backend}: {_short.repr(list(self.values))})"

    def _repr_html_(self) -> str:
        from labkit.hardware.html import table

        rows = [(str(rank), f"<code>{escape(_short.repr(value))}</code>") for rank, value in enumerate(self)]
        took = f"{len(self)} ranks on {self.backend}, {show_time(self.seconds)} (measured). {self.reason}"
        moved = sum(one.bytes_sent for one in self.traffic)
        sent = f" labkit's own messages carried {show_bytes(moved)}." if moved else ""
        return f"<p>{escape(f'{took}{sent} {self.link}'.strip())}</p>" + table(("rank", "result"), rows)


_short = reprlib.Repr()
_short.maxlist = _short.maxtuple = 16
_short.maxother = _short.maxstring = 120
