"""Hazards: two operations touch the same bytes, one of them writes, and nothing orders the two.

They are found in the dependency graph, not in a schedule: a program with a hazard may run right a thousand times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from labkit.compute.device_model.operations import COPY_IN, COPY_OUT, HOST_WORK, KERNEL, Operation, Region
from labkit.compute.device_model.order import Order
from labkit.hardware.units import show_bytes

TOO_EARLY, OVERWRITES, BOTH_WRITE, NEVER_WRITTEN = (
    "reads before it is written",
    "overwrites what is still read",
    "both write",
    "reads what nobody wrote",
)


@dataclass(frozen=True)
class Hazard:
    """Something that may go wrong.

    Attributes
    ----------
    kind : str
        One of the four above: read after write, write after read, write after write without an order; or a read of
        bytes that no operation before wrote.
    first, second : int
        Numbers of the operations, in the order of submission; ``first`` is None where nobody wrote.
    where : Region
        The bytes in question.
    message : str
        One sentence.
    """

    kind: str
    first: int | None
    second: int
    where: Region
    message: str

    def __str__(self) -> str:
        return self.message

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def find(operations: Sequence[Operation], order: Order | None = None) -> tuple[Hazard, ...]:
    """The hazards of a program, by the operation that is too early; those that mending another would mend are left
    out."""
    order = order or Order(operations)
    found: list[Hazard] = []
    touched: dict[tuple[str, str], list[tuple[Operation, Region, bool]]] = {}
    for second in operations:
        for where in second.reads:
            found += _never_written(second, where, touched)
        uses = [(where, False) for where in second.reads] + [(where, True) for where in second.writes]
        for where, writes in uses:
            earlier = touched.setdefault((where.buffer, where.place), [])
            found += _unordered(earlier, second, where, writes, order)
        for where, writes in uses:
            touched[where.buffer, where.place].append((second, where, writes))
    return _roots(found, operations, order)


def _roots(found: Sequence[Hazard], operations: Sequence[Operation], order: Order) -> tuple[Hazard, ...]:
    """One hazard a pair, without pairs that an order between two others would put in order as well."""
    pairs: dict[tuple[int | None, int], Hazard] = {}
    for one in found:
        pairs.setdefault((one.first, one.second), one)
    readers: dict[int, list[int]] = {}
    writers: dict[int, list[int]] = {}
    for first, second in pairs:
        if first is not None:
            readers.setdefault(first, []).append(second)
            writers.setdefault(second, []).append(first)

    def implied(first: int | None, second: int) -> bool:
        if first is None:
            return False
        early, late = operations[first], operations[second]
        sooner = any(order.ordered(operations[other], late) for other in readers[first])
        return sooner or any(order.ordered(early, operations[other]) for other in writers[second])

    return tuple(one for pair, one in pairs.items() if not implied(*pair))


def _unordered(
    earlier: Sequence[tuple[Operation, Region, bool]],
    second: Operation,
    where: Region,
    writes: bool,
    order: Order,
) -> Iterator[Hazard]:
    for first, other, wrote in earlier:
        if (wrote or writes) and other.overlaps(where) and not order.ordered(first, second):
            kind = BOTH_WRITE if wrote and writes else TOO_EARLY if wrote else OVERWRITES
            yield Hazard(kind, first.number, second.number, where, _sentence(kind, first, second, where))


def _sentence(kind: str, first: Operation, second: Operation, where: Region) -> str:
    streams = _streams(first, second)
    if kind == OVERWRITES:
        return f"{_name(second)} overwrites {where} while {_name(first)} may still be reading it: {streams}."
    if kind == BOTH_WRITE:
        return f"{_name(first)} and {_name(second)} both write {where}, in no certain order: {streams}."
    if first.kind == COPY_IN:
        return f"{_name(second)} reads {where}, which {_name(first)} may not have delivered yet: {streams}."
    return f"{_name(second)} reads {where}, which {_name(first)} may not have written yet: {streams}."


def _name(one: Operation) -> str:
    return f"The host's '{one.name}'" if one.kind == HOST_WORK else str(one)


def _streams(first: Operation, second: Operation) -> str:
    if second.kind == HOST_WORK:
        return f"the host does not wait for {first.stream}"
    if first.kind == HOST_WORK:
        return "the host is not waited for"
    return f"nothing makes {second.stream} wait for {first.stream}"


def _never_written(
    reader: Operation, where: Region, touched: dict[tuple[str, str], list[tuple[Operation, Region, bool]]]
) -> Iterator[Hazard]:
    if not where.blank:
        return
    writes = [other for _, other, wrote in touched.get((where.buffer, where.place), ()) if wrote]
    gap = first_gap(where, writes)
    if gap is None:
        return
    nobody = {KERNEL: "no copy or kernel", COPY_OUT: "no kernel or copy", HOST_WORK: "no copy out"}
    who = nobody.get(reader.kind, "nobody")
    missing = f"{show_bytes(gap[1] - gap[0])} of {where}" if gap[1] - gap[0] < where.size else str(where)
    message = f"{_name(reader)} reads {missing}, which {who} submitted before it writes."
    yield Hazard(NEVER_WRITTEN, None, reader.number, where, message)


def first_gap(where: Region, covered: Sequence[Region]) -> tuple[int, int] | None:
    """The first bytes of ``where`` that none of ``covered`` holds, as (start, stop); None when there are none."""
    start = where.start
    for one in sorted(covered, key=lambda region: region.start):
        if one.start > start:
            break
        start = max(start, one.stop)
    if start >= where.stop:
        return None
    after = [one.start for one in covered if one.start > start]
    return start, min([where.stop, *after])
