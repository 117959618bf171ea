"""Which links a message takes: the shortest path, equal-cost paths by hash, or one dimension after the other.

Routes come as two arrays: the links of pair p are ``links[at[p]:at[p + 1]]``.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from labkit.errors import LabkitError
from labkit.network.fabric.engine import compiled
from labkit.network.fabric.topology import Topology

POLICIES = ("shortest", "ecmp", "dimension-ordered")
FAR = np.int32(1 << 30)

Routes = tuple[np.ndarray, np.ndarray]


def routes(
    topology: Topology, sources: np.ndarray, targets: np.ndarray, policy: str, seed: int = 0
) -> Routes:
    """Routes of all pairs of node numbers; a pair of a node with itself has none.

    Parameters
    ----------
    policy : {"shortest", "ecmp", "dimension-ordered"}
        ``"shortest"``: fewest hops, the first such link at every node. ``"ecmp"``: among the links that lead on
        by fewest hops, the one a hash of source, target, node and `seed` picks, as switches do it for a flow.
        ``"dimension-ordered"``: on a torus, the shorter way round in the first dimension, then the next.

    Raises
    ------
    LabkitError
        For an unknown policy, dimensions on what is no torus, and a target nothing leads to.
    """
    if policy not in POLICIES:
        raise LabkitError(f"{policy!r} is no routing: use {', '.join(POLICIES)}.")
    pairs, which = np.unique(sources * len(topology.place) + targets, return_inverse=True)
    ends = np.divmod(pairs, len(topology.place))
    if policy == "dimension-ordered":
        return repeated(_by_dimension(topology, *ends), which)
    return repeated(_by_distance(topology, *ends, policy == "ecmp", seed), which)


def _by_distance(
    topology: Topology, sources: np.ndarray, targets: np.ndarray, spread: bool, seed: int
) -> Routes:
    links, count = topology.links, len(topology.place)
    transit = np.array([facts["transit"] for _, facts in topology.graph.nodes(data=True)], np.bool_)
    out_at, out_link = _grouped(links.tail, np.arange(len(links.tail)), count)
    passing = np.flatnonzero(transit[links.tail])
    in_at, in_link = _grouped(links.head[passing], passing, count)
    order = np.argsort(targets, kind="stable").astype(np.int64)
    lengths, found = _walk_all(
        sources.astype(np.int32), targets.astype(np.int32), order, links.tail, links.head, transit,
        out_at, out_link, in_at, in_link, spread, np.uint64(seed),
    )  # fmt: skip
    if (lengths < 0).any():
        _no_way(topology, sources, targets, int(np.argmax(lengths < 0)))
    # Routes were found in the order of their targets: put them back into the order asked for.
    starts = np.zeros(len(order) + 1, np.int64)
    np.cumsum(lengths[order], out=starts[1:])
    return _picked(starts, found, np.argsort(order, kind="stable"))


def _picked(at: np.ndarray, links: np.ndarray, which: np.ndarray) -> Routes:
    """Routes number `which` of a list of routes, as a list of routes."""
    lengths = np.diff(at)[which]
    ends = np.cumsum(lengths)
    index = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
    return (
        np.concatenate([[0], ends]).astype(np.int32),
        links[np.repeat(at[:-1][which], lengths) + index].astype(np.int32),
    )


def repeated(given: Routes, which: np.ndarray) -> Routes:
    """The routes of pairs number `which`: each pair's route is found once and used by all its flows."""
    return _picked(given[0].astype(np.int64), given[1], which)


def _grouped(group: np.ndarray, items: np.ndarray, count: int) -> Routes:
    order = np.argsort(group, kind="stable")
    at = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(group, minlength=count), out=at[1:])
    return at, items[order].astype(np.int32)


def _no_way(topology: Topology, sources: np.ndarray, targets: np.ndarray, pair: int) -> None:
    names = list(topology.graph.nodes)
    one, other = names[sources[pair]], names[targets[pair]]
    raise LabkitError(
        f"No way leads from {one} to {other} in {topology.name} without passing through another GPU: add a link, "
        "or a switch between them."
    )


@compiled
def _distances(target, tail, in_at, in_link, distance, queue):
    """Hops to the target from every node that passes traffic on, breadth first against the links."""
    distance[:] = FAR
    distance[target] = 0
    queue[0], first, last = target, 0, 1
    while first < last:
        node = queue[first]
        first += 1
        for i in range(in_at[node], in_at[node + 1]):
            before = tail[in_link[i]]
            if distance[before] == FAR:
                distance[before] = distance[node] + 1
                queue[last] = before
                last += 1


@compiled
def _mixed(a, b, c, seed):
    """A well-mixed 64-bit hash (the finalizer of splitmix64 over a linear combination)."""
    z = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(b) * np.uint64(0xD1B54A32D192ED03)
    z += np.uint64(c) * np.uint64(0x8CB92BA72F3D8DD7) + seed
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def _step(node, source, target, head, transit, out_at, out_link, distance, spread, seed):
    """The link to take from a node: one of those that end nearest to the target; -1 if none leads there."""
    nearest, ties, chosen = FAR, 0, -1
    for i in range(out_at[node], out_at[node + 1]):
        link = out_link[i]
        if not (transit[head[link]] or head[link] == target):
            continue
        if distance[head[link]] < nearest:
            nearest, ties, chosen = distance[head[link]], 1, link
        elif distance[head[link]] == nearest and nearest < FAR:
            ties += 1
    if not spread or ties < 2:
        return chosen
    pick = np.int64(_mixed(source, target, node, seed) % np.uint64(ties))
    for i in range(out_at[node], out_at[node + 1]):
        link = out_link[i]
        if (transit[head[link]] or head[link] == target) and distance[head[link]] == nearest:
            if pick == 0:
                return link
            pick -= 1
    return chosen


@compiled
def _walk_all(sources, targets, order, tail, head, transit, out_at, out_link, in_at, in_link, spread, seed):
    """Length of every route (-1: none), and the links of all of them in `order`."""
    distance, queue = np.empty(len(transit), np.int32), np.empty(len(transit), np.int32)
    lengths, links, used, known = (
        np.zeros(len(order), np.int64),
        np.empty(4 * len(order) + 16, np.int32),
        0,
        -1,
    )
    for pair in order:
        source, target = sources[pair], targets[pair]
        if target != known:
            _distances(target, tail, in_at, in_link, distance, queue)
            known = target
        node = source
        while node != target:
            link = _step(node, source, target, head, transit, out_at, out_link, distance, spread, seed)
            if link < 0:
                lengths[pair] = -1
                break
            if used == len(links):
                links = np.concatenate((links, np.empty(len(links), np.int32)))
            links[used] = link
            used += 1
            lengths[pair] += 1
            node = head[link]
        if lengths[pair] < 0:
            break
    return lengths, links[:used]


def _by_dimension(topology: Topology, sources: np.ndarray, targets: np.ndarray) -> Routes:
    if not topology.dims:
        raise LabkitError(f"Dimension-ordered routing needs a ring or a torus, and {topology.name} is none.")
    ends = zip(topology.links.tail.tolist(), topology.links.head.tolist(), strict=True)
    link = {pair: number for number, pair in enumerate(ends)}
    found: list[Any] = [_hops(topology.dims, one, other) for one, other in zip(sources, targets, strict=True)]
    at = np.cumsum([0] + [len(hops) - 1 for hops in found], dtype=np.int32)
    walked = [link[pair] for hops in found for pair in itertools.pairwise(hops)]
    return at, np.array(walked, np.int32)


def _hops(dims: tuple[int, ...], source: int, target: int) -> list[int]:
    """Node numbers on the way: the shorter way round in each dimension, upwards where both are equal."""
    at, goal = list(np.unravel_index(source, dims)), np.unravel_index(target, dims)
    hops = [int(source)]
    for dimension, side in enumerate(dims):
        ahead = int(goal[dimension] - at[dimension]) % side
        step = 1 if ahead <= side - ahead else -1
        while at[dimension] != goal[dimension]:
            at[dimension] = (at[dimension] + step) % side
            hops.append(int(np.ravel_multi_index(at, dims)))
    return hops
