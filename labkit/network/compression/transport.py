"""What compression asks of the network: the sum of all ranks' tensors, everybody's tensor, rank 0's tensor."""

from __future__ import annotations

import torch
import torch.distributed as dist

from labkit.network.collectives import binomial_broadcast, ring_all_gather, ring_all_reduce
from labkit.network.context import inside_rank
from labkit.network.p2p import endpoint


class Transport:
    """Collectives of labkit's own or torch's.

    Parameters
    ----------
    by : {"labkit", "torch"}, optional
        ``"labkit"`` counts payload and passes the emulated link; it is the default inside ``labkit.ranks`` and
        ``labkit.cluster`` on gloo. ``"torch"`` is the default on NCCL and under a plain torchrun.
    """

    def __init__(self, by: str | None = None):
        own = inside_rank() and dist.get_backend() == "gloo"
        self.by = by or ("labkit" if own else "torch")

    @property
    def ranks(self) -> int:
        return endpoint().size if self.by == "labkit" else dist.get_world_size()

    @property
    def rank(self) -> int:
        return endpoint().rank if self.by == "labkit" else dist.get_rank()

    def sum_(self, tensor: torch.Tensor) -> torch.Tensor:
        """All ranks' tensors added up, in place; the same bits on every rank."""
        if self.by == "labkit":
            ring_all_reduce(tensor)
        else:
            dist.all_reduce(tensor)
        return tensor

    def gather(self, message: torch.Tensor) -> torch.Tensor:
        """Everybody's message, one a row in the order of ranks; all messages are of one size."""
        rows = message.new_empty((self.ranks, message.numel()))
        if self.by == "labkit":
            rows[self.rank] = message
            ring_all_gather(rows)
        else:
            dist.all_gather(list(rows.unbind()), message)
        return rows

    def spread(self, tensor: torch.Tensor) -> None:
        """Rank 0's tensor to all, in place."""
        if self.by == "labkit":
            binomial_broadcast(tensor)
        else:
            dist.broadcast(tensor, 0)
