"""The operations that are measured: how each is started, by torch and by labkit, and what must come out.

Every operation has buffers of one rank, filled with small whole numbers so that any order of adding gives the
same sum in every type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from labkit.errors import LabkitError
from labkit.network import collectives as ours
from labkit.network.p2p import exchange

_PATTERN = 5  # values are 0 to 4: sums of up to 64 ranks are exact in every float with 8 bits of significand


@dataclass(frozen=True)
class Buffers:
    """A rank's data: what it sends, and what it receives into (the same memory in place)."""

    sent: torch.Tensor
    received: torch.Tensor


@dataclass(frozen=True)
class Implementation:
    """One way to do an operation. ``run(buffers)`` does it once; ``model`` is its cost, by whose algorithm."""

    operation: str
    name: str
    in_place: bool
    run: Callable[[Buffers], Any]
    model: str


def pattern(count: int, rank: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """What a rank brings: element i is (i + rank) mod 5."""
    return ((torch.arange(count, device=device) + rank) % _PATTERN).to(dtype)


def buffers(one: Implementation, count: int, dtype: torch.dtype, device: torch.device) -> Buffers:
    """Filled buffers for ``count`` elements of the whole message, a multiple of the ranks."""
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = pattern(count, rank, dtype, device)
    if one.operation == "all_gather":
        part = ours.chunks(count, size)[rank]
        whole = torch.zeros(count, dtype=dtype, device=device)
        whole[part] = mine[part]
        return Buffers(whole[part] if one.in_place else mine[part].clone(), whole)
    if one.in_place:
        return Buffers(mine, mine)
    received = count // size if one.operation == "reduce_scatter" else count
    return Buffers(mine, torch.zeros(received, dtype=dtype, device=device))


def wrong(one: Implementation, result: Buffers, count: int) -> int:
    """How many elements of this rank are not what they must be."""
    rank, size = dist.get_rank(), dist.get_world_size()
    got = result.received
    kind, device = got.dtype, got.device
    every = [pattern(count, r, kind, device) for r in range(size)]
    parts = ours.chunks(count, size)
    if one.operation in ("all_reduce", "reduce_scatter"):
        wanted = torch.stack(every).sum(0, dtype=kind)
        if one.operation == "reduce_scatter":
            wanted, got = wanted[parts[rank]], got[parts[rank]] if one.in_place else got
    elif one.operation == "all_gather":
        wanted = torch.cat([every[r][parts[r]] for r in range(size)])
    elif one.operation == "all_to_all":
        wanted = torch.cat([every[r][parts[rank]] for r in range(size)])
    else:
        wanted = every[0] if one.operation == "broadcast" else every[rank - 1]
    return int((got != wanted).sum())


def _pieces(tensor: torch.Tensor) -> list[torch.Tensor]:
    return list(tensor.chunk(dist.get_world_size()))


def _to_the_right(data: Buffers) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    if size > 1:
        exchange(data.sent, (rank + 1) % size, data.received, (rank - 1) % size)
    else:
        data.received.copy_(data.sent)


def _torch_to_the_right(data: Buffers) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    if size == 1:
        data.received.copy_(data.sent)
        return
    pair = [
        dist.P2POp(dist.isend, data.sent, (rank + 1) % size),
        dist.P2POp(dist.irecv, data.received, (rank - 1) % size),
    ]
    for work in dist.batch_isend_irecv(pair):
        work.wait()


# torch 2.13 calls them *_single; both names do the same
_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor

IMPLEMENTATIONS = (
    Implementation("all_reduce", "torch", True, lambda b: dist.all_reduce(b.sent), "ring_all_reduce"),
    Implementation("all_reduce", "ring", True, lambda b: ours.ring_all_reduce(b.sent), "ring_all_reduce"),
    Implementation(
        "all_reduce",
        "halving-doubling",
        True,
        lambda b: ours.recursive_halving_doubling(b.sent),
        "recursive_halving_doubling",
    ),
    Implementation(
        "all_reduce", "tree", True, lambda b: ours.binomial_all_reduce(b.sent), "binomial_all_reduce"
    ),
    Implementation("all_gather", "torch", False, lambda b: _gather(b.received, b.sent), "ring_all_gather"),
    Implementation("all_gather", "ring", True, lambda b: ours.ring_all_gather(b.received), "ring_all_gather"),
    Implementation(
        "reduce_scatter", "torch", False, lambda b: _scatter(b.received, b.sent), "ring_reduce_scatter"
    ),
    Implementation(
        "reduce_scatter", "ring", True, lambda b: ours.ring_reduce_scatter(b.sent), "ring_reduce_scatter"
    ),
    Implementation("broadcast", "torch", True, lambda b: dist.broadcast(b.sent, 0), "binomial_broadcast"),
    Implementation(
        "broadcast", "binomial", True, lambda b: ours.binomial_broadcast(b.sent), "binomial_broadcast"
    ),
    Implementation(
        "all_to_all",
        "torch",
        False,
        lambda b: dist.all_to_all_single(b.received, b.sent),
        "pairwise_all_to_all",
    ),
    Implementation(
        "all_to_all",
        "pairwise",
        False,
        lambda b: ours.pairwise_all_to_all(_pieces(b.received), _pieces(b.sent)),
        "pairwise_all_to_all",
    ),
    Implementation("send_recv", "torch", False, _torch_to_the_right, "send_recv"),
    Implementation("send_recv", "labkit", False, _to_the_right, "send_recv"),
)


def chosen(operations: list[str] | None, by: str) -> list[Implementation]:
    """Those asked for; ``by`` is ``"both"``, ``"torch"`` or ``"labkit"``.

    Raises
    ------
    LabkitError
        For an operation that is not measured.
    """
    known = list(dict.fromkeys(one.operation for one in IMPLEMENTATIONS))
    if unknown := set(operations or ()) - set(known):
        raise LabkitError(f"{min(unknown)!r} is not measured: choose from {', '.join(known)}.")
    return [
        one
        for one in IMPLEMENTATIONS
        if one.operation in (operations or known)
        and by in ("both", "torch" if one.name == "torch" else "labkit")
    ]
