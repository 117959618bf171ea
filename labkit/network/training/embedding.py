"""An embedding table spread over the ranks, as recommenders do whose tables fit no single GPU.

Each rank owns a block of rows. A lookup is three exchanges of everybody with everybody: how many rows are
wanted, which ones, and the rows themselves; backward sends the rows' gradients to their owners.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from labkit.errors import LabkitError
from labkit.network.collectives import chunks, pairwise_all_to_all
from labkit.network.p2p import endpoint


class ShardedEmbedding(nn.Module):
    """``nn.Embedding`` of which every rank holds a block of rows; each rank looks up ids of its own.

    Gradients are divided by the world size, as data parallelism divides the rest of the model's, so that one
    loss serves both.

    Parameters
    ----------
    table : tensor, (rows, features)
        The whole table, the same on all ranks; this rank's block is copied out of it.
    """

    def __init__(self, table: torch.Tensor):
        super().__init__()
        here = endpoint()
        self.rows = len(table)
        self.blocks = chunks(self.rows, here.size)
        self.weight = nn.Parameter(table.detach()[self.blocks[here.rank]].clone())

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Rows for ``ids`` (int64, any shape, also empty): shape (..., features).

        Raises
        ------
        LabkitError
            For an id outside of the table.
        """
        flat = ids.reshape(-1)
        if len(flat) and not 0 <= int(flat.min()) <= int(flat.max()) < self.rows:
            raise LabkitError(
                f"Ids reach from {int(flat.min())} to {int(flat.max())}, the table from 0 to {self.rows - 1}."
            )
        rows = _Lookup.apply(self.weight, flat, self.blocks)
        return rows.reshape(*ids.shape, self.weight.shape[1])


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, weight: torch.Tensor, ids: torch.Tensor, blocks: list[slice]) -> torch.Tensor:
        here = endpoint()
        starts = torch.tensor([block.start for block in blocks[1:]], device=ids.device)
        owner = torch.bucketize(ids, starts, right=True)
        order = torch.argsort(owner, stable=True)
        wanted = torch.bincount(owner, minlength=here.size)
        asked = torch.empty_like(wanted)
        pairwise_all_to_all(list(asked.split(1)), list(wanted.split(1)))
        context.mine, context.theirs = wanted.tolist(), asked.tolist()
        asked_ids = _exchanged(ids[order], context.mine, context.theirs) - blocks[here.rank].start
        rows = _exchanged(weight.detach()[asked_ids], context.theirs, context.mine)
        context.save_for_backward(order, asked_ids)
        context.shape = weight.shape
        result = torch.empty_like(rows)
        result[order] = rows
        return result

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        order, asked_ids = context.saved_tensors
        arrived = _exchanged(gradients[0][order], context.mine, context.theirs)
        total = arrived.new_zeros(context.shape)
        total.index_add_(0, asked_ids, arrived)
        return total / endpoint().size, None, None


def _exchanged(data: torch.Tensor, leaving: list[int], coming: list[int]) -> torch.Tensor:
    """Blocks of rows, one a rank, sent to them; and those that come from them, in order of rank."""
    received = data.new_empty(sum(coming), *data.shape[1:])
    pairwise_all_to_all(list(received.split(coming)), list(data.contiguous().split(leaving)))
    return received
