"""Lesson 08: typical wrong functions and claims, each with its outcome and words that its feedback has to contain."""

from __future__ import annotations

from labkit.course.wrong import Wrong, function, wrong

_CROSSOVER = "crossover(sizes, eager_s, rendezvous_s)"
_FIT = """
n = np.array(sizes, float)

def line(seconds):
    t = np.array(seconds)
    return np.linalg.lstsq(np.column_stack([1 / t, n / t]), np.ones(len(t)), rcond=None)[0]

(a, s), (b, r) = line(eager_s), line(rendezvous_s)
"""
_NEVER = "if r >= s:\n    return math.inf\n"
CROSSOVER = (
    function(
        _CROSSOVER,
        "the two largest sizes",
        "failed",
        "this fits the largest sizes alone",
        """
        n = sizes[-2:]
        s, a = np.polyfit(n, eager_s[-2:], 1)
        r, b = np.polyfit(n, rendezvous_s[-2:], 1)
        return float((b - a) / (s - r))
        """,
    ),
    function(
        _CROSSOVER,
        "errors in seconds",
        "failed",
        "the largest sizes decide alone, and start-ups are lost",
        """
        (s, a), (r, b) = np.polyfit(sizes, eager_s, 1), np.polyfit(sizes, rendezvous_s, 1)
        if r >= s:
            return math.inf
        return float(max(0.0, (b - a) / (s - r)))
        """,
    ),
    function(
        _CROSSOVER,
        "first row in which rendezvous is ahead",
        "failed",
        "this is a row of the table",
        """
        for n, e, r in zip(sizes, eager_s, rendezvous_s):
            if r < e:
                return float(n)
        return math.inf
        """,
    ),
    function(
        _CROSSOVER,
        "divides by one slope",
        "failed",
        "divide by the difference of the slopes",
        _FIT + _NEVER + "return float(max(0, (b - a) / s))",
    ),
    function(
        _CROSSOVER,
        "eager without a start-up",
        "failed",
        "eager has a start-up too",
        _FIT + _NEVER + "return float(max(0, b / s))",
    ),
    function(
        _CROSSOVER,
        "wrong sign",
        "failed",
        "the sign is wrong",
        _FIT + _NEVER + "return float((a - b) / (s - r))",
    ),
    function(
        _CROSSOVER,
        "KiB",
        "failed",
        "this is in KiB",
        _FIT + _NEVER + "return float(max(0, (b - a) / (s - r))) / 1024",
    ),
    function(
        _CROSSOVER,
        "always ahead comes out negative",
        "failed",
        "from the first byte on",
        _FIT + _NEVER + "return float((b - a) / (s - r))",
    ),
    function(
        _CROSSOVER,
        "never is overlooked",
        "failed",
        "return math.inf",
        _FIT + "return float(max(0, (b - a) / (s - r)))",
    ),
    function(_CROSSOVER, "a guess", "failed", "expected", "return 8192.0"),
    function(_CROSSOVER, "returns both lines", "failed", "one number is asked for", "return [1.0, 2.0]"),
)

_HIERARCHICAL = "hierarchical(data, rank, nodes, per_node)"
_IMPORTS = """
from labkit.network import ring_all_gather, ring_all_reduce, ring_reduce_scatter
first = rank - rank % per_node
inside = range(first, first + per_node)
across = range(rank % per_node, nodes * per_node, per_node)
"""
HIERARCHICAL = (
    function(
        _HIERARCHICAL,
        "one flat ring over the slow link",
        "failed",
        "that is what one flat ring over all ranks sends",
        _IMPORTS + "ring_all_reduce(data)",
    ),
    function(
        _HIERARCHICAL,
        "a ring that leaves the node at every hop",
        "failed",
        "a ring whose every hop leaves a node",
        _IMPORTS
        + "order = [node * per_node + place for place in range(per_node) for node in range(nodes)]\n"
        + "ring_all_reduce(data, members=order)",
    ),
    function(
        _HIERARCHICAL,
        "all of the data across, from every rank",
        "failed",
        "2 times the target: every rank sends all of its data across",
        _IMPORTS + "ring_all_reduce(data, members=inside)\nring_all_reduce(data, members=across)",
    ),
    function(
        _HIERARCHICAL,
        "one rank speaks for the node",
        "failed",
        "let each rank carry its own chunk",
        """
        from labkit.network import binomial_broadcast, binomial_reduce, ring_all_reduce
        first = rank - rank % per_node
        inside = range(first, first + per_node)
        binomial_reduce(data, root=first, members=inside)
        if rank == first:
            ring_all_reduce(data, members=range(0, nodes * per_node, per_node))
        binomial_broadcast(data, root=first, members=inside)
        """,
    ),
    function(
        _HIERARCHICAL,
        "the last phase is missing",
        "failed",
        "the last phase gathers them",
        _IMPORTS
        + "mine = ring_reduce_scatter(data, members=inside)\nring_all_reduce(data[mine], members=across)",
    ),
    function(
        _HIERARCHICAL,
        "never across",
        "failed",
        "the sum inside the node alone",
        _IMPORTS + "ring_all_reduce(data, members=inside)",
    ),
    function(
        _HIERARCHICAL,
        "a copy of the chunk",
        "failed",
        "the sum inside the node alone",
        _IMPORTS
        + "mine = ring_reduce_scatter(data, members=inside)\n"
        + "ring_all_reduce(data[mine].copy(), members=across)\nring_all_gather(data, members=inside)",
    ),
    function(
        _HIERARCHICAL,
        "nothing",
        "failed",
        "data is as it was",
        _IMPORTS + "total = data.copy()\nring_all_reduce(total)",
    ),
    function(
        _HIERARCHICAL,
        "members of another node",
        "error",
        "is not among the members",
        _IMPORTS + "ring_reduce_scatter(data, members=range(per_node))",
    ),
    function(
        _HIERARCHICAL,
        "rank 0 alone goes across",
        "error",
        "Nobody can go on",
        _IMPORTS
        + "mine = ring_reduce_scatter(data, members=inside)\n"
        + "if rank == 0:\n    ring_all_reduce(data[mine], members=across)\nring_all_gather(data, members=inside)",
    ),
)

_INTERVAL = "interval(nodes, node_mtbf_s, checkpoint_s, restart_s)"
GOODPUT = (
    function(
        _INTERVAL,
        "one node's MTBF",
        "failed",
        "a job on n nodes fails n times as often",
        "return math.sqrt(2 * checkpoint_s * node_mtbf_s)",
    ),
    function(
        _INTERVAL, "once a failure", "failed", "half of all work would be lost", "return node_mtbf_s / nodes"
    ),
    function(
        _INTERVAL, "no root", "failed", "the root is missing", "return 2 * checkpoint_s * node_mtbf_s / nodes"
    ),
    function(
        _INTERVAL,
        "as long as a checkpoint",
        "failed",
        "half of the time would go into writing",
        "return checkpoint_s",
    ),
    function(
        _INTERVAL,
        "hours",
        "failed",
        "this is in hours",
        "return math.sqrt(2 * checkpoint_s * node_mtbf_s / nodes) / 3600",
    ),
    function(
        _INTERVAL,
        "divided after the root",
        "failed",
        "before taking the root",
        "return math.sqrt(2 * checkpoint_s * node_mtbf_s) / nodes",
    ),
    function(_INTERVAL, "every minute", "failed", "too often", "return 60.0"),
    function(_INTERVAL, "every month", "failed", "too seldom", "return 30 * 86400.0"),
    function(_INTERVAL, "nothing between", "failed", "longer than nothing", "return 0.0"),
    function(_INTERVAL, "never", "failed", "one number is asked for", "return math.inf"),
)


def _claim(label: str, says: str, verdict: str, number: str, unit: str, left_out: str) -> Wrong:
    source = f'claim = {{"verdict": {verdict}, "number": {number}, "unit": {unit}, "left_out": {left_out}}}'
    return wrong(label, "failed", says, source)


_HIDES = "'it is the latency of one switch, from port to port'"
CLAIM = (
    _claim("believed", "no message between two machines is that fast", "'true'", "1.5", "'us'", _HIDES),
    _claim("too kind", "no message between two machines is that fast", "'misleading'", "1.5", "'us'", _HIDES),
    _claim("no source", "data sheets of switches", "'unsourced'", "1.5", "'us'", _HIDES),
    _claim("the switch", "the time to pass one switch", "'false'", "90", "'ns'", _HIDES),
    _claim("a cable", "two cards joined by a cable", "'false'", "0.7", "'us'", _HIDES),
    _claim("GPU to GPU", "from GPU to GPU", "'false'", "3.5", "'us'", _HIDES),
    _claim("TCP", "TCP through the kernel", "'false'", "20", "'us'", _HIDES),
    _claim("wrong unit", "a latency is in", "'false'", "1.5", "'GB/s'", _HIDES),
    _claim("nothing left out", "what the 100 ns are the latency of", "'false'", "1.5", "'us'", "'the price'"),
    _claim("half empty", "nothing under 'left_out'", "'false'", "1.5", "'us'", "None"),
)
