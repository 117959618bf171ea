"""Collectives, made from sends and receives alone.

Call them inside ``labkit.ranks(n).run(...)``, by all ranks, with tensors of one size and type. Data is cut
into p chunks, one a rank; where the number of elements does not divide, the first chunks are one longer.
Each function carries its cost in the alpha-beta model: ``ring_all_reduce.cost(bytes, ranks, alpha, beta)``
is the seconds it takes when a message of n bytes takes alpha + n / beta (arithmetic left out).
Sources: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH" (2005);
Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations" (2009).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import pairwise
from typing import Any

from labkit.errors import LabkitError
from labkit.network import collectives_cost as cost
from labkit.network.p2p import OPERATIONS, endpoint, flat


class Collective:
    """A collective: call it like the function it is. ``kind`` is what it computes, as torch names it."""

    def __init__(self, function: Callable[..., Any], kind: str, model: Callable[..., float]):
        wraps(function)(self)
        self._function = function
        self.kind = kind
        self.cost = model
        self.name = function.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with endpoint().noting(self.kind):
            return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<collective {self.name}: {self.cost.__doc__}>"

    def __reduce__(self) -> str:
        return self.name  # travels to ranks by its name in this module


def _collective(kind: str, model: Callable[..., float]) -> Callable[[Callable[..., Any]], Collective]:
    return lambda function: Collective(function, kind, model)


def chunks(count: int, ranks: int) -> list[slice]:
    """Where each rank's part of ``count`` elements lies."""
    size, longer = divmod(count, ranks)
    ends = [size * rank + min(rank, longer) for rank in range(ranks + 1)]
    return [slice(*pair) for pair in pairwise(ends)]


@_collective("reduce_scatter", cost.ring_half)
def ring_reduce_scatter(tensor: Any, op: str = "sum", members: Sequence[int] | None = None) -> slice:
    """Reduce over all ranks; each ends with its own chunk complete, and the rest as scratch.

    In p - 1 steps every rank sends one chunk to its right neighbour and adds what comes from the left. A
    chunk starts right of its owner and, having passed everybody, ends there.

    Parameters
    ----------
    tensor : contiguous tensor, changed in place
    op : str
        ``"sum"``, ``"product"``, ``"min"``, ``"max"``, ``"band"``, ``"bor"``, ``"bxor"``.
    members : sequence of int, optional
        The ranks that take part, in ring order; all of them by default.

    Returns
    -------
    slice
        Where this rank's chunk lies in ``tensor.reshape(-1)``.
    """
    here, ring, me = _place(members)
    data = flat(tensor)
    part = chunks(len(data), len(ring))
    right, left = ring[(me + 1) % len(ring)], ring[me - 1]
    for step in range(len(ring) - 1):
        outgoing = data[part[(me - step - 1) % len(ring)]]
        mine = data[part[(me - step - 2) % len(ring)]]
        coming = here.scratch(mine)
        here.exchange(outgoing, right, coming, left)
        here.combine(_known(op), mine, coming)
    return part[me]


@_collective("all_gather", cost.ring_half)
def ring_all_gather(tensor: Any, members: Sequence[int] | None = None) -> None:
    """Every rank brings its own chunk; all end with all chunks.

    In p - 1 steps every rank passes on, to the right, the chunk that it received last.
    """
    here, ring, me = _place(members)
    data = flat(tensor)
    part = chunks(len(data), len(ring))
    right, left = ring[(me + 1) % len(ring)], ring[me - 1]
    for step in range(len(ring) - 1):
        here.exchange(
            data[part[(me - step) % len(ring)]], right, data[part[(me - step - 1) % len(ring)]], left
        )


@_collective("all_reduce", cost.ring)
def ring_all_reduce(tensor: Any, op: str = "sum", members: Sequence[int] | None = None) -> None:
    """Reduce-scatter, then all-gather: each rank sends 2 (p - 1) / p of the data, the least possible."""
    ring_reduce_scatter._function(tensor, op, members)
    ring_all_gather._function(tensor, members)


@_collective("broadcast", cost.binomial)
def binomial_broadcast(tensor: Any, root: int = 0, members: Sequence[int] | None = None) -> None:
    """The root's data to everybody: those who have it double in every step."""
    here, ring, me = _place(members)
    data = flat(tensor)
    size = len(ring)
    mine = (me - _index(ring, root)) % size  # counted from the root
    reach = 1
    while reach < size:
        partner = (mine ^ reach) if mine < 2 * reach else size
        if partner < size:
            other = ring[(partner + _index(ring, root)) % size]
            (here.isend if mine < reach else here.irecv)(data, other).wait()
        reach *= 2


@_collective("reduce", cost.binomial)
def binomial_reduce(
    tensor: Any, op: str = "sum", root: int = 0, members: Sequence[int] | None = None
) -> None:
    """Everybody's data, reduced, to the root: those who still hold a share halve in every step.

    On the other ranks the tensor is left with partial results.
    """
    here, ring, me = _place(members)
    data = flat(tensor)
    size = len(ring)
    mine = (me - _index(ring, root)) % size
    reach = 1
    while reach < size:
        partner = mine ^ reach
        if partner < size:
            other = ring[(partner + _index(ring, root)) % size]
            if mine & reach:
                here.isend(data, other).wait()
                return
            coming = here.scratch(data)
            here.irecv(coming, other).wait()
            here.combine(_known(op), data, coming)
        reach *= 2


@_collective("all_reduce", cost.binomial_all_reduce)
def binomial_all_reduce(
    tensor: Any, op: str = "sum", root: int = 0, members: Sequence[int] | None = None
) -> None:
    """All-reduce in 2 ceil(log2 p) steps, each with all of the data: reduced to the root, then broadcast."""
    binomial_reduce._function(tensor, op, root, members)
    binomial_broadcast._function(tensor, root, members)


@_collective("all_reduce", cost.halving_doubling)
def recursive_halving_doubling(tensor: Any, op: str = "sum", members: Sequence[int] | None = None) -> None:
    """All-reduce in about 2 log2(p) steps with no more bytes than the ring, when p is a power of two.

    Partners swap halves of what they still share, at half the distance each time, then gather back. With
    another p, the ranks beyond the power of two hand their data to a partner first and get the result last.
    """
    here, ring, me = _place(members)
    data = flat(tensor)
    core = 1 << (len(ring).bit_length() - 1)
    if me >= core:
        here.isend(data, ring[me - core]).wait()
        here.irecv(data, ring[me - core]).wait()
        return
    outsider = ring[me + core] if me + core < len(ring) else None
    if outsider is not None:
        coming = here.scratch(data)
        here.irecv(coming, outsider).wait()
        here.combine(_known(op), data, coming)
    _halve_and_double(data, _known(op), ring, me, core)
    if outsider is not None:
        here.isend(data, outsider).wait()


def _halve_and_double(data: Any, op: str, ring: Sequence[int], me: int, core: int) -> None:
    here = endpoint()
    part = chunks(len(data), core)
    low, high, distance = 0, core, core // 2
    swaps = []
    while distance:
        middle = low + distance
        upper = bool(me & distance)
        kept, given = ((middle, high), (low, middle)) if upper else ((low, middle), (middle, high))
        mine = data[_span(part, kept)]
        coming = here.scratch(mine)
        here.exchange(data[_span(part, given)], ring[me ^ distance], coming, ring[me ^ distance])
        here.combine(op, mine, coming)
        swaps.append((distance, kept, given))
        (low, high), distance = kept, distance // 2
    for distance, kept, given in reversed(swaps):
        partner = ring[me ^ distance]
        here.exchange(data[_span(part, kept)], partner, data[_span(part, given)], partner)


@_collective("all_reduce", cost.hierarchical)
def hierarchical_all_reduce(tensor: Any, node_size: int, op: str = "sum") -> None:
    """All-reduce for nodes of ``node_size`` ranks each, joined by slower links.

    Reduce-scatter inside the node, all-reduce of each chunk among the ranks with the same place in their
    nodes, all-gather inside the node: each rank sends only 1 / node_size of the data over the slow link.
    When the last node is smaller, the first rank of each node speaks for it instead.
    """
    here = endpoint()
    if not 1 <= node_size <= here.size:
        raise LabkitError(f"node_size={node_size} is not between 1 and the {here.size} ranks there are.")
    first = here.rank - here.rank % node_size
    node = range(first, min(first + node_size, here.size))
    if here.size % node_size:
        binomial_reduce._function(tensor, op, first, node)
        if here.rank == first:
            ring_all_reduce._function(tensor, op, range(0, here.size, node_size))
        binomial_broadcast._function(tensor, first, node)
        return
    own = ring_reduce_scatter._function(tensor, op, node)
    across = range(here.rank % node_size, here.size, node_size)
    ring_all_reduce._function(flat(tensor)[own], op, across)
    ring_all_gather._function(tensor, node)


@_collective("all_to_all", cost.pairwise)
def pairwise_all_to_all(received: Sequence[Any], sent: Sequence[Any]) -> None:
    """``sent[k]`` goes to rank k, ``received[k]`` comes from it; sizes may differ.

    In step s everybody sends to the rank s to its right and receives from the one s to its left.
    """
    here = endpoint()
    if not len(received) == len(sent) == here.size:
        raise LabkitError(f"all_to_all needs {here.size} tensors each way, one a rank, its own included.")
    received[here.rank][...] = sent[here.rank]
    for step in range(1, here.size):
        to, source = (here.rank + step) % here.size, (here.rank - step) % here.size
        here.exchange(flat(sent[to]), to, flat(received[source]), source)


COLLECTIVES = (
    ring_reduce_scatter,
    ring_all_gather,
    ring_all_reduce,
    binomial_broadcast,
    binomial_reduce,
    binomial_all_reduce,
    recursive_halving_doubling,
    hierarchical_all_reduce,
    pairwise_all_to_all,
)


def _place(members: Sequence[int] | None) -> tuple[Any, Sequence[int], int]:
    """The endpoint, the ranks that take part, and this one's index among them."""
    here = endpoint()
    ring = range(here.size) if members is None else members
    return here, ring, _index(ring, here.rank)


def _index(ring: Sequence[int], rank: int) -> int:
    try:
        return ring.index(rank)
    except ValueError:
        raise LabkitError(f"Rank {rank} is not among the members {list(ring)} of this collective.") from None


def _span(part: Sequence[slice], bounds: tuple[int, int]) -> slice:
    return slice(part[bounds[0]].start, part[bounds[1] - 1].stop)


def _known(op: str) -> str:
    if op not in OPERATIONS:
        raise LabkitError(f"{op!r} is no reduction: use {', '.join(OPERATIONS)}.")
    return op
