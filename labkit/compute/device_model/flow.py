"""Where the bytes come from: followed through copies and kernels, in the order of submission.

For a program without hazards this is what every run gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from labkit.compute.device_model.operations import COPY_IN, COPY_OUT, KERNEL, Operation, Region


@dataclass(frozen=True)
class Piece:
    """Bytes ``start`` to ``stop`` of an array: bytes ``first`` to ``last`` of ``source`` after so many ``kernels``.

    Element by element where both have one length; else all of them are one result of all the source's bytes.
    """

    start: int
    stop: int
    source: str
    first: int
    last: int
    kernels: int = 0

    @property
    def straight(self) -> bool:
        return self.stop - self.start == self.last - self.first

    def cut(self, start: int, stop: int) -> Piece:
        """What of the piece lies between two places of its array."""
        begin, end = max(start, self.start), min(stop, self.stop)
        if not self.straight:
            return replace(self, start=begin, stop=end)
        shift = self.first - self.start
        return replace(self, start=begin, stop=end, first=begin + shift, last=end + shift)

    def moved(self, by: int, kernels: int = 0) -> Piece:
        return replace(self, start=self.start + by, stop=self.stop + by, kernels=self.kernels + kernels)


class Flow:
    """What is in every array after a program."""

    def __init__(self, operations: Iterable[Operation]):
        self._pieces: dict[tuple[str, str], list[Piece]] = {}
        for one in operations:
            if one.kind in (COPY_IN, COPY_OUT):
                self._copy(one.reads[0], one.writes[0])
            elif one.kind == KERNEL:
                self._kernel(one)

    def of(self, where: Region) -> list[Piece]:
        """The pieces in a region, in order; bytes that nobody wrote are in none."""
        key = (where.place, where.buffer)
        if key not in self._pieces and not where.blank:
            return [Piece(where.start, where.stop, where.buffer, where.start, where.stop)]
        return _cut(self._pieces.get(key, ()), where.start, where.stop)

    def _copy(self, source: Region, target: Region) -> None:
        self._write(target, [piece.moved(target.start - source.start) for piece in self.of(source)])

    def _kernel(self, one: Operation) -> None:
        read = [(region, self.of(region)) for region in one.reads]
        for target in one.writes:
            same = [pair for pair in read if pair[0].size == target.size]
            if same:
                region, pieces = same[0]
                self._write(target, [piece.moved(target.start - region.start, 1) for piece in pieces])
            else:
                self._write(target, _summary(target, [piece for _, pieces in read for piece in pieces]))

    def _write(self, target: Region, pieces: list[Piece]) -> None:
        key = (target.place, target.buffer)
        old = self._pieces.get(key)
        if old is None:
            whole = Piece(0, target.whole, target.buffer, 0, target.whole)
            old = [] if target.blank else [whole]
        kept = [*_cut(old, 0, target.start), *_cut(old, target.stop, target.whole)]
        self._pieces[key] = sorted([*kept, *pieces], key=lambda piece: piece.start)


def _cut(pieces: Sequence[Piece], start: int, stop: int) -> list[Piece]:
    return [piece.cut(start, stop) for piece in pieces if piece.start < stop and start < piece.stop]


def _summary(target: Region, pieces: Sequence[Piece]) -> list[Piece]:
    """One result of many bytes; nothing when the kernel read nothing."""
    if not pieces:
        return []
    first, last = min(piece.first for piece in pieces), max(piece.last for piece in pieces)
    kernels = max(piece.kernels for piece in pieces) + 1
    return [Piece(target.start, target.stop, pieces[0].source, first, last, kernels)]
