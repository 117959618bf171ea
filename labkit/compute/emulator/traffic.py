"""What a warp's memory instruction costs: the sectors it touches, the passes its banks need.

Global memory moves in sectors of 32 bytes: a request is as good as the number of sectors that its active lanes
touch. Shared memory has 32 banks of 4 bytes: lanes that want different words of one bank wait for each other, lanes
that want the same word do not. Of 8-byte accesses half a warp goes at a time, of 16-byte ones a quarter.
(CUDA C++ Programming Guide, "Global Memory" and "Shared Memory" of compute capability 5.x and later.)
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from labkit.compute.emulator.geometry import WARP_SIZE

SECTOR_BYTES = 32
BANK_BYTES = 4
BANKS = 32


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


def count_groups(warp: np.ndarray, value: np.ndarray) -> int:
    """The number of different (warp, value) pairs."""
    if not len(warp):
        return 0
    order = np.lexsort((value, warp))
    warp, value = warp[order], value[order]
    return 1 + int(np.count_nonzero((warp[1:] != warp[:-1]) | (value[1:] != value[:-1])))


def sectors(warp: np.ndarray, address: np.ndarray, size: int) -> int:
    """Sectors touched by lanes of the given warps at byte addresses, each warp by itself."""
    first = address // SECTOR_BYTES
    last = (address + (size - 1)) // SECTOR_BYTES
    span = int((last - first).max()) if len(address) else 0
    if span:
        warp = np.concatenate([warp[first + k <= last] for k in range(span + 1)])
        first = np.concatenate([(first + k)[first + k <= last] for k in range(span + 1)])
    return count_groups(warp, first)


def conflicts(warp: np.ndarray, lane: np.ndarray, address: np.ndarray, size: int) -> int:
    """Passes beyond the first, summed over the warps' requests to shared memory."""
    together = lanes_together(size)
    request = warp * (WARP_SIZE // together) + lane // together
    words = -(-size // BANK_BYTES)
    word = np.concatenate([(address + BANK_BYTES * k) // BANK_BYTES for k in range(words)])
    request = np.tile(request, words)
    order = np.lexsort((word, request))
    request, word = request[order], word[order]
    first = np.r_[True, (request[1:] != request[:-1]) | (word[1:] != word[:-1])]
    request, word = request[first], word[first]
    wanted = request * BANKS + word % BANKS
    banks, passes = np.unique(wanted, return_counts=True)
    starts = np.flatnonzero(np.r_[True, banks[1:] // BANKS != banks[:-1] // BANKS])
    return int((np.maximum.reduceat(passes, starts) - 1).sum())


def waiting_lanes(warp: np.ndarray, address: np.ndarray) -> int:
    """Lanes whose atomic update waits for another lane's of the same warp and element."""
    return len(warp) - count_groups(warp, address)
