"""Exchanges between pairs: recursive halving and doubling, and all-to-all."""

from __future__ import annotations

import numpy as np

from labkit.errors import LabkitError
from labkit.network.fabric.schedule import Messages, Steps
from labkit.network.fabric.team import Team


def all_reduce(team: Team, size: float) -> Steps:
    """Recursive halving, then doubling: T = 2 log2(n) alpha + 2 (n - 1) size / (n beta) for n a power of two.

    Rabenseifner's algorithm (Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005). For other n the ranks beyond the
    last power of two first hand all they have to a partner, and get the result from it at the end.
    """
    core = _power(team.size)
    halving = _halving(team, size, core)
    patterns, levels = list(halving), len(halving)
    program = [(level, 1) for level in range(levels)] + [(level, 1) for level in reversed(range(levels))]
    if core < team.size:
        extra, partner = team.spread(np.arange(core, team.size)), team.spread(np.arange(team.size - core))
        patterns += [Messages.of(extra, partner, size), Messages.of(partner, extra, size)]
        program = [(levels, 1), *program, (levels + 1, 1)]
    return Steps(team.nodes, tuple(patterns), tuple(program))


def reduce_scatter(team: Team, size: float) -> Steps:
    """Recursive halving; n must be a power of two."""
    halving = _halving(team, size, _whole_power(team))
    return Steps(team.nodes, tuple(halving), tuple((level, 1) for level in range(len(halving))))


def all_gather(team: Team, size: float) -> Steps:
    """Recursive doubling; n must be a power of two."""
    halving = _halving(team, size, _whole_power(team))
    return Steps(team.nodes, tuple(halving), tuple((level, 1) for level in reversed(range(len(halving)))))


def all_to_all(team: Team, size: float) -> Steps:
    """n - 1 rounds; in round k everyone sends size/n to the rank k further: T = (n - 1)(alpha + size / (n beta))."""
    here = np.arange(team.size)
    patterns = tuple(
        Messages.of(team.spread(here), team.spread((here + shift) % team.size), size / team.size)
        for shift in range(1, team.size)
    )
    return Steps(team.nodes, patterns, tuple((k, 1) for k in range(len(patterns))), forwards=False)


def all_to_all_direct(team: Team, size: float) -> Steps:
    """Everyone sends to everyone at once, and lets the links sort it out."""
    source, target = np.nonzero(~np.eye(team.size, dtype=bool))
    pattern = Messages.of(team.spread(source), team.spread(target), size / team.size)
    return Steps(team.nodes, (pattern,), ((0, 1),), forwards=False)


def _halving(team: Team, size: float, core: int) -> list[Messages]:
    """Exchange half with the partner half of the ranks away, then a quarter with one a quarter away, and so on."""
    here, patterns, distance, part = np.arange(core), [], core // 2, size / 2
    while distance:
        patterns.append(Messages.of(team.spread(here), team.spread(here ^ distance), part))
        distance, part = distance // 2, part / 2
    return patterns


def _power(n: int) -> int:
    return 1 << (n.bit_length() - 1)


def _whole_power(team: Team) -> int:
    if team.size & (team.size - 1):
        raise LabkitError(
            f"Halving and doubling alone need a power of two, not {team.size} ranks: use 'ring'."
        )
    return team.size
