"""Lesson 09: typical wrong answers, each with its outcome and words that its feedback has to contain."""

from __future__ import annotations

from labkit.course.wrong import Wrong, function

_ROUTE = "route(dims, source, target)"
_WALK = """
at, stops = list(source), [tuple(source)]
for d in {order}:
    n = dims[d]
    ahead = (target[d] - at[d]) % n
    step = 1 if {up} else -1
    while at[d] != target[d]:
        at[d] = (at[d] + step){modulo}
        stops.append(tuple(at))
return stops
"""
_GOOD = {"order": "range(len(dims))", "up": "2 * ahead <= n", "modulo": " % n"}


def _walk(**changed: str) -> str:
    return _WALK.format(**{**_GOOD, **changed})


ROUTE = (
    function(
        _ROUTE,
        "no wrap-around",
        "failed",
        "it never wraps around",
        _walk(up="target[d] > at[d]", modulo=""),
    ),
    function(
        _ROUTE,
        "the last dimension first",
        "failed",
        "the last dimension came first",
        _walk(order="reversed(range(len(dims)))"),
    ),
    function(_ROUTE, "downwards in a tie", "failed", "upwards is asked for", _walk(up="2 * ahead < n")),
    function(_ROUTE, "always upwards", "failed", "downwards is shorter here", _walk(up="True")),
    function(
        _ROUTE,
        "the source left out",
        "failed",
        "the first stop is the source itself",
        _walk().replace("return stops", "return stops[1:]"),
    ),
    function(
        _ROUTE,
        "corners alone",
        "failed",
        "name every GPU on the way",
        """
        at, stops = list(source), [tuple(source)]
        for d in range(len(dims)):
            if at[d] != target[d]:
                at[d] = target[d]
                stops.append(tuple(at))
        return stops
        """,
    ),
    function(
        _ROUTE,
        "out of the torus",
        "failed",
        "lies outside the torus",
        """
        at, stops = list(source), [tuple(source)]
        for d, n in enumerate(dims):
            ahead = (target[d] - at[d]) % n
            step, hops = (1, ahead) if 2 * ahead <= n else (-1, n - ahead)
            for _ in range(hops):
                at[d] += step
                stops.append(tuple(at))
        return stops
        """,
    ),
    function(
        _ROUTE,
        "a number of hops",
        "failed",
        "a list of coordinates",
        "return sum(min((b - a) % n, (a - b) % n) for a, b, n in zip(source, target, dims))",
    ),
)

_HOT = "hot_link(links, flows)"
_TOTAL = """
total = dict.fromkeys(links, 0)
for size, path in flows:
    for name in path:
        total[name] += size
"""
_NEEDED = _TOTAL + "name = max(links, key=lambda link: total[link] / links[link])\n"
HOT_LINK = (
    function(
        _HOT,
        "most bytes",
        "failed",
        "it carries the most bytes, but it is fast",
        _TOTAL + "name = max(total, key=total.get)\nreturn name, total[name], total[name] / links[name]",
    ),
    function(
        _HOT,
        "most transfers",
        "failed",
        "it has the most transfers",
        _TOTAL
        + "name = max(links, key=lambda link: sum(link in path for _, path in flows))\n"
        + "return name, total[name], total[name] / links[name]",
    ),
    function(
        _HOT,
        "slowest link",
        "failed",
        "it is the slowest link, but little crosses it",
        _TOTAL + "name = min(links, key=links.get)\nreturn name, total[name], total[name] / links[name]",
    ),
    function(
        _HOT,
        "both directions added",
        "failed",
        "two directions of a cable are two links",
        _TOTAL
        + """
def both(name):
    one, other = name.split("->")
    return total[name] + total.get(other + "->" + one, 0)

name = max(links, key=lambda link: both(link) / links[link])
return name, both(name), both(name) / links[name]
""",
    ),
    function(
        _HOT,
        "its largest transfer alone",
        "failed",
        "largest transfer alone",
        _NEEDED + "size = max(s for s, path in flows if name in path)\nreturn name, size, size / links[name]",
    ),
    function(
        _HOT,
        "a factor of 8",
        "failed",
        "no factor of 8",
        _NEEDED + "return name, total[name], 8 * total[name] / links[name]",
    ),
    function(
        _HOT,
        "upside down",
        "failed",
        "seconds are bytes over rate",
        _NEEDED + "return name, total[name], links[name] / total[name]",
    ),
    function(_HOT, "the name alone", "failed", "a name, bytes and seconds", _NEEDED + "return name"),
    function(
        _HOT,
        "crash: a link without traffic",
        "error",
        "KeyError",
        "total = {}\nfor size, path in flows:\n    for name in path:\n        total[name] += size\n"
        "return max(total), 0, 0",
    ),
)

_LEAF = "leaf(ports, uplinks, host_Gbps, uplink_Gbps, gigabytes, seconds)"
_LEAF_BODY = """
up = {up}
if {own} > seconds:
    return 0, 0.0
hosts = {hosts}
return hosts, {ratio}
"""
_LEAF_GOOD = {
    "up": "uplinks * uplink_Gbps / 8",
    "own": "8 * gigabytes / host_Gbps",
    "hosts": "min(int(up * seconds / gigabytes), ports - uplinks)",
    "ratio": "hosts * host_Gbps / (uplinks * uplink_Gbps)",
}


def _leaf(label: str, says: str, **changed: str) -> Wrong:
    return function(_LEAF, label, "failed", says, _LEAF_BODY.format(**{**_LEAF_GOOD, **changed}))


LEAF = (
    _leaf("oversubscription upside down", "upside down", ratio="uplinks * uplink_Gbps / (hosts * host_Gbps)"),
    _leaf("links counted", "links were counted, not rates", ratio="hosts / uplinks"),
    _leaf("bits for bytes", "8 bits in a byte", up="uplinks * uplink_Gbps"),
    _leaf("both ways added", "a link's rate holds in each direction", up="2 * uplinks * uplink_Gbps / 8"),
    _leaf(
        "no room for the uplinks", "only 24 ports are left for hosts", hosts="int(up * seconds / gigabytes)"
    ),
    _leaf("every port a host", "the uplinks take ports", hosts="min(int(up * seconds / gigabytes), ports)"),
    _leaf("a host that is too slow", "0 hosts", own="0"),
    _leaf("rounded up", "round down", hosts="min(-int(-up * seconds // gigabytes), ports - uplinks)"),
    _leaf("one uplink", "that is one uplink", up="uplink_Gbps / 8"),
    _leaf("never oversubscribed", "1:1, without any", hosts="int(uplinks * uplink_Gbps / host_Gbps)"),
    _leaf("all free ports", "every free port", hosts="ports - uplinks"),
)

_PLACE = "place(groups, racks, hosts)"
PLACE = (
    function(
        _PLACE,
        "by rank number",
        "failed",
        "rank r is on host r",
        "return list(range(sum(map(len, groups))))",
    ),
    function(
        _PLACE,
        "one group after another",
        "failed",
        "place the largest groups first",
        """
        where = {}
        for host, rank in enumerate(rank for group in groups for rank in group):
            where[rank] = host
        return [where[rank] for rank in range(len(where))]
        """,
    ),
    function(
        _PLACE,
        "the smallest group first",
        "failed",
        "rings leave rack",
        """
        where = {}
        for host, rank in enumerate(rank for group in sorted(groups, key=len) for rank in group):
            where[rank] = host
        return [where[rank] for rank in range(len(where))]
        """,
    ),
    function(
        _PLACE,
        "dealt out to the racks in turn",
        "failed",
        "neighbours in a ring belong in one rack",
        """
        where = {}
        for n, rank in enumerate(rank for group in sorted(groups, key=len, reverse=True) for rank in group):
            where[rank] = n % racks * hosts + n // racks
        return [where[rank] for rank in range(len(where))]
        """,
    ),
    function(
        _PLACE,
        "racks for hosts",
        "failed",
        "these look like racks",
        """
        where = {}
        for n, rank in enumerate(rank for group in groups for rank in group):
            where[rank] = n // hosts
        return [where[rank] for rank in range(len(where))]
        """,
    ),
    function(
        _PLACE,
        "the rank of every host",
        "failed",
        "a list of",
        "return [rank for group in groups for rank in group] + [None] * racks",
    ),
    function(
        _PLACE,
        "a host too many",
        "failed",
        "There is no host",
        "return [rank + 1 + racks * hosts - sum(map(len, groups)) for rank in range(sum(map(len, groups)))]",
    ),
)

_RING = "ring(rows, columns)"
_SNAKE = "[(r, c if r % 2 == 0 else columns - 1 - c) for r in range(rows) for c in range(columns)]"
RING = (
    function(
        _RING,
        "row by row",
        "failed",
        "Turn round at each row's end",
        "return [(r, c) for r in range(rows) for c in range(columns)]",
    ),
    function(_RING, "a snake along the rows, always", "failed", "ends on the wrong side", f"return {_SNAKE}"),
    function(
        _RING, "the first GPU again", "failed", "the way home is implied", f"return {_SNAKE} + [(0, 0)]"
    ),
    function(
        _RING,
        "numbers of GPUs",
        "failed",
        "a list of (row, column)",
        "return [r * columns + c for r in range(rows) for c in range(columns)]",
    ),
    function(
        _RING,
        "sides exchanged",
        "failed",
        "is no GPU of a",
        f"return [(c, r) for r, c in {_SNAKE}]",
    ),
)
