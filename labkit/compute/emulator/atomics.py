"""Atomic operations of many lanes, with the result that some sequential order (lane order) would give."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "max": np.fmax,
    "min": np.fmin,
    "and_": np.bitwise_and,
    "or_": np.bitwise_or,
    "xor": np.bitwise_xor,
}

Operation = Callable[[np.ndarray, np.ndarray, list[np.ndarray]], np.ndarray]


def without_result(name: str, flat: np.ndarray, offset: np.ndarray, values: list[np.ndarray]) -> bool:
    """Do the operation when nobody needs the old values; False when it has no such short form."""
    ufunc = UFUNCS.get(name)
    if ufunc is None:
        return False
    ufunc.at(flat, offset, values[0])
    return True


def turns(offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lanes sorted by element and then by lane, and each one's turn (0, 1, 2, ...) at its element."""
    order = np.argsort(offset, kind="stable")
    ordered = offset[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    counts = np.diff(np.r_[starts, len(ordered)])
    return order, np.arange(len(ordered)) - np.repeat(starts, counts)


def in_turns(step: Callable[[np.ndarray, list[np.ndarray]], np.ndarray]) -> Operation:
    """One lane an element at a time: ``step(current, values)`` gives the new contents."""

    def operation(flat: np.ndarray, offset: np.ndarray, values: list[np.ndarray]) -> np.ndarray:
        old = np.empty(len(offset), flat.dtype)
        if not len(offset):
            return old
        order, turn = turns(offset)
        by_turn = order[np.argsort(turn, kind="stable")]
        for lanes in np.split(by_turn, np.cumsum(np.bincount(turn))[:-1]):
            where = offset[lanes]
            old[lanes] = flat[where]
            flat[where] = step(old[lanes], [v[lanes] for v in values])
        return old

    return operation


def add_whole_numbers(flat: np.ndarray, offset: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Integer addition is exact in any order: old values are running sums."""
    order = np.argsort(offset, kind="stable")
    ordered, added = offset[order], values[order].astype(flat.dtype)
    running = np.cumsum(added, dtype=flat.dtype)
    first = np.r_[True, ordered[1:] != ordered[:-1]]
    starts = np.flatnonzero(first)
    before = (running - added)[starts]
    group = np.cumsum(first) - 1
    old = np.empty(len(offset), flat.dtype)
    old[order] = flat[ordered] + (running - added - before[group])
    np.add.at(flat, offset, values.astype(flat.dtype))
    return old


_add_in_turns = in_turns(lambda current, values: current + values[0])


def add(flat: np.ndarray, offset: np.ndarray, values: list[np.ndarray]) -> np.ndarray:
    if flat.dtype.kind in "iu" and len(offset):
        return add_whole_numbers(flat, offset, values[0])
    return _add_in_turns(flat, offset, values)


def compare_and_swap(flat: np.ndarray, offset: np.ndarray, values: list[np.ndarray]) -> np.ndarray:
    """Each lane writes ``new`` only if it finds ``expected``; between two successes at an element all lanes fail."""
    expected, new = values
    old = np.empty(len(offset), flat.dtype)
    waiting = np.argsort(offset, kind="stable")
    while len(waiting):
        where = offset[waiting]
        found = flat[where]
        hit = found == expected[waiting]
        first = np.r_[True, where[1:] != where[:-1]]
        starts = np.flatnonzero(first)
        group = np.cumsum(first) - 1
        position = np.arange(len(waiting))
        winner = np.minimum.reduceat(np.where(hit, position, len(waiting)), starts)
        done = position <= winner[group]
        old[waiting[done]] = found[done]
        won = winner[winner < len(waiting)]
        flat[where[won]] = new[waiting[won]]
        waiting = waiting[~done]
    return old


ATOMIC_OPERATIONS: dict[str, Operation] = {
    "add": add,
    **{
        name: in_turns(lambda current, values, ufunc=ufunc: ufunc(current, values[0]))  # type: ignore[misc]
        for name, ufunc in UFUNCS.items()
        if name != "add"
    },
    "nanmax": in_turns(lambda current, values: np.fmax(current, values[0])),
    "nanmin": in_turns(lambda current, values: np.fmin(current, values[0])),
    "inc": in_turns(lambda current, values: np.where(current >= values[0], 0, current + 1)),
    "dec": in_turns(
        lambda current, values: np.where((current == 0) | (current > values[0]), values[0], current - 1)
    ),
    "exch": in_turns(lambda current, values: values[0]),
    "cas": compare_and_swap,
    "compare_and_swap": compare_and_swap,
}
