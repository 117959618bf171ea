"""Lesson 05: a halo exchange against the serial plate, bit by bit, and its bytes; the record is l05_record's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from labkit.course.checks import Call
from labkit.course.compare import number
from labkit.course.lessons.l05_record import cut, whole
from labkit.network.workloads import heat_serial, heat_step

Trouble = tuple[str, str] | None
Bands = list[np.ndarray]


def halo(call: Call, returned: Any) -> Trouble:
    """Nobody stuck, nothing left over, every value the serial one, and the halo alone sent."""
    heights, columns = call.arguments["heights"], call.arguments["columns"]
    try:
        deadlock = str(returned["deadlock"])
        messages = [tuple(map(int, message)) for message in returned["messages"]]
        bands = list(returned["returned"])
    except (TypeError, ValueError, KeyError):
        return "What the ranks did cannot be read.", "return this rank's rows as an array."
    if deadlock:
        return deadlock, _STUCK
    return (
        _untaken(messages)
        or _shapes(bands, heights, columns)
        or _values(call, bands)
        or _bytes(messages, len(heights), 8 * columns, call.arguments["steps"])
    )


_STUCK = (
    "who receives first waits until the other sends, and a send of a large message waits for its receive: start both, "
    "then wait for both. exchange(mine, other, theirs, other) does; ranks at the edges have one neighbour only."
)


def _untaken(messages: Sequence[tuple[int, ...]]) -> Trouble:
    for source, to, _, received in messages:
        if not received:
            message = f"Rank {source} sends to rank {to}, which never receives it."
            return message, "every send needs a receive on the other side, in every step."
    return None


def _shapes(bands: Sequence[Any], heights: Sequence[int], columns: int) -> Trouble:
    for rank, (band, rows) in enumerate(zip(bands, heights, strict=True)):
        if not isinstance(band, np.ndarray) or band.dtype != np.float64:
            return f"Rank {rank} returned {_kind(band)}.", "return this rank's rows as an array of float64."
        if band.shape != (rows, columns):
            why = (
                "the halo belongs to the neighbours: return padded[1:-1]."
                if band.shape == (rows + 2, columns)
                else ""
            )
            return f"Rank {rank} returned rows of shape {band.shape}, expected {(rows, columns)}.", why
    return None


def _kind(band: Any) -> str:
    if isinstance(band, np.ndarray):
        return f"an array of {band.dtype}"
    return "nothing" if band is None else f"a {type(band).__name__}"


def _values(call: Call, bands: Bands) -> Trouble:
    heights, steps = call.arguments["heights"], call.arguments["steps"]
    plate = whole(heights, call.arguments["columns"])
    expected = cut(heat_serial(plate, steps), heights)
    for rank, (got, wanted) in enumerate(zip(bands, expected, strict=True)):
        if not np.array_equal(got, wanted):
            row, column = (int(place) for place in np.argwhere(~(got == wanted))[0])
            message = (
                f"Rank {rank} has {number(float(got[row, column]))} in row {row}, column {column} of its part, "
                f"expected {number(float(wanted[row, column]))} after {steps} steps (the serial result, bit by bit)."
            )
            return message, _why(cut(plate, heights), steps, bands)
    return None


def _bytes(messages: Sequence[tuple[int, ...]], ranks: int, row: int, steps: int) -> Trouble:
    """A row to each neighbour in every step, and nothing else."""
    sent: Counter[tuple[int, int]] = Counter()
    for source, to, count, _ in messages:
        sent[source, to] += count
    for (source, to), count in sorted(sent.items()):
        if abs(source - to) != 1 and count:
            return f"The values are right, but rank {source} sends to rank {to}, which is no neighbour.", ""
    for source, to in ((a, b) for a in range(ranks) for b in (a - 1, a + 1) if 0 <= b < ranks):
        if sent[source, to] != steps * row:
            found = f"sends {sent[source, to]:,} bytes to rank {to}, target {steps * row:,}"
            return f"The values are right, but rank {source} {found}.", _bytes_why(
                sent[source, to], row, steps
            )
    return None


def _bytes_why(count: int, row: int, steps: int) -> str:
    if count == (steps + 1) * row:
        return "that is one exchange more than there are steps: after the last step nobody needs a halo."
    return f"only the row next to the neighbour is needed there: {row} bytes in every step."


@dataclass(frozen=True)
class _Mistake:
    """How a wrong program fills the halo: given all padded bands (the halos still old) and the step."""

    fill: Callable[[Bands, int], None]
    why: str


def _why(parts: Bands, steps: int, bands: Bands) -> str:
    for mistake in _mistakes(steps):
        played = _played(parts, steps, mistake.fill)
        if all(np.array_equal(one, other) for one, other in zip(played, bands, strict=True)):
            return mistake.why
    return _HINT if _inner_rows_right(parts, steps, bands) else ""


_HINT = "only rows near the borders are wrong: what lies in the halo when heat_step is called?"


def _played(parts: Bands, steps: int, fill: Callable[[Bands, int], None]) -> Bands:
    padded = [np.pad(part, ((1, 1), (0, 0))) for part in parts]
    for step in range(steps):
        fill(padded, step)
        for one in padded:
            one[1:-1] = heat_step(one)
    return [one[1:-1] for one in padded]


def _borders(padded: Bands) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each band with the one below."""
    return pairwise(padded)


def _right(padded: Bands, _: int) -> None:
    for above, below in _borders(padded):
        above[-1], below[0] = below[1].copy(), above[-2].copy()


def _nothing(padded: Bands, _: int) -> None:
    pass


def _once(padded: Bands, step: int) -> None:
    if step == 0:
        _right(padded, step)


def _late(padded: Bands, step: int) -> None:
    """Exchanged after each step, so that the first one sees zeros; the others see what is right."""
    if step:
        _right(padded, step)


def _every_other(padded: Bands, step: int) -> None:
    if step % 2 == 0:
        _right(padded, step)


def _far_rows(padded: Bands, _: int) -> None:
    """Each sends the row that lies furthest from the neighbour."""
    rows = [(one[1].copy(), one[-2].copy()) for one in padded]
    for rank in range(len(padded) - 1):
        padded[rank][-1], padded[rank + 1][0] = rows[rank + 1][1], rows[rank][0]


def _swapped(padded: Bands, _: int) -> None:
    """The right rows arrive and are put on the wrong side."""
    rows = [(one[1].copy(), one[-2].copy()) for one in padded]
    for rank, one in enumerate(padded):
        if rank:
            one[-1] = rows[rank - 1][1]
        if rank + 1 < len(padded):
            one[0] = rows[rank + 1][0]


def _one_side(side: int) -> Callable[[Bands, int], None]:
    def fill(padded: Bands, _: int) -> None:
        for above, below in _borders(padded):
            if side:
                above[-1] = below[1]
            else:
                below[0] = above[-2]

    return fill


def _round(padded: Bands, _: int) -> None:
    """First and last rank are neighbours, too."""
    rows = [(one[1].copy(), one[-2].copy()) for one in padded]
    for rank, one in enumerate(padded):
        one[-1], one[0] = rows[(rank + 1) % len(padded)][0], rows[rank - 1][1]


def _mistakes(steps: int) -> tuple[_Mistake, ...]:
    return (
        _Mistake(
            _nothing,
            "there are zeros in the halo all the time: each neighbour's outermost row belongs there.",
        ),
        _Mistake(
            _once, "the halo is stale: it was exchanged once, and the neighbours' rows change in every step."
        ),
        _Mistake(_late, "the first step saw zeros in the halo: exchange before each step, not after it."),
        _Mistake(_every_other, "the halo is stale in every other step: exchange before each one."),
        _Mistake(
            _far_rows,
            "each rank sends the row on its far side: the neighbour below needs the last, padded[-2].",
        ),
        _Mistake(
            _swapped, "the rows are on the wrong side: what comes from rank - 1 belongs above, in padded[0]."
        ),
        _Mistake(
            _one_side(0), "the halo below stays empty: each rank needs the first row of rank + 1 as well."
        ),
        _Mistake(
            _one_side(1), "the halo above stays empty: each rank needs the last row of rank - 1 as well."
        ),
        _Mistake(
            _round, "the plate has ends: above rank 0 and below the last rank it is 0, not the other end."
        ),
    )


def _inner_rows_right(parts: Bands, steps: int, bands: Bands) -> bool:
    """Whether all that is far from borders is right, in bands that are high enough to tell."""
    expected = _played(parts, steps, _right)
    inner = [(got[steps:-steps], wanted[steps:-steps]) for got, wanted in zip(bands, expected, strict=True)]
    told = [pair for pair in inner if pair[0].size]
    return bool(told) and all(np.array_equal(*pair) for pair in told)
