"""Lesson 05: typical wrong rings, halos, ways and claims, each with words that its feedback has to contain."""

from __future__ import annotations

from textwrap import indent

from labkit.course.wrong import Wrong, function, wrong

_RING = "ring(matrix)"
_ALL = """
from itertools import permutations

orders = [[0, *rest] for rest in permutations(range(1, len(matrix)))]
edges = lambda order: [matrix[a][b] for a, b in zip(order, order[1:] + order[:1])]
"""
RING = (
    function(
        _RING,
        "in the order of numbers",
        "failed",
        "says nothing about the wires",
        "return list(range(len(matrix)))",
    ),
    function(
        _RING,
        "the largest sum",
        "failed",
        "this ring has the largest sum",
        _ALL + "return max(orders, key=lambda order: sum(edges(order)))",
    ),
    function(
        _RING,
        "the nearest next",
        "failed",
        "uses up the good links",
        """
        order = [0]
        while len(order) < len(matrix):
            left = [one for one in range(len(matrix)) if one not in order]
            order.append(max(left, key=lambda one: matrix[order[-1]][one]))
        return order
        """,
    ),
    function(
        _RING,
        "a path that is not closed",
        "failed",
        "the way back, from the last to the first, is an edge too",
        _ALL + "return max(orders, key=lambda order: min(edges(order)[:-1], default=0))",
    ),
    function(
        _RING,
        "the worst edge made worst",
        "failed",
        "The worst edge of",
        _ALL + "return min(orders, key=lambda order: min(edges(order)))",
    ),
    function(
        _RING,
        "the best edge made best",
        "failed",
        "The worst edge of",
        _ALL + "return max(orders, key=lambda order: max(edges(order)))",
    ),
    function(
        _RING,
        "one GPU twice",
        "failed",
        "is no ring: GPU",
        "order = list(range(len(matrix)))\norder[-1] = 0\nreturn order",
    ),
    function(
        _RING,
        "the first again at the end",
        "failed",
        "from the last it goes back by itself",
        _ALL + "return max(orders, key=lambda order: min(edges(order))) + [0]",
    ),
    function(
        _RING, "names", "failed", "are asked for, each once", "return [f'GPU{n}' for n in range(len(matrix))]"
    ),
)

_IMPORTS = (
    "from labkit.network import exchange, irecv, isend, recv, send\n"
    "from labkit.network.workloads import heat_step\n\n"
)
_PADDED = """
padded = np.zeros((len(part) + 2, part.shape[1]))
padded[1:-1] = part
above, below = rank - 1, rank + 1
"""
_SWAP = """
    if rank > 0:
        exchange(padded[1], above, padded[0], above)
    if rank < ranks - 1:
        exchange(padded[-2], below, padded[-1], below)
"""
_STEP = "    padded[1:-1] = heat_step(padded)\n"
_END = "return padded[1:-1]\n"


def _halo(label: str, says: str, body: str, outcome: str = "failed") -> Wrong:
    source = f"{_IMPORTS}\ndef heat(part, rank, ranks, steps):\n" + indent(
        (_PADDED + body).strip("\n"), "    "
    )
    return wrong(label, outcome, says, source)


_LOOP = "for step in range(steps):\n"
HALO = (
    _halo("nothing is exchanged", "each neighbour's outermost row belongs there", _LOOP + _STEP + _END),
    _halo(
        "exchanged once",
        "the halo is stale: it was exchanged once",
        "if True:\n" + _SWAP + _LOOP + _STEP + _END,
    ),
    _halo("after the step", "exchange before each step, not after it", _LOOP + _STEP + _SWAP + _END),
    _halo(
        "one exchange too many",
        "one exchange more than there are steps",
        "if True:\n" + _SWAP + _LOOP + _STEP + _SWAP + _END,
    ),
    _halo(
        "every other step",
        "stale in every other step",
        _LOOP + "  if step % 2 == 0:\n" + _SWAP + "  " + _STEP.lstrip() + _END,
    ),
    _halo(
        "the wrong side",
        "the rows are on the wrong side",
        _LOOP
        + _SWAP.replace("padded[0], above", "padded[-1], above").replace(
            "padded[-1], below", "padded[0], below"
        )
        + "    if rank in (0, ranks - 1) and ranks > 1:\n        pass\n"
        + _STEP
        + _END,
    ),
    _halo(
        "the far row",
        "each rank sends the row on its far side",
        _LOOP
        + _SWAP.replace("padded[1], above", "padded[-2], above").replace(
            "padded[-2], below", "padded[1], below"
        )
        + _STEP
        + _END,
    ),
    _halo(
        "the halo sent on",
        "zeros in the halo all the time",
        _LOOP
        + "    upper, lower = padded[0].copy(), padded[-1].copy()\n"
        + _SWAP.replace("padded[1], above", "upper, above").replace("padded[-2], below", "lower, below")
        + _STEP
        + _END,
    ),
    _halo(
        "receive first",
        "waits to receive from",
        _LOOP
        + """
    if rank > 0:
        recv(padded[0], above)
        send(padded[1], above)
    if rank < ranks - 1:
        recv(padded[-1], below)
        send(padded[-2], below)
"""
        + _STEP
        + _END,
    ),
    _halo(
        "send first",
        "waits to send to",
        _LOOP
        + """
    if rank > 0:
        send(padded[1], above)
        recv(padded[0], above)
    if rank < ranks - 1:
        send(padded[-2], below)
        recv(padded[-1], below)
"""
        + _STEP
        + _END,
    ),
    _halo(
        "sent and never received",
        "which never receives it",
        _LOOP
        + """
    if rank > 0:
        isend(padded[1].copy(), above)
    if rank < ranks - 1:
        isend(padded[-2].copy(), below)
"""
        + _STEP
        + _END,
    ),
    _halo(
        "whole parts sent",
        "only the row next to the neighbour is needed there",
        _LOOP
        + """
    height = np.zeros(1)
    for other, row in ((above, 0), (below, -1)):
        if 0 <= other < ranks:
            exchange(np.array([float(len(part))]), other, height, other)
            theirs = np.zeros((int(height[0]), part.shape[1]))
            exchange(padded[1:-1].copy(), other, theirs, other)
            padded[row] = theirs[-1 if row == 0 else 0]
"""
        + _STEP
        + _END,
    ),
    _halo(
        "the halo returned", "the halo belongs to the neighbours", _LOOP + _SWAP + _STEP + "return padded\n"
    ),
    _halo("nothing returned", "Rank 0 returned nothing", _LOOP + _SWAP + _STEP),
    _halo(
        "a ring instead of a plate",
        "the plate has ends",
        _LOOP
        + """
    if ranks > 1:
        up, down = (rank - 1) % ranks, (rank + 1) % ranks
        exchange(padded[-2], down, padded[0], up)
        exchange(padded[1], up, padded[-1], down)
    else:
        padded[0], padded[-1] = 0, 0
"""
        + _STEP
        + _END,
    ),
    _halo(
        "edges have neighbours",
        "cannot exchange messages with rank -1",
        _LOOP + "    exchange(padded[1], above, padded[0], above)\n" + _STEP + _END,
        "error",
    ),
)

_WAY = "way(environment, size, legs)"
_USED = """
if environment.get("NCCL_P2P_DISABLE") != "1":
    used = ["peer"]
elif environment.get("NCCL_SHM_DISABLE") != "1":
    used = ["to_host", "from_host"]
else:
    used = ["to_host", "socket", "from_host"]
copied = size * (len(used) + used.count("socket"))
"""
_SECONDS = "return used, copied, sum(legs[leg][0] + size / legs[leg][1] for leg in used)"


def _way(label: str, says: str, body: str) -> Wrong:
    return function(_WAY, label, "failed", says, body)


WAY = (
    _way(
        "0 switches off as well",
        "set to 0 takes nothing away",
        _USED.replace('environment.get("NCCL_P2P_DISABLE") != "1"', '"NCCL_P2P_DISABLE" not in environment')
        + _SECONDS,
    ),
    _way(
        "peers need shared memory",
        "need no shared memory",
        _USED.replace(
            'if environment.get("NCCL_P2P_DISABLE") != "1":',
            'if environment.get("NCCL_P2P_DISABLE") != "1" and environment.get("NCCL_SHM_DISABLE") != "1":',
        )
        + _SECONDS,
    ),
    _way(
        "a socket from GPU to GPU",
        "get there and back to a GPU",
        _USED.replace('["to_host", "socket", "from_host"]', '["socket"]') + _SECONDS,
    ),
    _way("nothing changes", "directly if they may", "used, copied = ['peer'], size\n" + _SECONDS),
    _way("the message once", "each leg copies it again", _USED + "copied = size\n" + _SECONDS),
    _way("a socket copies once", "a socket copies twice", _USED + "copied = size * len(used)\n" + _SECONDS),
    _way(
        "no alphas",
        "the alphas are missing",
        _USED + "return used, copied, sum(size / legs[leg][1] for leg in used)",
    ),
    _way(
        "the slowest leg alone",
        "this is the slowest leg",
        _USED + "return used, copied, max(legs[leg][0] + size / legs[leg][1] for leg in used)",
    ),
    _way(
        "one rate for all",
        "the slowest rate for all",
        _USED
        + "slowest = min(legs[leg][1] for leg in used)\n"
        + "return used, copied, sum(legs[leg][0] for leg in used) + size / slowest",
    ),
    _way("two things", "three things are asked for", _USED + "return used, copied"),
)


def _claim(label: str, says: str, **changed: str) -> Wrong:
    right = {"verdict": "'false'", "number": "2.7", "unit": "'us'", "left_out": "'peer access, the switches'"}
    entries = ", ".join(f"'{key}': {value}" for key, value in {**right, **changed}.items())
    return wrong(label, "failed", says, f"claim = {{{entries}}}")


CLAIM = (
    _claim("believed", "thousands of clock cycles are not zero", verdict="'true'"),
    _claim("only misleading", "not the best verdict", verdict="'misleading'"),
    _claim("peer access off", "a copy with peer access off", number="18"),
    _claim("one switch", "what one NVSwitch adds", number="0.1"),
    _claim("seen from the CPU", "how the CPU sees it", number="1.8"),
    _claim("in nanoseconds", "such a latency is in 'us'", unit="'ns'", number="2700"),
    _claim("nothing left out", "depends on", left_out="'nothing'"),
    _claim("no number", "nothing under 'number' yet", number="None"),
)
