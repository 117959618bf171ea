"""Trees: few steps, so they win where messages are small and ranks many."""

from __future__ import annotations

import numpy as np

from labkit.network.fabric.schedule import Messages, Schedule, Steps, from_list
from labkit.network.fabric.team import Team


def all_reduce(team: Team, size: float) -> Steps:
    """Binomial tree to the first rank and back, the whole size a step: T = 2 ceil(log2 n)(alpha + size / beta).

    A parent takes from one child at a time, as with blocking receives.
    """
    up, down = _binomial(team, size)
    count = len(up)
    program = [(level, 1) for level in range(count)] + [
        (count + level, 1) for level in reversed(range(count))
    ]
    return Steps(team.nodes, (*up, *down), tuple(program), in_turn=True)


def broadcast(team: Team, size: float) -> Steps:
    """Binomial tree from the first rank: T = ceil(log2 n)(alpha + size / beta)."""
    _, down = _binomial(team, size)
    return Steps(team.nodes, tuple(down), tuple((level, 1) for level in reversed(range(len(down)))))


def _binomial(team: Team, size: float) -> tuple[list[Messages], list[Messages]]:
    """Level by level, those that stand 2^level from a multiple of 2^(level + 1), upwards and downwards."""
    up, down, stride = [], [], 1
    while stride < team.size:
        child = team.spread(np.arange(stride, team.size, 2 * stride))
        parent = team.spread(np.arange(0, team.size - stride, 2 * stride))
        up.append(Messages.of(child, parent, size))
        down.append(Messages.of(parent, child, size))
        stride *= 2
    return up, down


def double_tree(team: Team, size: float) -> Schedule:
    """Two binary trees with half of the data each; who is a leaf in one passes data on in the other.

    Sanders, Speck and Traeff, Two-tree algorithms for full bandwidth broadcast, reduction and scan, Parallel
    Computing 35(12), 2009; the form NCCL uses. Meant to be pipelined in chunks: unlike a ring's, the start-up grows
    with log2 n only, and unlike a single tree's, every rank's link is busy in both directions.
    """
    sends: list[tuple[int, int, float, list[int]]] = []
    for group in team.groups.tolist():
        for order in (group, _mirrored(group)):
            _tree(order, size / 2, sends)
    return from_list(team.nodes, sends)


def _mirrored(group: list[int]) -> list[int]:
    """So that odd numbers, which are leaves, change places with even ones."""
    return group[::-1] if len(group) % 2 == 0 else [*group[1:], group[0]]


def parent(number: int, n: int) -> int:
    """Parent in the binary tree whose leaves are the odd numbers and whose root is 0."""
    lowest = number & -number
    above = (number ^ lowest) | (lowest << 1)
    return above if above < n else number ^ lowest


def _tree(order: list[int], size: float, sends: list[tuple[int, int, float, list[int]]]) -> None:
    """Reduce to the root, then broadcast; a rank sends up when all its children have, and down when it has got."""
    n = len(order)
    children: dict[int, list[int]] = {number: [] for number in range(n)}
    for number in range(1, n):
        children[parent(number, n)].append(number)
    upward: dict[int, int] = {}
    first = len(sends)
    for number in sorted(range(1, n), key=lambda each: _height(each, children)):
        upward[number] = first + len(upward)
        waits = [upward[child] for child in children[number]]
        sends.append((order[number], order[parent(number, n)], size, waits))
    ready, queue = {0: [upward[child] for child in children[0]]}, [0]
    while queue:
        number = queue.pop(0)
        for child in children[number]:
            ready[child] = [len(sends)]
            sends.append((order[number], order[child], size, ready[number]))
            queue.append(child)


def _height(number: int, children: dict[int, list[int]]) -> int:
    return 1 + max((_height(child, children) for child in children[number]), default=0)
