"""What a warp's memory instruction costs: the sectors it touches, the passes its banks need.

Global memory moves in sectors of 32 bytes: a request is as good as the number of sectors that its active lanes
touch. Shared memory has 32 banks of 4 bytes: lanes that want different words of one bank wait for each other, lanes
that want the same word do not. Of 8-byte accesses half a warp goes at a time, of 16-byte ones a quarter.
(CUDA C++ Programming Guide, "Global Memory" and "Shared Memory" of compute capability 5.x and later.)
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np

from labkit.compute.emulator.geometry import WARP_SIZE

SECTOR_BYTES = 32
SECTOR_SHIFT = 5
BANK_BYTES = 4
BANKS = 32
# Up to this many (warp, sector) pairs are ticked off in a table; more are sorted.
TABLE = 2**20


@lru_cache(maxsize=4096)
def pattern_sectors(offsets: tuple[int, ...], size: int, shift: int) -> int:
    """Sectors touched by lanes at byte ``offsets`` from a lane at ``shift`` in its sector, ``size`` bytes each."""
    touched: set[int] = set()
    for offset in offsets:
        first = (shift + offset) // SECTOR_BYTES
        touched.update(range(first, (shift + offset + size - 1) // SECTOR_BYTES + 1))
    return len(touched)


@lru_cache(maxsize=4096)
def pattern_conflicts(offsets: tuple[int, ...], size: int, shift: int) -> int:
    """Passes beyond the first of lanes at byte ``offsets`` in shared memory; ``shift``: the first one's in its word."""
    together = lanes_together(size)
    extra = 0
    for start in range(0, len(offsets), together):
        words: dict[int, set[int]] = {}
        for offset in offsets[start : start + together]:
            for byte in range(shift + offset, shift + offset + size, BANK_BYTES):
                words.setdefault(byte // BANK_BYTES % BANKS, set()).add(byte // BANK_BYTES)
        extra += max(map(len, words.values())) - 1
    return extra


def lanes_together(size: int) -> int:
    """How many lanes of a warp shared memory serves in one pass, for elements of ``size`` bytes."""
    return WARP_SIZE if size <= 4 else WARP_SIZE // 2 if size <= 8 else WARP_SIZE // 4


class Grouping:
    """Lanes by warp: ``warp`` is each lane's, in order; ``number`` counts the warps that occur, from 0."""

    def __init__(self, warp: np.ndarray):
        self.warp = warp
        self.changes = np.diff(warp) != 0

    @cached_property
    def starts(self) -> np.ndarray:
        return np.flatnonzero(np.r_[True, self.changes])

    @cached_property
    def number(self) -> np.ndarray:
        return np.cumsum(np.r_[False, self.changes])

    def different(self, value: np.ndarray) -> int:
        """How many different values the lanes of each warp hold, summed over the warps."""
        if not len(value):
            return 0
        step = np.diff(value)
        if (self.changes | (step >= 0)).all():
            return 1 + int(np.count_nonzero(self.changes | (step != 0)))
        above = value - np.minimum.reduceat(value, self.starts)[self.number]
        span = int(above.max()) + 1
        if span * len(self.starts) <= TABLE:
            seen = np.zeros(span * len(self.starts), bool)
            seen[self.number * span + above] = True
            return int(np.count_nonzero(seen))
        return 1 + int(np.count_nonzero(np.diff(np.sort((self.warp << 44) + value))))


def sectors(lanes: Grouping, address: np.ndarray, size: int) -> int:
    """Sectors touched by lanes at byte addresses, each warp by itself."""
    first = address >> SECTOR_SHIFT
    last = (address + (size - 1)) >> SECTOR_SHIFT
    if (first == last).all():
        return lanes.different(first)
    spans = range(int((last - first).max()) + 1)
    touched = [((lanes.warp << 44) + first + k)[first + k <= last] for k in spans]
    return len(np.unique(np.concatenate(touched)))


def conflicts(warp: np.ndarray, lane: np.ndarray, address: np.ndarray, size: int) -> int:
    """Passes beyond the first, summed over the warps' requests to shared memory."""
    together = lanes_together(size)
    request = warp * (WARP_SIZE // together) + lane // together
    word = address // BANK_BYTES
    words = -(-size // BANK_BYTES)
    if words * together <= BANKS and _consecutive(request, word, words):
        return 0  # all within 32 words in a row: no bank twice
    word = np.concatenate([word + k for k in range(words)])
    # sort by request, then bank, then word: lanes that want one word are served together
    key = np.sort((np.tile(request, words) << 44) + (word % BANKS << 38) + word // BANKS)
    key = key[np.r_[True, np.diff(key) != 0]]
    bank = key >> 38
    starts = np.flatnonzero(np.r_[True, np.diff(bank) != 0])
    passes = np.diff(np.r_[starts, len(bank)])
    requests = np.flatnonzero(np.r_[True, np.diff(bank[starts] >> 6) != 0])
    return int((np.maximum.reduceat(passes, requests) - 1).sum())


def _consecutive(request: np.ndarray, word: np.ndarray, words: int) -> bool:
    """Whether each lane of a request wants the same word as the one before it, or at most the next ``words`` on."""
    step, together = np.diff(word), np.diff(request) == 0
    return bool((~together | ((step >= 0) & (step <= words))).all())


def waiting_lanes(lanes: Grouping, address: np.ndarray) -> int:
    """Lanes whose atomic update waits for another lane's of the same warp and element."""
    return len(address) - lanes.different(address)
