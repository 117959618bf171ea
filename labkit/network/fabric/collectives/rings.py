"""Rings: everyone sends to the next, and never sends more than it must."""

from __future__ import annotations

import numpy as np

from labkit.network.fabric.schedule import Messages, Schedule, Steps, from_list
from labkit.network.fabric.team import Team


def all_reduce(team: Team, size: float, in_order: bool = True) -> Steps:
    """Reduce-scatter, then all-gather: 2(n - 1) steps of size/n, T = 2(n - 1)(alpha + size / (n beta)).

    Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, JPDC 69(2), 2009. `in_order`: a rank's next send
    also waits for its last one, as in the channel of a real ring; else a fast neighbour's chunks pile up and share.
    """
    return _ring(team, size, 2 * (team.size - 1), in_order)


def reduce_scatter(team: Team, size: float, in_order: bool = True) -> Steps:
    """n - 1 steps of size/n, after which rank r holds the sum of its n-th of the data."""
    return _ring(team, size, team.size - 1, in_order)


def all_gather(team: Team, size: float, in_order: bool = True) -> Steps:
    """n - 1 steps of size/n, after which everyone has all `size` bytes."""
    return _ring(team, size, team.size - 1, in_order)


def broadcast(team: Team, size: float) -> Schedule:
    """A chain from the first rank to the last; with c chunks T = (n - 2 + c)(alpha + size / (c beta))."""
    n = team.size
    sends: list[tuple[int, int, float, list[int]]] = []
    for group in team.groups.tolist():
        first = len(sends)
        for i in range(n - 1):
            sends.append((group[i], group[i + 1], size, [first + i - 1] if i else []))
    return from_list(team.nodes, sends)


def _ring(team: Team, size: float, steps: int, in_order: bool) -> Steps:
    here = np.arange(team.size)
    pattern = Messages.of(team.spread(here), team.spread((here + 1) % team.size), size / team.size)
    return Steps(team.nodes, (pattern,), ((0, steps),), in_order=in_order)
