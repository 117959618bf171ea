"""The device's memories: global, constant, shared and local arrays, and what loads, stores and atomics do to them."""

from __future__ import annotations

import itertools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.compute.emulator import faults
from labkit.compute.emulator.affine import Affine, dense
from labkit.compute.emulator.atomics import ATOMIC_OPERATIONS, without_result
from labkit.compute.emulator.program import Site

if TYPE_CHECKING:
    from labkit.compute.emulator.group import Group

_serial_numbers = itertools.count()
PRINTED_LINES = 4096
Offset = Any  # np.integer for all lanes, an Affine, or an int64 array with one offset a lane


class Array:
    """One array operand at run time.

    ``flat`` is its memory as one axis; an element's place in it is ``sum(index[k] * steps[k])``, plus, for shared and
    local arrays, ``copy_size`` times the number of the lane's block or of the lane.
    """

    def __init__(
        self, flat: np.ndarray, shape: tuple[int, ...], steps: tuple[int, ...], name: str, space: str
    ):
        self.flat = flat
        self.shape = shape
        self.steps = steps
        self.name = name
        self.space = space
        self.lengths = tuple(np.int64(n) for n in shape)
        self.fields: dict[str, Array] = {}
        # for observers: who touched what, what has been written, whether other arrays overlap, and two identities
        self.shadow: Any = None
        self.initialized: np.ndarray | None = None
        self.allocation: Any = None
        self.aliased = False
        self.serial = next(_serial_numbers)
        # where the array starts in its allocation, in bytes: allocations are aligned, slices of them need not be
        self.origin = 0
        self.address = (flat.__array_interface__["data"][0], flat.strides[0])
        self.copy_size = prod(shape) if space in ("shared", "local") else 0

    def field(self, name: str) -> Array:
        if name not in self.fields:
            self.fields[name] = Array(self.flat[name], self.shape, self.steps, self.name, self.space)
        return self.fields[name]

    @classmethod
    def of(cls, data: np.ndarray, name: str, space: str = "global") -> Array:
        """The memory of an existing array, in whatever order its elements lie."""
        size = data.itemsize
        if data.size and any(s < 0 or s % size for s in data.strides):
            raise ValueError("negative or odd strides")
        steps = tuple(s // size for s in data.strides)
        extent = 1 + sum((n - 1) * s for n, s in zip(data.shape, steps, strict=True)) if data.size else 0
        flat = np.lib.stride_tricks.as_strided(data, (extent,), (size,), writeable=data.flags.writeable)
        return cls(flat, data.shape, steps, name, space)

    @classmethod
    def private(cls, copies: int, shape: tuple[int, ...], dtype: np.dtype, name: str, space: str) -> Array:
        """``copies`` uninitialised arrays: one for each block (shared) or each lane (local).

        The device leaves garbage there; NaN (or 0xCD bytes) makes a read of it show.
        """
        flat = np.empty(copies * prod(shape), dtype)
        if dtype.kind in "fc":
            flat.fill(np.nan)
        else:
            flat.view(np.uint8).fill(1 if dtype.kind == "b" else 0xCD)
        steps = tuple(prod(shape[k + 1 :]) for k in range(len(shape)))
        return cls(flat, shape, steps, name, space)


class Memory:
    """Loads, stores and atomics of a group of lanes. Observers see them through a subclass."""

    def __init__(self, sites: list[Site]):
        self.sites = sites
        self.printed = 0

    def load(self, array: Array, index: tuple, group: Group, site: int) -> Any:
        """The elements that the lanes read: one value when they all read the same."""
        return gather(array.flat, self.offset(array, index, group, site, "reads"))

    def store(self, array: Array, index: tuple, value: Any, group: Group, site: int) -> None:
        """Write one element a lane; where lanes collide, the last one's value stays."""
        scatter(array.flat, self.offset(array, index, group, site, "writes"), value)

    def atomic(
        self, name: str, array: Array, index: tuple, operands: tuple, group: Group, site: int, needed: bool
    ) -> Any:
        """Read-modify-write, one lane after the other; returns each lane's old value when ``needed``."""
        return self.update(
            name, array, self.offset(array, index, group, site, "updates"), operands, group, needed
        )

    def update(
        self, name: str, array: Array, offset: Any, operands: tuple, group: Group, needed: bool
    ) -> Any:
        offset = per_lane(offset, group.n)
        values = [per_lane(v, group.n) for v in operands]
        if not needed and without_result(name, array.flat, offset, values):
            return None
        return ATOMIC_OPERATIONS[name](array.flat, offset, values)

    def offset(self, array: Array, index: tuple, group: Group, site: int, verb: str) -> Offset:
        """Where in ``array.flat`` each lane's element lies; every index is checked against the array's shape."""
        total: Any = None
        for axis, key in enumerate(index):
            length = array.shape[axis]
            if not within(key, length):
                key = self.outside(array, index, axis, group, site, verb)
            step = array.steps[axis]
            part = key if step == 1 else key * np.int64(step)
            total = part if total is None else total + part
        if total is None:
            total = np.int64(0)  # the only element of an array without dimensions
        if array.copy_size:
            total = total + self.copy_number(array, group) * np.int64(array.copy_size)
        return total

    @staticmethod
    def copy_number(array: Array, group: Group) -> Any:
        """Which copy of a shared or local array each lane uses."""
        return group.block_slot() if array.space == "shared" else group.lane_slot()

    def outside(self, array: Array, index: tuple, axis: int, group: Group, site: int, verb: str) -> Any:
        """Indices that are not all within: those that count from the end are made good, others are an error."""
        length = array.shape[axis]
        key, good = from_the_end(per_lane(index[axis], group.n), length)
        bad = ~good
        if bad.any():
            lane = int(np.argmax(bad))
            shown = tuple(int(per_lane(k, group.n)[lane]) for k in index)
            raise faults.out_of_bounds(array, shown, group, lane, self.sites[site], verb)
        self.wrapped(array, key, axis, group, site)
        return np.where(key < 0, key + length, key)

    def show(self, group: Group, parts: tuple) -> None:
        """Print one line a lane; the device's print buffer is finite, and so is this one."""
        columns = [p if isinstance(p, str) else per_lane(p, group.n) for p in parts]
        room = max(0, PRINTED_LINES - self.printed)
        for lane in range(min(group.n, room)):
            print(*(c if isinstance(c, str) else as_printf(c[lane]) for c in columns))
        if group.n > room > 0:
            print(f"... (a kernel prints at most {PRINTED_LINES} lines)")
        self.printed += group.n

    def syncwarp(self, group: Group, mask: Any) -> None:
        """Hook for observers: lanes of a warp run in step, and every write is visible at once."""

    def absent_lane(self, group: Group, absent: np.ndarray, target: np.ndarray, site: int) -> None:
        """Hook for observers: some lanes asked a lane that is not there."""

    def wrapped(self, array: Array, key: np.ndarray, axis: int, group: Group, site: int) -> None:
        """Hook for observers: some lanes used a negative index."""


def as_printf(value: Any) -> str:
    """A number as the device's printf shows it: %d or %f."""
    return f"{value:f}" if value.dtype.kind == "f" else str(value)


def within(key: Any, length: int) -> bool:
    """Whether every lane's index lies in 0..length-1."""
    if key.__class__ is np.ndarray:
        if key.dtype.itemsize != 8:
            key = key.astype(np.int64)
        # seen as unsigned, a negative number is huge: one comparison checks both ends
        return not key.size or int(np.maximum.reduce(key.view(np.uint64))) < length
    if key.__class__ is Affine:
        low, high = key.bounds
        return low >= 0 and high < length
    return bool(0 <= key < length)


def from_the_end(key: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices as int64, and which of them an axis has: signed ones count from the end below 0, unsigned ones never."""
    number = key.astype(np.int64)
    lowest = 0 if key.dtype.kind == "u" else -length
    return number, (number >= lowest) & (number < length)


def per_lane(value: Any, lanes: int) -> np.ndarray:
    """The value written out: an array with one element a lane."""
    value = dense(value)
    return value if value.__class__ is np.ndarray else np.full(lanes, value)


def gather(flat: np.ndarray, offset: Offset) -> Any:
    if offset.__class__ is np.ndarray:
        # take would copy the whole of an array with gaps first
        return flat.take(offset) if flat.flags.c_contiguous else flat[offset]
    if offset.__class__ is Affine:
        view = window(flat, offset)
        # a copy: what was read must not change when the memory does
        return view.copy() if view.ndim == 1 else view.reshape(-1)
    return flat[offset]


def scatter(flat: np.ndarray, offset: Offset, value: Any) -> None:
    value = dense(value)
    if offset.__class__ is Affine:
        if one_lane_each(offset):
            view = window(flat, offset)
            view[...] = value.reshape(view.shape) if value.__class__ is np.ndarray else value
            return
        offset = offset.array
    if offset.__class__ is np.ndarray:
        flat[offset] = value
    else:
        flat[offset] = value[-1] if value.__class__ is np.ndarray else value


def window(flat: np.ndarray, offset: Affine) -> np.ndarray:
    """The elements at a progression of offsets, as a strided view."""
    shape, strides = offset.collapsed
    if len(shape) == 1 and strides[0] > 0:
        stop = offset.base + strides[0] * (shape[0] - 1) + 1
        return flat[offset.base : stop : strides[0]]
    start = flat[offset.base :]
    return np.lib.stride_tricks.as_strided(start, shape, tuple(s * flat.strides[0] for s in strides))


def one_lane_each(offset: Affine) -> bool:
    """Whether no two lanes meet in one element: each axis steps over all that the next ones cover."""
    covered = 0
    for count, stride in sorted(zip(*offset.collapsed, strict=True), key=lambda axis: abs(axis[1])):
        if abs(stride) <= covered:
            return False
        covered += abs(stride) * (count - 1)
    return True
