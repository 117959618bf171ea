"""Random numbers inside kernels: numba.cuda.random's names, with the same bits.

The generator is xoroshiro128+ (David Blackman and Sebastiano Vigna, 2016), seeded with SplitMix64; each thread has a
state of its own, 2**64 steps after the state before it. A jump of that length is a linear map over the two words'
128 bits, so states are made by doubling: those of index m..2m-1 are the first m, jumped m times.

States and uniform numbers equal numba's in every bit. Normal numbers may differ in the last digit of a float32, where
the C library or the GPU rounds a logarithm or a cosine the other way.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from labkit.compute.emulator.device_array import DeviceArray, to_device
from labkit.compute.emulator.host.decorator import jit
from labkit.errors import LabkitError

xoroshiro128p_dtype = np.dtype([("s0", np.uint64), ("s1", np.uint64)], align=True)
xoroshiro128p_type = xoroshiro128p_dtype

_MASK = 2**64 - 1
# The jump polynomial of 2**64 steps, of the generator with rotations 55, 14, 36.
_JUMP = 0xD86B048B86AA9922BEAC0467EBA5FACB
_BITS = 128

_TWO_PI_32 = np.float32(2 * math.pi)
_TWO_PI_64 = 2 * math.pi
_UNIT = 1.0 / 2**53
_S11, _S14, _S28, _S55, _S36, _S9 = (np.uint32(n) for n in (11, 14, 28, 55, 36, 9))


# -- inside kernels --------------------------------------------------------------------------------------------------


@jit(device=True)
def xoroshiro128p_next(states, index):
    """The next 64 random bits of ``states[index]``, which moves on by one step."""
    s0 = states[index]["s0"]
    s1 = states[index]["s1"]
    result = s0 + s1
    s1 = s1 ^ s0
    states[index]["s0"] = ((s0 << _S55) | (s0 >> _S9)) ^ s1 ^ (s1 << _S14)
    states[index]["s1"] = (s1 << _S36) | (s1 >> _S28)
    return result


@jit(device=True)
def xoroshiro128p_uniform_float64(states, index):
    """A float64 in [0, 1), from the upper 53 bits."""
    return np.float64(xoroshiro128p_next(states, index) >> _S11) * _UNIT


@jit(device=True)
def xoroshiro128p_uniform_float32(states, index):
    """A float32 in [0, 1]: the float64 rounded, as numba does, which makes 1 possible though rare."""
    return np.float32(xoroshiro128p_uniform_float64(states, index))


@jit(device=True)
def _log(x):
    """The logarithm of a float32 as C libraries round it: NumPy's own is off by one unit now and then."""
    return np.float32(math.log(np.float64(x)))


@jit(device=True)
def xoroshiro128p_normal_float32(states, index):
    """A float32 of the standard normal distribution, by Box and Muller's transform: two steps."""
    u1 = xoroshiro128p_uniform_float32(states, index)
    u2 = xoroshiro128p_uniform_float32(states, index)
    cosine = np.float32(math.cos(np.float64(_TWO_PI_32 * u2)))
    return math.sqrt(np.float32(-2.0) * _log(u1)) * cosine


@jit(device=True)
def xoroshiro128p_normal_float64(states, index):
    """A float64 of the standard normal distribution; like numba's, it is made of two float32 uniforms."""
    u1 = xoroshiro128p_uniform_float32(states, index)
    u2 = xoroshiro128p_uniform_float32(states, index)
    return math.sqrt(-2.0 * _log(u1)) * math.cos(_TWO_PI_64 * u2)


# -- states, made on the host ----------------------------------------------------------------------------------------


def create_xoroshiro128p_states(
    n: int, seed: int, subsequence_start: int = 0, stream: Any = 0
) -> DeviceArray:
    """``n`` states on the device for ``n`` threads, each 2**64 steps after the one before.

    Parameters
    ----------
    n : int
        How many.
    seed : int
        Same seed, same numbers.
    subsequence_start : int
        How many subsequences of 2**64 numbers to leave out at the beginning.
    """
    if n < 0:
        raise LabkitError(f"create_xoroshiro128p_states needs the number of states, but got {n}.")
    return to_device(_states(n, seed, subsequence_start), stream)


def init_xoroshiro128p_states(states: Any, seed: int, subsequence_start: int = 0, stream: Any = 0) -> None:
    """Fill an array of states; see :func:`create_xoroshiro128p_states`."""
    values = _states(states.shape[0], seed, subsequence_start)
    if isinstance(states, DeviceArray):
        states.copy_to_device(values, stream)
    else:
        states[...] = values


def _states(n: int, seed: int, subsequence_start: int) -> np.ndarray:
    words = np.empty((n, 2), np.uint64)
    if n:
        words[0] = _split_mix(seed)
        for k in range(int(subsequence_start).bit_length()):
            if int(subsequence_start) >> k & 1:
                words[:1] = _apply(_jump(k), words[:1])
    done, k = 1, 0
    while done < n:
        more = min(done, n - done)
        words[done : done + more] = _apply(_jump(k), words[:more])
        done, k = done + more, k + 1
    return words.view(xoroshiro128p_dtype).reshape(n)


def _split_mix(seed: int) -> int:
    """SplitMix64's first number: small seeds become well mixed ones."""
    z = (int(seed) + 0x9E3779B97F4A7C15) & _MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
    return z ^ (z >> 31)


def _step(s0: int, s1: int) -> tuple[int, int]:
    s1 ^= s0
    return _rotate(s0, 55) ^ s1 ^ (s1 << 14 & _MASK), _rotate(s1, 36)


def _rotate(word: int, count: int) -> int:
    return (word << count | word >> (64 - count)) & _MASK


def _jumped(s0: int, s1: int) -> tuple[int, int]:
    """The state 2**64 steps on: the sum of the states at which the jump polynomial has a term."""
    sum0 = sum1 = 0
    for bit in range(_BITS):
        if _JUMP >> bit & 1:
            sum0, sum1 = sum0 ^ s0, sum1 ^ s1
        s0, s1 = _step(s0, s1)
    return sum0, sum1


@cache
def _jump(k: int) -> np.ndarray:
    """The linear map of 2**k jumps, as tables: what each value of each of the 16 bytes contributes, (16, 256, 2)."""
    if k:
        half = _jump(k - 1)
        columns = _apply(half, _apply(half, _unit_states()))
    else:
        columns = np.array([_jumped(int(s0), int(s1)) for s0, s1 in _unit_states()], np.uint64)
    tables = np.zeros((16, 256, 2), np.uint64)
    for byte in range(16):
        for bit in range(8):
            tables[byte, 1 << bit : 2 << bit] = tables[byte, : 1 << bit] ^ columns[8 * byte + bit]
    return tables


def _unit_states() -> np.ndarray:
    """The 128 states with a single bit set."""
    states = np.zeros((_BITS, 2), np.uint64)
    bits = np.left_shift(np.uint64(1), np.arange(64, dtype=np.uint64))
    states[:64, 0], states[64:, 1] = bits, bits
    return states


def _apply(tables: np.ndarray, words: np.ndarray) -> np.ndarray:
    """A linear map applied to each state, byte by byte."""
    result = np.zeros_like(words)
    for byte in range(16):
        shift = np.uint64(8 * (byte % 8))
        values = (words[:, byte // 8] >> shift) & np.uint64(0xFF)
        result ^= tables[byte].take(values.astype(np.intp), axis=0)
    return result
