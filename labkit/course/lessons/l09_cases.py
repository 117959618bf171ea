"""Lesson 09: what each check asks, and the learner's own networks, drawn from a seed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from labkit.course import seeds
from labkit.course.checks import Call

Place = tuple[int, ...]
LEAF = ("ports", "uplinks", "host_Gbps", "uplink_Gbps", "gigabytes", "seconds")
SIZE = 1_000_000_000  # bytes that every group of ranks all-reduces


def route(_: None) -> Iterator[Call]:
    """Two dimensions and four; both ways round; ties; a side of one and of two; nowhere to go."""
    asked = (
        ((8, 8), (1, 2), (3, 5)),
        ((8, 8), (5, 1), (2, 6)),
        ((8, 8), (1, 1), (7, 6)),
        ((4, 6), (0, 0), (2, 3)),
        ((5, 7), (4, 6), (0, 1)),
        ((4, 4, 4), (3, 0, 2), (1, 3, 2)),
        ((6, 1, 2), (5, 0, 0), (2, 0, 1)),
        ((3, 4, 5, 2), (2, 1, 4, 1), (0, 3, 1, 0)),
        ((9,), (7,), (2,)),
        ((4, 4), (2, 3), (2, 3)),
    )
    for dims, source, target in asked:
        yield Call({"dims": dims, "source": source, "target": target}, way(dims, source, target))


def way(
    dims: Place, source: Place, target: Place, order: Sequence[int] | None = None, tie: int = 1
) -> list[Place]:
    """Every stop from source to target: one dimension after the other, the short way round, upwards in a tie."""
    at, stops = list(source), [tuple(source)]
    for dimension in range(len(dims)) if order is None else order:
        side = dims[dimension]
        ahead = (target[dimension] - at[dimension]) % side
        step = tie if 2 * ahead == side else (1 if 2 * ahead < side else -1)
        while at[dimension] != target[dimension]:
            at[dimension] = (at[dimension] + step) % side
            stops.append(tuple(at))
    return stops


def hot_link_table(random: np.random.Generator) -> dict[str, Any]:
    """Twenty transfers on four racks with two slow cables, drawn until every short cut names another link."""
    while True:
        table = _transfers(random)
        seconds = needed(table)
        second, first = sorted(seconds.values())[-2:]
        names = (hottest(table), most_bytes(table), most_flows(table), slowest(table), both_ways(table))
        if second < 0.9 * first and len(set(names)) == len(names):
            return table


def _transfers(
    random: np.random.Generator, racks: int = 4, hosts: int = 3, spines: int = 2
) -> dict[str, Any]:
    links: dict[str, float] = {}
    for rack in range(racks):
        links |= {f"leaf{rack}->spine{spine}": 50e9 for spine in range(spines)}
        links |= {f"spine{spine}->leaf{rack}": 50e9 for spine in range(spines)}
        links |= {f"h{h}->leaf{rack}": 25e9 for h in range(rack * hosts, (rack + 1) * hosts)}
        links |= {f"leaf{rack}->h{h}": 25e9 for h in range(rack * hosts, (rack + 1) * hosts)}
    uplinks = [name for name in links if "spine" in name]
    for name, rate in zip(random.choice(uplinks, 2, replace=False), (12.5e9, 5e9), strict=True):
        links[str(name)] = rate  # a cable that came up with a quarter of its lanes, and a worse one
    flows = []
    for _ in range(20):
        one, other = (int(host) for host in random.choice(racks * hosts, 2, replace=False))
        flows.append(
            (
                int(random.integers(1, 16)) * 100_000_000,
                _path(one, other, hosts, int(random.integers(spines))),
            )
        )
    return {"links": links, "flows": flows}


def _path(one: int, other: int, hosts: int, spine: int) -> list[str]:
    here, there = one // hosts, other // hosts
    stops = [f"h{one}", f"leaf{here}", f"h{other}"]
    if here != there:
        stops[2:2] = [f"spine{spine}", f"leaf{there}"]
    return [f"{tail}->{head}" for tail, head in itertools.pairwise(stops)]


def carried(table: dict[str, Any]) -> dict[str, int]:
    """Bytes over each link."""
    found = dict.fromkeys(table["links"], 0)
    for size, path in table["flows"]:
        for name in path:
            found[name] += size
    return found


def needed(table: dict[str, Any]) -> dict[str, float]:
    """Seconds each link needs for what crosses it."""
    return {name: size / table["links"][name] for name, size in carried(table).items()}


def hottest(table: dict[str, Any]) -> str:
    seconds = needed(table)
    return max(seconds, key=seconds.__getitem__)


def most_bytes(table: dict[str, Any]) -> str:
    found = carried(table)
    return max(found, key=found.__getitem__)


def most_flows(table: dict[str, Any]) -> str:
    crossing = {name: sum(name in path for _, path in table["flows"]) for name in table["links"]}
    return max(crossing, key=crossing.__getitem__)


def slowest(table: dict[str, Any]) -> str:
    rates: dict[str, float] = table["links"]
    return min(rates, key=rates.__getitem__)


def both_ways(table: dict[str, Any]) -> str:
    """The link that looks hottest when a cable's two directions are added up."""
    found = carried(table)
    both = {name: found[name] + found["->".join(name.split("->")[::-1])] for name in found}
    return max(both, key=lambda name: both[name] / table["links"][name])


def hot_link(table: dict[str, Any]) -> Iterator[Call]:
    """The learner's own transfers, others, and a cable that is fast, full and not the one."""
    hand = {
        "links": {"a->s": 10e9, "s->b": 10e9, "b->s": 10e9, "s->a": 2e9},
        "flows": [(4_000_000_000, ["a->s", "s->b"]), (1_500_000_000, ["b->s", "s->a"])],
    }
    tables = [
        table,
        *(hot_link_table(seeds.generator("09.hot_link", who)) for who in ("first", "second")),
        hand,
    ]
    for one in tables:
        name = hottest(one)
        yield Call(dict(one), (name, carried(one)[name], needed(one)[name]))


def leaf_table(random: np.random.Generator) -> dict[str, Any]:
    """A leaf switch and a step's traffic, drawn until the uplinks are what limits it."""
    while True:
        table = {
            "ports": int(random.choice([32, 64])),
            "uplinks": int(random.integers(2, 9)),
            "host_Gbps": int(random.choice([100, 200, 400])),
            "uplink_Gbps": int(random.choice([200, 400, 800])),
            "gigabytes": float(random.integers(2, 30) / 4),
            "seconds": float(random.integers(4, 60) / 20),
        }
        room, free = by_uplinks(table), table["ports"] - table["uplinks"]
        ratio = int(room) * table["host_Gbps"] / (table["uplinks"] * table["uplink_Gbps"])
        if (
            4 < room < free - 1
            and 0.2 < room % 1 < 0.8
            and ratio > 1.3
            and own_time(table) < 0.8 * table["seconds"]
        ):
            return table


def by_uplinks(table: dict[str, Any]) -> float:
    """How many hosts' bytes the uplinks carry in the time, as a broken number."""
    up = table["uplinks"] * table["uplink_Gbps"] * 1e9 / 8
    return float(up * table["seconds"] / (table["gigabytes"] * 1e9))


def own_time(table: dict[str, Any]) -> float:
    """Seconds that a host's own link needs."""
    return float(8 * table["gigabytes"] / table["host_Gbps"])


def largest(table: dict[str, Any]) -> tuple[int, float]:
    if own_time(table) > table["seconds"]:
        return 0, 0.0
    hosts = min(int(by_uplinks(table)), table["ports"] - table["uplinks"])
    return hosts, hosts * table["host_Gbps"] / (table["uplinks"] * table["uplink_Gbps"])


def leaf(table: dict[str, Any]) -> Iterator[Call]:
    """A telling switch, the learner's own, others; one whose ports are the limit; a host too slow by itself."""
    tables = [table, *(leaf_table(seeds.generator("09.leaf", who)) for who in ("first", "second", "third"))]
    telling = (64, 2, 100, 200, 5.0, 0.55)  # every short cut gives another number
    hand = ((32, 8, 100, 400, 0.3, 0.5), (64, 4, 100, 400, 7.0, 0.5), (32, 2, 400, 400, 30.0, 1.0))
    for one in (
        dict(zip(LEAF, telling, strict=True)),
        *tables,
        *(dict(zip(LEAF, row, strict=True)) for row in hand),
    ):
        yield Call(dict(one), largest(one))


def place_table(random: np.random.Generator) -> dict[str, Any]:
    """Groups of scattered ranks on four racks of eight, drawn until they can be placed, but not by just going on."""
    while True:
        sizes = [12, *(int(size) for size in random.choice([2, 3, 4, 5, 6, 8], 5))]
        if not 26 <= sum(sizes) <= 32:
            continue
        ranks = [int(rank) for rank in random.permutation(sum(sizes))]
        order = random.permutation(len(sizes))
        ends = np.cumsum([0] + [sizes[n] for n in order])
        table = {
            "groups": [ranks[a:b] for a, b in itertools.pairwise(ends.tolist())],
            "racks": 4,
            "hosts": 8,
        }
        short_cuts = (list(range(len(ranks))), one_after_another(table))
        if fits(table, packed(table)) and not any(fits(table, short) for short in short_cuts):
            return table


def place(table: dict[str, Any]) -> Iterator[Call]:
    """The learner's own groups, others; groups that fill racks; one group over all; hosts to spare."""
    tables = [table, *(place_table(seeds.generator("09.place", who)) for who in ("first", "second"))]
    hand = (
        {"groups": [[0, 2, 4, 6], [1, 3, 5, 7]], "racks": 2, "hosts": 4},
        {"groups": [[5, 0, 3, 1, 4, 2]], "racks": 3, "hosts": 2},
        {"groups": [[0, 3], [1, 4, 6], [2, 5]], "racks": 3, "hosts": 3},
    )
    for one in (*tables, *hand):
        yield Call(dict(one), gate(one["groups"]))


def sent(group: Sequence[int]) -> float:
    """Bytes that each rank of a group sends to the next in a ring all-reduce of `SIZE`."""
    return 2 * (len(group) - 1) / len(group) * SIZE


def gate(groups: Sequence[Sequence[int]]) -> float:
    """What the busiest host's own link carries however ranks are placed; no other link needs to carry more."""
    return max(map(sent, groups))


def edges(groups: Sequence[Sequence[int]]) -> Iterator[tuple[int, int, int]]:
    """(number of the group, rank, the rank it sends to), all the way round each ring."""
    for number, group in enumerate(groups):
        for one, other in zip(group, [*group[1:], group[0]], strict=True):
            yield number, one, other


def uplinks(table: dict[str, Any], host_of: Sequence[int]) -> dict[tuple[str, int], list[int]]:
    """("up" or "down", rack) -> the group of each ring edge that crosses that rack's uplink this way."""
    found: dict[tuple[str, int], list[int]] = {}
    for number, one, other in edges(table["groups"]):
        here, there = (host_of[rank] // table["hosts"] for rank in (one, other))
        if here != there:
            found.setdefault(("up", here), []).append(number)
            found.setdefault(("down", there), []).append(number)
    return found


def fits(table: dict[str, Any], host_of: Sequence[int]) -> bool:
    most = gate(table["groups"])
    return all(
        sum(sent(table["groups"][number]) for number in crossing) <= most * (1 + 1e-9)
        for crossing in uplinks(table, host_of).values()
    )


def one_after_another(table: dict[str, Any]) -> list[int]:
    """Group after group as they come, on host after host."""
    host_of = [0] * sum(map(len, table["groups"]))
    for host, rank in enumerate(itertools.chain.from_iterable(table["groups"])):
        host_of[rank] = host
    return host_of


def packed(table: dict[str, Any]) -> list[int]:
    """The largest group first, whole into the fullest rack with room for it; what fits nowhere fills empty racks."""
    size = table["hosts"]
    free = [list(range(rack * size, (rack + 1) * size)) for rack in range(table["racks"])]
    host_of = [0] * sum(map(len, table["groups"]))
    for group in sorted(table["groups"], key=len, reverse=True):
        rest = list(group)
        while rest:
            rooms = [rack for rack in free if len(rack) >= len(rest)]
            rack = min(rooms, key=len) if rooms else max(free, key=len)
            here, rest = rest[: len(rack)], rest[len(rack) :]
            for rank in here:
                host_of[rank] = rack.pop(0)
    return host_of


def ring(_: None) -> Iterator[Call]:
    for rows, columns in ((4, 4), (4, 6), (6, 3), (3, 4), (2, 2), (5, 8), (8, 8)):
        yield Call({"rows": rows, "columns": columns}, rows * columns)
