"""SHA-256d search: find a number for which the double SHA-256 of a header is small, as miners of Bitcoin do.

A header is 80 bytes: 76 that are given, then the number tried (the nonce, 4 bytes, lowest first). Its hash is SHA-256
of SHA-256, read as a 256-bit number, lowest byte first; it must not exceed the target. All arithmetic is of 32-bit
words that wrap around (FIPS 180-4), and no thread needs another: the limit is integer operations and registers.
"""

from __future__ import annotations

import struct
from hashlib import sha256
from math import isqrt
from typing import Any

import numpy as np

from labkit import cuda
from labkit.compute.kernels import launching

THREADS = 128
NONE = 0xFFFFFFFF  # what ``found`` holds before anything is found


def _root_bits(prime: int, power: int) -> int:
    """The first 32 bits after the point of the square root (power 2) or cube root (3) of a prime."""
    if power == 2:
        return isqrt(prime << 64) & NONE
    guess = round((prime << 96) ** (1 / 3))
    while guess**3 > prime << 96:
        guess -= 1
    while (guess + 1) ** 3 <= prime << 96:
        guess += 1
    return guess & NONE


_PRIMES = [n for n in range(2, 312) if all(n % k for k in range(2, isqrt(n) + 1))]
ROUND = np.array([_root_bits(p, 3) for p in _PRIMES], np.uint32)
START = np.array([_root_bits(p, 2) for p in _PRIMES[:8]], np.uint32)
PADDING = np.uint32(0x80000000)  # a one after the message, then zeros, then the message's length in bits
HEADER_BITS, DIGEST_BITS, NOTHING = np.uint32(640), np.uint32(256), np.uint32(0)


# -- SHA-256 on the device -----------------------------------------------------------------------------------------


@cuda.jit(device=True)
def rotate(x, n):
    """A uint32 rotated to the right: one instruction of the GPU (a funnel shift)."""
    return np.uint32((x >> n) | (x << (32 - n)))


@cuda.jit(device=True)
def swap(x):
    """The four bytes of a uint32 in the opposite order."""
    return np.uint32((x << 24) | ((x & 0xFF00) << 8) | ((x >> 8) & 0xFF00) | (x >> 24))


@cuda.jit(device=True)
def spread(early, late):
    """What the message schedule adds of the words 15 and 2 places back."""
    sigma0 = rotate(early, 7) ^ rotate(early, 18) ^ (early >> 3)
    sigma1 = rotate(late, 17) ^ rotate(late, 19) ^ (late >> 10)
    return np.uint32(sigma0 + sigma1)


@cuda.jit(device=True)
def turn(a, b, c, d, e, f, g, h, word):
    """One of the 64 rounds: two new words; ``word`` is the round's message word plus its constant."""
    choice = g ^ (e & (f ^ g))
    majority = (a & b) | (c & (a | b))
    mixed = np.uint32(h + word + choice + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)))
    first = np.uint32(mixed + majority + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)))
    return first, np.uint32(d + mixed)


@cuda.jit(device=True)
def compress_long(state, message):
    """Mix a block of 16 words into ``state`` (8 words, changed in place); the schedule of 64 words is made first.

    256 bytes a thread do not fit into registers and are indexed by a variable: they go to local memory, that is to
    device memory behind a cache.
    """
    constant = cuda.const.array_like(ROUND)
    words = cuda.local.array(64, np.uint32)
    for k in range(16):
        words[k] = message[k]
    for k in range(16, 64):
        words[k] = np.uint32(words[k - 16] + words[k - 7] + spread(words[k - 15], words[k - 2]))
    a, b, c, d, e, f, g, h = state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7]
    for k in range(64):
        first, fifth = turn(a, b, c, d, e, f, g, h, np.uint32(words[k] + constant[k]))
        a, b, c, d, e, f, g, h = first, a, b, c, fifth, e, f, g
    add_to(state, a, b, c, d, e, f, g, h)


@cuda.jit(device=True)
def compress(state, words):
    """The same with a schedule of 16 words, made as it is used: word k takes the place of word k - 16.

    The inner loop has 16 turns and no unknown index, so once the compiler has unrolled it the words are registers.
    """
    constant = cuda.const.array_like(ROUND)
    a, b, c, d, e, f, g, h = state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7]
    for part in range(4):
        for k in range(16):
            if part > 0:
                fresh = words[(k + 9) & 15] + spread(words[(k + 1) & 15], words[(k + 14) & 15])
                words[k] = np.uint32(words[k] + fresh)
            first, fifth = turn(a, b, c, d, e, f, g, h, np.uint32(words[k] + constant[16 * part + k]))
            a, b, c, d, e, f, g, h = first, a, b, c, fifth, e, f, g
    add_to(state, a, b, c, d, e, f, g, h)


@cuda.jit(device=True)
def add_to(state, a, b, c, d, e, f, g, h):
    """The end of a compression: what came out is added to what went in."""
    state[0], state[1] = np.uint32(state[0] + a), np.uint32(state[1] + b)
    state[2], state[3] = np.uint32(state[2] + c), np.uint32(state[3] + d)
    state[4], state[5] = np.uint32(state[4] + e), np.uint32(state[5] + f)
    state[6], state[7] = np.uint32(state[6] + g), np.uint32(state[7] + h)


@cuda.jit(device=True)
def load_start(state):
    """The state before the first block."""
    start = cuda.const.array_like(START)
    for k in range(8):
        state[k] = start[k]


@cuda.jit(device=True)
def load_end(words, header, nonce):
    """The second block of a header: its words 16 to 18, the nonce, padding, length."""
    for k in range(3):
        words[k] = header[16 + k]
    words[3] = swap(nonce)
    words[4] = PADDING
    for k in range(5, 15):
        words[k] = NOTHING
    words[15] = HEADER_BITS


@cuda.jit(device=True)
def load_digest(words, state):
    """The block that the second SHA-256 hashes: the first one's digest, padding, length."""
    for k in range(8):
        words[k] = state[k]
    words[8] = PADDING
    for k in range(9, 15):
        words[k] = NOTHING
    words[15] = DIGEST_BITS


@cuda.jit(device=True)
def small_enough(state, target):
    """Whether the hash is at most the target (8 words, the highest first)."""
    for k in range(8):
        word = swap(state[7 - k])
        if word != target[k]:
            return word < target[k]
    return True


# -- kernels -------------------------------------------------------------------------------------------------------


@cuda.jit
def search_whole(header, first, target, found):
    """found[0], uint32, becomes the lowest nonce from ``first`` on, one a thread, whose hash is at most the target.

    header uint32 (19,): the given 76 bytes as words. Three compressions a nonce, the first of which is the same for
    all.
    """
    words = cuda.local.array(16, np.uint32)
    state = cuda.local.array(8, np.uint32)
    nonce = np.uint32(first + cuda.grid(1))
    load_start(state)
    for k in range(16):
        words[k] = header[k]
    compress_long(state, words)
    load_end(words, header, nonce)
    compress_long(state, words)
    load_digest(words, state)
    load_start(state)
    compress_long(state, words)
    if small_enough(state, target):
        cuda.atomic.min(found, 0, nonce)


@cuda.jit(device=True)
def hash_nonce(middle, header, nonce, words, state):
    """The hash of a header, into ``state``, from the state after its first 64 bytes: two compressions."""
    for k in range(8):
        state[k] = middle[k]
    load_end(words, header, nonce)
    compress(state, words)
    load_digest(words, state)
    load_start(state)
    compress(state, words)


@cuda.jit
def search(middle, header, first, target, found):
    """The same from ``middle``, uint32 (8,): the host hashes the header's first 64 bytes once for all threads."""
    words = cuda.local.array(16, np.uint32)
    state = cuda.local.array(8, np.uint32)
    nonce = np.uint32(first + cuda.grid(1))
    hash_nonce(middle, header, nonce, words, state)
    if small_enough(state, target):
        cuda.atomic.min(found, 0, nonce)


@cuda.jit
def hashes(middle, header, first, out):
    """out[i] = the hash for nonce first + i, as 8 words; out uint32 (n, 8)."""
    words = cuda.local.array(16, np.uint32)
    state = cuda.local.array(8, np.uint32)
    i = cuda.grid(1)
    if i < out.shape[0]:
        hash_nonce(middle, header, np.uint32(first + i), words, state)
        for k in range(8):
            out[i, k] = state[k]


# -- on the host ---------------------------------------------------------------------------------------------------


def launch(kernel: Any, nonces: int) -> Any:
    """The kernel with a thread a nonce, rounded up to whole blocks of 128: ``launch(search, 4096)(...)``."""
    return kernel[launching.line(nonces, THREADS)]


def as_words(header: bytes) -> np.ndarray:
    """The first 76 bytes of a header as 19 words."""
    return np.frombuffer(header[:76], ">u4").astype(np.uint32)


def midstate(words: np.ndarray) -> np.ndarray:
    """SHA-256's state after the 16 words of a first block, uint32 (8,)."""
    rotated = lambda x, n: (x >> n | x << (32 - n)) & NONE  # noqa: E731
    message = [int(w) for w in words[:16]]
    for k in range(16, 64):
        early, late = message[k - 15], message[k - 2]
        sigma = (rotated(early, 7) ^ rotated(early, 18) ^ early >> 3) + (
            rotated(late, 17) ^ rotated(late, 19) ^ late >> 10
        )
        message.append((message[k - 16] + message[k - 7] + sigma) & NONE)
    a, b, c, d, e, f, g, h = start = [int(s) for s in START]
    for word, constant in zip(message, ROUND.tolist(), strict=True):
        mixed = h + word + constant + (e & f ^ ~e & g) + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25))
        first = mixed + (a & b ^ a & c ^ b & c) + (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22))
        a, b, c, d, e, f, g, h = first & NONE, a, b, c, (d + mixed) & NONE, e, f, g
    return np.array([(s + x) & NONE for s, x in zip(start, (a, b, c, d, e, f, g, h), strict=True)], np.uint32)


def target_words(zero_bits: int) -> np.ndarray:
    """The target that a hash beginning with this many zero bits meets, uint32 (8,), the highest word first."""
    number = (1 << (256 - zero_bits)) - 1
    return np.frombuffer(number.to_bytes(32, "big"), ">u4").astype(np.uint32)


def hash_reference(header: bytes, nonce: int) -> bytes:
    """SHA-256d of a header with this nonce, 32 bytes, by Python's hashlib."""
    return sha256(sha256(header[:76] + struct.pack("<I", nonce)).digest()).digest()


def search_reference(header: bytes, first: int, nonces: int, target: np.ndarray) -> int:
    """The lowest nonce whose hash is at most the target; NONE if there is none."""
    most = int.from_bytes(target.astype(">u4").tobytes(), "big")
    tried = range(first, first + nonces)
    return next((n for n in tried if int.from_bytes(hash_reference(header, n), "little") <= most), NONE)
