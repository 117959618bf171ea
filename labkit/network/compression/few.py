"""Only the largest elements of a gradient, and where they are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from labkit.errors import LabkitError
from labkit.network.compression.residuals import Residuals
from labkit.network.compression.transport import Transport


class TopK:
    """The share ``ratio`` of a bucket's elements that is largest: 8 bytes each, a position and a value.

    Every rank chooses its own, so positions differ and messages are gathered, not summed: around a ring a rank sends
    p - 1 messages, its own and those that it passes on. Source: Stich et al., "Sparsified SGD with Memory", NeurIPS
    2018.

    Parameters
    ----------
    ratio : float
        Above 0, at most 1. At least one element is sent.
    feedback : bool
        Keep the others for later. Without it they are lost.

    Raises
    ------
    LabkitError
        For another ratio.
    """

    def __init__(self, ratio: float = 0.01, feedback: bool = True, by: str | None = None):
        if not 0 < ratio <= 1:
            raise LabkitError(f"TopK({ratio!r}): the share of elements to send is above 0 and at most 1.")
        self.ratio, self.feedback = ratio, feedback
        self.transport = Transport(by)
        self.residuals = Residuals()

    def average(self, flat: torch.Tensor, parameters: Sequence[torch.Tensor]) -> torch.Tensor:
        corrected = self.residuals.added(flat, parameters)
        message = largest(corrected, math.ceil(self.ratio * len(corrected)))
        if self.feedback:
            self.residuals.keep(corrected - scattered([message], corrected), parameters)
        everybody = self.transport.gather(message)
        return scattered(everybody.unbind(), corrected) / len(everybody)


def largest(values: torch.Tensor, count: int) -> torch.Tensor:
    """The ``count`` elements of largest magnitude as bytes: int32 positions, then fp32 values."""
    places = torch.topk(values.abs(), count, sorted=False).indices
    chosen = values[places].to(torch.float32)
    return torch.cat([places.to(torch.int32).view(torch.uint8), chosen.view(torch.uint8)])


def scattered(messages: Sequence[torch.Tensor], like: torch.Tensor) -> torch.Tensor:
    """The elements of some messages, added up where they belong; zeros elsewhere."""
    whole = torch.zeros_like(like)
    for message in messages:
        half = len(message) // 2
        # clones: a view has to start at its type's size
        places = message[:half].clone().view(torch.int32).long()
        whole.index_add_(0, places, message[half:].clone().view(torch.float32).to(like.dtype))
    return whole
