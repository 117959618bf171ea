"""One bit an element: the sign, and for each parameter one number, the mean magnitude."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from labkit.network.compression.residuals import Residuals
from labkit.network.compression.transport import Transport

_BITS = 8
_SCALE = torch.float32


class Sign:
    """Signs and a scale: 1 bit an element, and 4 bytes a parameter.

    The scale, mean(abs(g)), is what brings signs closest to g. Messages are gathered and averaged where they
    arrive, (p - 1) n / 8 bytes a rank: right for a few ranks. (For many, 1-bit Adam's authors compress a second
    time, between a reduce-scatter and an all-gather.)
    Source: Karimireddy et al., ICML 2019, algorithm 1 with the scaled sign.

    Parameters
    ----------
    feedback : bool
        Keep what the signs left out for the next step. Without it, it is lost.
    """

    def __init__(self, feedback: bool = True, by: str | None = None):
        self.feedback = feedback
        self.transport = Transport(by)
        self.residuals = Residuals()

    def average(self, flat: torch.Tensor, parameters: Sequence[torch.Tensor]) -> torch.Tensor:
        sizes = [parameter.numel() for parameter in parameters]
        corrected = self.residuals.added(flat, parameters)
        message = encode(corrected, sizes)
        if self.feedback:
            self.residuals.keep(corrected - decode(message, sizes, flat), parameters)
        return mean(self.transport.gather(message), sizes, flat)


def encode(values: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """The message, uint8: an fp32 scale for each part of ``values``, then all signs, packed."""
    parts = values.split(list(sizes))
    scales = [part.abs().sum() / max(1, len(part)) for part in parts]
    numbers = torch.stack(scales).to(_SCALE) if scales else values.new_empty(0, dtype=_SCALE)
    return torch.cat([numbers.view(torch.uint8), pack_signs(values)])


def decode(message: torch.Tensor, sizes: Sequence[int], like: torch.Tensor) -> torch.Tensor:
    """Scale times sign for every element."""
    head = _SCALE.itemsize * len(sizes)
    scales = message[:head].clone().view(_SCALE).to(like.dtype)  # a view has to start at its type's size
    counts = torch.tensor(sizes, dtype=torch.int64, device=message.device)
    return torch.repeat_interleave(scales, counts) * unpack_signs(message[head:], sum(sizes), like.dtype)


def mean(messages: torch.Tensor, sizes: Sequence[int], like: torch.Tensor) -> torch.Tensor:
    """Of what all ranks' messages, one a row, mean: added in the order of ranks, so that all get the same bits."""
    total = torch.zeros_like(like)
    for message in messages:
        total += decode(message, sizes, like)
    return total / len(messages)


def pack_signs(values: torch.Tensor) -> torch.Tensor:
    """Eight signs a byte, the first in the lowest bit: 1 where a value is not negative. Shape (ceil(n / 8),), uint8."""
    bits = torch.zeros(-(-len(values) // _BITS) * _BITS, dtype=torch.uint8, device=values.device)
    bits[: len(values)] = values >= 0
    return (bits.view(-1, _BITS) << _places(bits)).sum(1, dtype=torch.uint8)


def unpack_signs(packed: torch.Tensor, count: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """The first ``count`` signs of packed bytes: +1 and -1."""
    bits = (packed.unsqueeze(1) >> _places(packed)) & 1
    return bits.flatten()[:count].to(dtype) * 2 - 1


def _places(like: torch.Tensor) -> torch.Tensor:
    return torch.arange(_BITS, dtype=torch.uint8, device=like.device)
