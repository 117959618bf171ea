"""Lesson 06: typical wrong choices, all-reduces and claims, each with words that its feedback has to contain."""

from __future__ import annotations

from labkit.course.wrong import function, wrong

_CHOOSE = "choose(tables, size)"
_FIT = """
def predicted(name):
    n, t = (np.asarray(column, float) for column in tables[name])
    {terms}
    {solve}
    return float(x @ {at})

best = min(tables, key=predicted)
return best, predicted(best)
"""
_RELATIVE = "x, *_ = np.linalg.lstsq(terms / t[:, None], np.ones(len(t)), rcond=None)"
_ABSOLUTE = "x, *_ = np.linalg.lstsq(terms, t, rcond=None)"
_THREE = "terms = np.column_stack([np.ones(len(n)), np.sqrt(n), n])"
_TWO = "terms = np.column_stack([np.ones(len(n)), n])"

CHOOSE = (
    function(
        _CHOOSE,
        "alpha and beta alone",
        "failed",
        "misses the middle sizes",
        _FIT.format(terms=_TWO, solve=_RELATIVE, at="[1, size]"),
    ),
    function(
        _CHOOSE,
        "errors in seconds",
        "failed",
        "divide each by its time",
        _FIT.format(terms=_THREE, solve=_ABSOLUTE, at="[1, size**0.5, size]"),
    ),
    function(
        _CHOOSE,
        "the rate of the largest message",
        "failed",
        "ruled by alpha",
        """
        def predicted(name):
            sizes, seconds = tables[name]
            return size * seconds[-1] / sizes[-1]

        best = min(tables, key=predicted)
        return best, predicted(best)
        """,
    ),
    function(
        _CHOOSE,
        "always the one for large messages",
        "failed",
        "is not one of those",
        """
        name = min(tables, key=lambda one: tables[one][1][-1])
        n, t = (np.asarray(column, float) for column in tables[name])
        terms = np.column_stack([np.ones(len(n)), np.sqrt(n), n])
        x, *_ = np.linalg.lstsq(terms / t[:, None], np.ones(len(t)), rcond=None)
        return name, float(x @ [1, size**0.5, size])
        """,
    ),
    function(
        _CHOOSE,
        "always the one for small messages",
        "failed",
        "wins with the smallest messages",
        """
        name = min(tables, key=lambda one: tables[one][1][0])
        n, t = (np.asarray(column, float) for column in tables[name])
        terms = np.column_stack([np.ones(len(n)), np.sqrt(n), n])
        x, *_ = np.linalg.lstsq(terms / t[:, None], np.ones(len(t)), rcond=None)
        return name, float(x @ [1, size**0.5, size])
        """,
    ),
    function(
        _CHOOSE,
        "the next smaller row",
        "failed",
        "held out says",
        """
        def nearest(name):
            return max((n, t) for n, t in zip(*tables[name]) if n <= size)[1]

        best = min(tables, key=nearest)
        return best, nearest(best)
        """,
    ),
    function(_CHOOSE, "a name alone", "failed", "a name and the seconds", "return next(iter(tables))"),
    function(_CHOOSE, "a hard-coded name", "failed", "it should be one of", 'return "nvls", 1e-5'),
)

_HALVING = """
from labkit.network import exchange, recv, send


def all_reduce(data, rank, ranks):
    core = 1 << (ranks.bit_length() - 1)
    coming = np.empty_like(data)
    {outside}
    swaps, low, high, distance = [], 0, len(data), core // 2
    while distance:
        middle = (low + high) // 2
        upper = rank & distance
        kept, given = (slice(middle, high), slice(low, middle)) if upper else (slice(low, middle), slice(middle, high))
        other = rank ^ distance
        exchange(data[given], other, coming[kept], other)
        data[kept] += coming[kept]
        swaps.append((other, kept, given))
        low, high, distance = kept.start, kept.stop, distance // 2
    {back}
    {last}
"""
_OUTSIDE = """if rank >= core:
        send(data, rank - core)
        recv(data, rank - core)
        return
    if rank + core < ranks:
        recv(coming, rank + core)
        data += coming"""
_BACK = """for other, kept, given in {order}:
        exchange(data[kept], other, data[given], other)"""
_LAST = """if rank + core < ranks:
        send(data, rank + core)"""

ALL_REDUCE = (
    wrong(
        "only for powers of two",
        "failed",
        "the share of rank 2 is missing",
        _HALVING.format(
            outside="if rank >= core:\n        return", back=_BACK.format(order="reversed(swaps)"), last=""
        ),
    ),
    wrong(
        "the outsiders never get the result",
        "failed",
        "Deadlock",
        _HALVING.format(outside=_OUTSIDE, back=_BACK.format(order="reversed(swaps)"), last=""),
    ),
    wrong(
        "no way back",
        "failed",
        "are missing",
        _HALVING.format(outside=_OUTSIDE, back="", last=_LAST),
    ),
    wrong(
        "back in the same order",
        "failed",
        "Rank 0 has",
        _HALVING.format(outside=_OUTSIDE, back=_BACK.format(order="swaps"), last=_LAST),
    ),
    wrong(
        "all of the data every time",
        "failed",
        "never all of it",
        """
        from labkit.network import exchange, recv, send


        def all_reduce(data, rank, ranks):
            core = 1 << (ranks.bit_length() - 1)
            coming = np.empty_like(data)
            if rank >= core:
                send(data, rank - core)
                recv(data, rank - core)
                return
            if rank + core < ranks:
                recv(coming, rank + core)
                data += coming
            distance = core // 2
            while distance:
                exchange(data, rank ^ distance, coming, rank ^ distance)
                data += coming
                distance //= 2
            if rank + core < ranks:
                send(data, rank + core)
        """,
    ),
    wrong(
        "the ring",
        "failed",
        "6 steps, target 4",
        """
        from labkit.network import exchange
        from labkit.network.collectives import chunks


        def all_reduce(data, rank, ranks):
            part = chunks(len(data), ranks)
            for step in range(2 * (ranks - 1)):
                mine = data[part[(rank - step - 1) % ranks]]
                coming = np.empty_like(mine)
                exchange(data[part[(rank - step) % ranks]], (rank + 1) % ranks, coming, (rank - 1) % ranks)
                mine[:] = mine + coming if step < ranks - 1 else coming
        """,
    ),
    wrong(
        "labkit's own",
        "failed",
        "A ready-made all_reduce",
        """
        from labkit.network import ring_all_reduce


        def all_reduce(data, rank, ranks):
            ring_all_reduce(data)
        """,
    ),
    wrong(
        "everything to rank 0",
        "failed",
        "steps, target",
        """
        from labkit.network import recv, send


        def all_reduce(data, rank, ranks):
            if rank:
                send(data, 0)
                recv(data, 0)
                return
            coming = np.empty_like(data)
            for source in range(1, ranks):
                recv(coming, source)
                data += coming
            for to in range(1, ranks):
                send(data, to)
        """,
    ),
    wrong(
        "adds after sending back",
        "failed",
        "in it more than once",
        """
        from labkit.network import exchange


        def all_reduce(data, rank, ranks):
            coming = np.empty_like(data)
            for distance in range(1, ranks):
                other = rank ^ distance
                if other < ranks:
                    exchange(data, other, coming, other)
                    data += coming
        """,
    ),
)


def _claim(verdict: str, value: str, unit: str, left_out: str) -> str:
    return (
        f'claim = {{"verdict": {verdict!r}, "number": {value}, "unit": {unit!r}, "left_out": {left_out!r}}}'
    )


_RIGHT = "it takes a ring for granted, and here the switch adds"
CLAIM = (
    wrong("believes it", "failed", "450 GB/s one way", _claim("true", "274", "GB/s", _RIGHT)),
    wrong(
        "bus bandwidth itself",
        "failed",
        "the bus bandwidth itself",
        _claim("misleading", "480", "GB/s", _RIGHT),
    ),
    wrong("the line rate", "failed", "could carry one way", _claim("misleading", "450", "GB/s", _RIGHT)),
    wrong("both directions", "failed", "both directions", _claim("misleading", "900", "GB/s", _RIGHT)),
    wrong("gigabits", "failed", "in 'GB/s'", _claim("misleading", "2194", "Gbit/s", _RIGHT)),
    wrong(
        "names nothing", "failed", "takes for granted", _claim("misleading", "274", "GB/s", "it is marketing")
    ),
    wrong("has no number", "failed", "nothing under 'number'", _claim("misleading", "None", "GB/s", _RIGHT)),
    wrong("no source", "failed", "published table", _claim("unsourced", "274", "GB/s", _RIGHT)),
)
