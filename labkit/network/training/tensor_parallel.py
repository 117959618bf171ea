"""A linear layer cut over the ranks, by columns or by rows, so that no rank holds all of it.

y = x W: cut by columns, every rank makes a part of y from the whole x; cut by rows, every rank makes a share
of the whole y from its part of x, and the shares are summed. A column layer feeding a row layer needs one
all-reduce forward and one backward. Source: Shoeybi et al., "Megatron-LM", 2019, section 3.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from labkit.network.collectives import chunks, ring_all_gather, ring_all_reduce
from labkit.network.p2p import endpoint


class _ToEverybody(torch.autograd.Function):
    """All ranks use the same input: its gradient is the sum of theirs."""

    @staticmethod
    def forward(context: Any, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.view_as(tensor)

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return _summed(gradients[0])


class _FromEverybody(torch.autograd.Function):
    """The output is the sum of all ranks': each one's gradient is the whole one."""

    @staticmethod
    def forward(context: Any, tensor: torch.Tensor) -> torch.Tensor:
        return _summed(tensor)

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return gradients[0]


class _SideBySide(torch.autograd.Function):
    """The outputs of all ranks beside each other: each one's gradient is its own columns."""

    @staticmethod
    def forward(context: Any, tensor: torch.Tensor, columns: int) -> torch.Tensor:
        here = endpoint()
        context.part = chunks(columns, here.size)[here.rank]
        return _gathered(tensor, columns)

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradients[0][..., context.part].contiguous(), None


class ColumnParallelLinear(nn.Module):
    """``nn.Linear`` of which every rank holds some output features.

    Parameters
    ----------
    linear : nn.Linear
        The whole layer, the same on all ranks; this rank's part is copied out of it.
    gather : bool
        Return all output features on every rank, instead of this rank's own.
    """

    def __init__(self, linear: nn.Linear, gather: bool = False):
        super().__init__()
        here = endpoint()
        part = chunks(linear.out_features, here.size)[here.rank]
        self.features, self.gather = linear.out_features, gather
        self.weight = nn.Parameter(linear.weight.detach()[part].clone())
        self.bias = None if linear.bias is None else nn.Parameter(linear.bias.detach()[part].clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        own = functional.linear(_ToEverybody.apply(x), self.weight, self.bias)
        return _SideBySide.apply(own, self.features) if self.gather else own


class RowParallelLinear(nn.Module):
    """``nn.Linear`` of which every rank holds some input features; takes this rank's part of the input."""

    def __init__(self, linear: nn.Linear):
        super().__init__()
        here = endpoint()
        self.part = chunks(linear.in_features, here.size)[here.rank]
        self.weight = nn.Parameter(linear.weight.detach()[:, self.part].clone())
        self.bias = None if linear.bias is None else nn.Parameter(linear.bias.detach().clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        whole = _FromEverybody.apply(functional.linear(x, self.weight))
        return whole if self.bias is None else whole + self.bias  # once, not once a rank


def _summed(tensor: torch.Tensor) -> torch.Tensor:
    total = tensor.detach().clone(memory_format=torch.contiguous_format)
    ring_all_reduce(total)
    return total


def _gathered(tensor: torch.Tensor, columns: int) -> torch.Tensor:
    """All ranks' columns; shorter parts are padded, so that every rank's place begins at a chunk."""
    here = endpoint()
    parts = chunks(columns, here.size)
    widest = parts[0].stop
    rows = tensor.numel() // max(1, tensor.shape[-1])
    places = tensor.new_zeros(here.size, widest, rows)
    places[here.rank, : tensor.shape[-1]] = tensor.reshape(rows, -1).T
    ring_all_gather(places)
    kept = [places[rank, : part.stop - part.start] for rank, part in enumerate(parts)]
    return torch.cat(kept).T.reshape(*tensor.shape[:-1], columns).contiguous()
