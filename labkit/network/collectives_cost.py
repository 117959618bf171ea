"""What collectives cost in the alpha-beta model: modelled seconds, arithmetic left out.

A message of n bytes takes alpha + n / beta seconds, alpha in seconds and beta in bytes/s each way; a rank
sends and receives at once. Every function takes the size in bytes, the number of ranks, alpha and beta.
"""

from __future__ import annotations

from collections.abc import Callable

from labkit.errors import LabkitError

Cost = Callable[[float, int, float, float], float]


def ring_half(size: float, ranks: int, alpha: float, beta: float) -> float:
    """(p - 1) alpha + (p - 1)/p n/beta"""
    _check(size, ranks, alpha, beta)
    return (ranks - 1) * (alpha + size / ranks / beta)


def ring(size: float, ranks: int, alpha: float, beta: float) -> float:
    """2 (p - 1) alpha + 2 (p - 1)/p n/beta"""
    return 2 * ring_half(size, ranks, alpha, beta)


def binomial(size: float, ranks: int, alpha: float, beta: float) -> float:
    """ceil(log2 p) (alpha + n/beta)"""
    _check(size, ranks, alpha, beta)
    return (ranks - 1).bit_length() * (alpha + size / beta)


def binomial_all_reduce(size: float, ranks: int, alpha: float, beta: float) -> float:
    """2 ceil(log2 p) (alpha + n/beta)"""
    return 2 * binomial(size, ranks, alpha, beta)


def halving_doubling(size: float, ranks: int, alpha: float, beta: float) -> float:
    """2 log2(q) alpha + 2 (q - 1)/q n/beta, q the power of two below p; and 2 (alpha + n/beta) when q < p"""
    _check(size, ranks, alpha, beta)
    steps = ranks.bit_length() - 1
    core = 1 << steps
    outside = 2 * (alpha + size / beta) if core < ranks else 0.0
    return 2 * steps * alpha + 2 * (core - 1) / core * size / beta + outside


def hierarchical(
    size: float,
    ranks: int,
    alpha: float,
    beta: float,
    node_size: int = 1,
    far_alpha: float | None = None,
    far_beta: float | None = None,
) -> float:
    """2 (g - 1) (alpha + n/g/beta) + 2 (m - 1) (far_alpha + n/g/m/far_beta), m nodes of g ranks"""
    far_alpha = alpha if far_alpha is None else far_alpha
    far_beta = beta if far_beta is None else far_beta
    nodes, odd = divmod(ranks, node_size)
    if odd:
        inside = 2 * binomial(size, node_size, alpha, beta)
        return inside + ring(size, nodes + 1, far_alpha, far_beta)
    return ring(size, node_size, alpha, beta) + ring(size / node_size, nodes, far_alpha, far_beta)


def pairwise(size: float, ranks: int, alpha: float, beta: float) -> float:
    """(p - 1) alpha + (p - 1)/p n/beta, n what one rank holds for all"""
    return ring_half(size, ranks, alpha, beta)


def crossing(one: Cost, other: Cost, ranks: int, alpha: float, beta: float) -> float | None:
    """The size in bytes at which two costs, straight lines in the size, are equal; None where one is always less."""
    start = one(0, ranks, alpha, beta) - other(0, ranks, alpha, beta)
    slope = other(1.0, ranks, 0.0, beta) - one(1.0, ranks, 0.0, beta)
    return start / slope if start * slope > 0 else None


def _check(size: float, ranks: int, alpha: float, beta: float) -> None:
    if ranks < 1 or size < 0 or alpha < 0 or beta <= 0:
        raise LabkitError("A cost needs at least 1 rank, a size and alpha of 0 or more, and beta above 0.")
