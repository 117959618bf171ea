"""The parts of a recorded program: buffers and regions of them, operations, and what each operation waits for."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.units import show_bytes

COPY_IN, KERNEL, COPY_OUT = "copy in", "kernel", "copy out"
HOST_WORK, HOST_WAIT = "host work", "host waits"
KINDS = (COPY_IN, KERNEL, COPY_OUT, HOST_WORK, HOST_WAIT)
HOST = "host"
ENGINE = {
    COPY_IN: "copy engine in",
    KERNEL: "compute",
    COPY_OUT: "copy engine out",
    HOST_WORK: HOST,
    HOST_WAIT: HOST,
}


@dataclass(frozen=True)
class Region:
    """Bytes ``start`` to ``stop`` of a buffer; ``place`` is ``"host"`` or ``"device"``.

    ``blank`` tells that nothing is in the buffer until an operation writes it.
    """

    buffer: str
    start: int
    stop: int
    place: str
    pinned: bool
    blank: bool
    whole: int = field(repr=False)

    @property
    def size(self) -> int:
        """Bytes."""
        return self.stop - self.start

    def split(self, parts: int) -> tuple[Region, ...]:
        """The same bytes in ``parts`` pieces of nearly equal size, in order."""
        if isinstance(parts, bool) or not isinstance(parts, int) or not 1 <= parts <= max(1, self.size):
            raise LabkitError(f"{self} can be split into 1 to {self.size} parts, not {parts!r}.")
        cuts = [self.start + self.size * n // parts for n in range(parts + 1)]
        return tuple(self._part(*ends) for ends in pairwise(cuts))

    def _part(self, start: int, stop: int) -> Region:
        return Region(self.buffer, start, stop, self.place, self.pinned, self.blank, self.whole)

    def overlaps(self, other: Region) -> bool:
        """Whether the two share a byte."""
        same = (self.buffer, self.place) == (other.buffer, other.place)
        return same and self.start < other.stop and other.start < self.stop

    def __str__(self) -> str:
        if (self.start, self.stop) == (0, self.whole):
            return self.buffer
        return f"{self.buffer}[{show_bytes(self.start)} : {show_bytes(self.stop)}]"


@dataclass(frozen=True)
class Wait:
    """Operation ``on`` has to end first, because of ``why``: ``"stream"``, ``"event"``, ``"default stream"`` or
    ``"host"``."""

    on: int
    why: str


@dataclass(frozen=True)
class Operation:
    """One thing that the host, a copy engine or the compute engine does.

    Attributes
    ----------
    number : int
        Its place in the order of submission, from 0.
    stream : str
        Name of its stream; empty for what the host does itself.
    seconds : float
        How long it takes once it runs; ``how`` that is known: ``"modelled"``, ``"given"`` or ``"measured"``.
    reads, writes : tuple of Region
        What it touches.
    waits : tuple of Wait
        What has to end before it may start. Taking turns on an engine is not among them: it orders nothing for sure.
    """

    number: int
    kind: str
    name: str
    stream: str
    seconds: float
    how: str
    reads: tuple[Region, ...] = ()
    writes: tuple[Region, ...] = ()
    waits: tuple[Wait, ...] = ()

    @property
    def engine(self) -> str:
        return ENGINE[self.kind]

    @property
    def bytes(self) -> int:
        """Bytes over the link between host and device; 0 for what does not copy."""
        return self.reads[0].size if self.kind in (COPY_IN, COPY_OUT) else 0

    def __str__(self) -> str:
        return f"{self.kind} '{self.name}'"

    def to_dict(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in ("number", "kind", "name", "stream", "seconds", "how")}
        regions = {way: [vars(region) for region in getattr(self, way)] for way in ("reads", "writes")}
        return {**plain, "engine": self.engine, **regions, "waits": [vars(wait) for wait in self.waits]}


def from_dict(plain: dict[str, Any]) -> Operation:
    """The operation that :meth:`Operation.to_dict` described; ValueError for anything else."""
    try:
        reads, writes = (tuple(Region(**region) for region in plain[way]) for way in ("reads", "writes"))
        waits = tuple(Wait(int(wait["on"]), str(wait["why"])) for wait in plain["waits"])
        names = ("number", "kind", "name", "stream", "seconds", "how")
        found = Operation(**{name: plain[name] for name in names}, reads=reads, writes=writes, waits=waits)
    except (KeyError, TypeError) as error:
        raise ValueError("not the description of an operation") from error
    if found.kind not in KINDS or not found.seconds >= 0 or any(not 0 <= w.on < found.number for w in waits):
        raise ValueError("an operation that cannot be")
    return found
