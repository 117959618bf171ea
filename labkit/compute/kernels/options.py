"""Monte-Carlo option pricing: the mean of what many random futures pay.

A European call pays max(S - strike, 0) at maturity. S follows geometric Brownian motion, so the fair price is known
(Black and Scholes, 1973) and the estimate can be checked; its error falls with the root of the number of paths. Prices
in one currency, rate and volatility a year (0.05 is 5 %), maturity in years.

Random numbers come from a counter, not from a state: number k is a scrambled k (Philox 4x32 with 10 rounds: Salmon,
Moraes, Dror, Shaw, SC 2011). Threads need no memory for it, and any launch shape draws the same numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labkit import cuda
from labkit.compute.kernels import launching
from labkit.compute.kernels.reduction import ALL_LANES, WARP

THREADS = 256
WARPS = THREADS // WARP
BLOCKS = 64
DRAWN = 4  # numbers of one counter
ROUNDS = 10
MULTIPLIER = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
STEP = np.uint32(0x9E3779B9), np.uint32(0xBB67AE85)
LOW, SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)
NOTHING = np.uint32(0)
ZERO, HALF, ONE, TWO = (np.float32(n) for n in (0, 0.5, 1, 2))
UNIT, TURN = np.float32(2**-32), np.float32(2 * math.pi)


# -- random numbers ------------------------------------------------------------------------------------------------


@cuda.jit(device=True)
def philox(counter, seed):
    """Four random uint32 for a counter and a seed (uint64 each)."""
    a, b = np.uint32(counter), np.uint32(counter >> SHIFT)
    c, d = NOTHING, NOTHING
    key0, key1 = np.uint32(seed), np.uint32(seed >> SHIFT)
    for _ in range(ROUNDS):
        left, right = MULTIPLIER[0] * a, MULTIPLIER[1] * c
        a, b, c, d = (
            np.uint32((right >> SHIFT) ^ b ^ key0),
            np.uint32(right & LOW),
            np.uint32((left >> SHIFT) ^ d ^ key1),
            np.uint32(left & LOW),
        )
        key0, key1 = np.uint32(key0 + STEP[0]), np.uint32(key1 + STEP[1])
    return a, b, c, d


@cuda.jit(device=True)
def two_normals(a, b):
    """Two independent standard normal float32 of two random uint32, by Box and Muller; good to 4e-4 near zero."""
    radius = math.sqrt(-TWO * math.log(np.float32(a) * UNIT + HALF * UNIT))
    angle = TURN * (np.float32(b) * UNIT)
    return radius * math.cos(angle), radius * math.sin(angle)


@cuda.jit(device=True)
def four_normals(counter, seed):
    """Standard normal numbers 4 * counter to 4 * counter + 3 of a seed."""
    a, b, c, d = philox(counter, seed)
    first, second = two_normals(a, b)
    third, fourth = two_normals(c, d)
    return first, second, third, fourth


@cuda.jit
def normals(seed, out):
    """out[i] = standard normal number i of a seed (uint64); out float32 (n,)."""
    counter = cuda.grid(1)
    numbers = four_normals(np.uint64(counter), seed)
    for k in range(DRAWN):
        if DRAWN * counter + k < out.size:
            out[DRAWN * counter + k] = pick(numbers, k)


@cuda.jit(device=True)
def pick(numbers, k):
    """Number k of four."""
    if k < 2:
        return numbers[0] if k == 0 else numbers[1]
    return numbers[2] if k == 2 else numbers[3]


# -- prices --------------------------------------------------------------------------------------------------------


@cuda.jit(device=True)
def payoff(spot, strike, drift, spread, normal):
    """What the option pays if the logarithm of the share price moves by ``drift + spread * normal``."""
    return max(spot * math.exp(drift + spread * normal) - strike, ZERO)


@cuda.jit
def pay_each(spot, strike, rate, volatility, maturity, seed, out):
    """out[i] = what path i pays, not yet discounted; out float32 (n,), numbers float32, seed uint64. The host averages.

    One path a thread. Each draws four normal numbers and uses one, works out drift and spread again, and sends 4 bytes
    to memory for the host to fetch.
    """
    i = cuda.grid(1)
    if i < out.size:
        drift = (rate - HALF * volatility * volatility) * maturity
        spread = volatility * math.sqrt(maturity)
        numbers = four_normals(np.uint64(i // DRAWN), seed)
        out[i] = payoff(spot, strike, drift, spread, pick(numbers, i % DRAWN))


@cuda.jit
def pay_sums(spot, strike, drift, spread, seed, paths, sums):
    """Adds to sums, float64 (2,), what all paths pay, and its squares: 16 bytes for the host, however many paths.

    Four paths of each counter, a grid-stride loop, totals in registers; then shuffles within warps, and one atomic
    a warp. The paths are those of ``pay_each``. Totals are float64: adding millions of float32 loses what is added.
    """
    total, squares = 0.0, 0.0
    for counter in range(cuda.grid(1), (paths + DRAWN - 1) // DRAWN, cuda.gridsize(1)):
        numbers = four_normals(np.uint64(counter), seed)
        for k in range(DRAWN):
            if DRAWN * counter + k < paths:
                paid = np.float64(payoff(spot, strike, drift, spread, pick(numbers, k)))
                total += paid
                squares += paid * paid
    step = WARP // 2
    while step > 0:
        total += cuda.shfl_down_sync(ALL_LANES, total, step)
        squares += cuda.shfl_down_sync(ALL_LANES, squares, step)
        step //= 2
    if cuda.threadIdx.x % WARP == 0:
        cuda.atomic.add(sums, 0, total)
        cuda.atomic.add(sums, 1, squares)


def launch(kernel: Any, paths: int) -> Any:
    """The kernel with blocks of 256 threads for so many paths or numbers."""
    threads = paths if kernel is pay_each else -(-paths // DRAWN)
    return kernel[launching.line(threads, THREADS, BLOCKS if kernel is pay_sums else None)]


def price(
    spot: float, strike: float, rate: float, volatility: float, maturity: float, paths: int, seed: int = 1
) -> tuple[float, float]:
    """The estimated price of a European call and its standard error, from ``paths`` >= 2 random futures."""
    drift = np.float32((rate - volatility**2 / 2) * maturity)
    spread = np.float32(volatility * math.sqrt(maturity))
    sums = cuda.to_device(np.zeros(2))
    launch(pay_sums, paths)(np.float32(spot), np.float32(strike), drift, spread, np.uint64(seed), paths, sums)
    total, squares = sums.copy_to_host()
    mean = total / paths
    variance = max(squares / paths - mean**2, 0.0) * paths / (paths - 1)
    discount = math.exp(-rate * maturity)
    return discount * mean, discount * math.sqrt(variance / paths)


def black_scholes(spot: float, strike: float, rate: float, volatility: float, maturity: float) -> float:
    """The fair price of a European call."""
    spread = volatility * math.sqrt(maturity)
    upper = (math.log(spot / strike) + (rate + volatility**2 / 2) * maturity) / spread
    below = lambda x: 0.5 * math.erfc(-x / math.sqrt(2))  # noqa: E731
    return spot * below(upper) - strike * math.exp(-rate * maturity) * below(upper - spread)


def philox_reference(counters: np.ndarray, seed: int) -> np.ndarray:
    """Four random uint32 for each counter: (n,) -> (n, 4)."""
    a, b = counters.astype(np.uint64) & LOW, counters.astype(np.uint64) >> SHIFT
    c, d = np.zeros_like(a), np.zeros_like(a)
    for turn in range(ROUNDS):
        key0, key1 = (np.uint64(((seed >> 32 * k) + turn * int(STEP[k])) % 2**32) for k in range(2))
        left, right = MULTIPLIER[0] * a, MULTIPLIER[1] * c
        a, b, c, d = (right >> SHIFT) ^ b ^ key0, right & LOW, (left >> SHIFT) ^ d ^ key1, left & LOW
    return np.stack([a, b, c, d], axis=1).astype(np.uint32)


def normals_reference(n: int, seed: int) -> np.ndarray:
    """The first ``n`` standard normal numbers of a seed, in float64."""
    pairs = philox_reference(np.arange(-(-n // DRAWN)), seed).reshape(-1, 2).astype(np.float64)
    radius, angle = np.sqrt(-2 * np.log((pairs[:, 0] + 0.5) / 2**32)), 2 * np.pi * pairs[:, 1] / 2**32
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)[:n]
