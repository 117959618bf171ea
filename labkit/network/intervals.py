"""Sets of intervals: pairs of start and end, of any unit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Interval = tuple[float, float]


def union(parts: Iterable[Interval]) -> list[Interval]:
    """Disjoint intervals, in order, that cover the same."""
    whole: list[Interval] = []
    for start, end in sorted(parts):
        if whole and start <= whole[-1][1]:
            whole[-1] = whole[-1][0], max(end, whole[-1][1])
        elif end > start:
            whole.append((start, end))
    return whole


def intersection(first: Sequence[Interval], second: Sequence[Interval]) -> list[Interval]:
    """What two lists of disjoint, ordered intervals have in common."""
    common = []
    one = two = 0
    while one < len(first) and two < len(second):
        start, end = max(first[one][0], second[two][0]), min(first[one][1], second[two][1])
        if start < end:
            common.append((start, end))
        if first[one][1] < second[two][1]:
            one += 1
        else:
            two += 1
    return common


def length(parts: Iterable[Interval]) -> float:
    """Total length of disjoint intervals."""
    return sum(end - start for start, end in parts)
