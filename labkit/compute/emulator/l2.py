"""A simple model of the L2 cache, for bytes between device memory and the chip.

A sector (32 bytes) is read from device memory when it is first touched, and written back once when it is written; a
write that a launch makes does not read first. When the sectors held exceed the size of the cache, all are dropped: a
touch after that counts again. A launch starts with an empty cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.compute.emulator.affine import Affine
from labkit.compute.emulator.memory import Array
from labkit.compute.emulator.traffic import SECTOR_BYTES


class L2:
    """Which sectors of which array the cache holds, for reading and for writing back."""

    def __init__(self, size_bytes: int):
        self.size = size_bytes
        self.held_bytes = 0
        self.present: dict[tuple, np.ndarray] = {}
        self.dirty: dict[tuple, np.ndarray] = {}

    def read(self, array: Array, offset: Any) -> int:
        """Bytes that a read fetches from device memory."""
        return self._touch(self.present, array, offset) if array.flat.size else 0

    def write(self, array: Array, offset: Any) -> int:
        """Bytes that a write will cost when it is written back."""
        if not array.flat.size:
            return 0
        new = self._touch(self.dirty, array, offset)
        # what has been written need not be fetched to be read
        self._touch(self.present, array, offset)
        return new

    def _touch(self, table: dict[tuple, np.ndarray], array: Array, offset: Any) -> int:
        step = array.flat.strides[0]
        held = table.get(array.address)
        sectors_needed = (array.origin % SECTOR_BYTES + array.flat.size * step) // SECTOR_BYTES + 1
        if held is None or len(held) < sectors_needed:
            held = table[array.address] = np.zeros(sectors_needed, bool)
        shift = array.origin % SECTOR_BYTES
        new = self._mark(held, offset, step, array.flat.itemsize, shift) * SECTOR_BYTES
        if table is self.present:
            self.held_bytes += new
            if self.held_bytes > self.size:
                self.present.clear()
                self.dirty.clear()
                self.held_bytes = 0
        return new

    @staticmethod
    def _mark(held: np.ndarray, offset: Any, step: int, size: int, shift: int) -> int:
        """Mark the sectors of an access as held; returns how many were not."""
        dense_run = offset.__class__ is Affine and abs(_smallest_stride(offset)) * step <= SECTOR_BYTES
        if dense_run and len(offset.collapsed[0]) == 1:
            low, high = offset.bounds
            part = held[
                (low * step + shift) // SECTOR_BYTES : (high * step + shift + size - 1) // SECTOR_BYTES + 1
            ]
            new = len(part) - int(np.count_nonzero(part))
            part[:] = True
            return new
        address = (offset.array if offset.__class__ is Affine else np.atleast_1d(offset)) * step + shift
        first, last = address // SECTOR_BYTES, (address + size - 1) // SECTOR_BYTES
        if not len(first) or (held[first].all() and held[last].all() and (last - first).max() < 2):
            return 0
        before = int(np.count_nonzero(held))
        for k in range(int((last - first).max()) + 1):
            held[np.minimum(first + k, last)] = True
        return int(np.count_nonzero(held)) - before


def _smallest_stride(offset: Affine) -> int:
    return min((s for s in offset.collapsed[1] if s), key=abs, default=0)
