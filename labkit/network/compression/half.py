"""Full precision, for comparison, and half of it."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from labkit.network.compression.transport import Transport


class Plain:
    """Gradients as they are: 4 bytes an element (fp32)."""

    def __init__(self, by: str | None = None):
        self.transport = Transport(by)

    def average(self, flat: torch.Tensor, parameters: Sequence[torch.Tensor]) -> torch.Tensor:
        return self.transport.sum_(flat) / self.transport.ranks


class Fp16:
    """Gradients in half precision: 2 bytes an element.

    They are divided by the number of ranks *before* they are converted, so that gradients up to about 65,000 cannot
    overflow, neither on a rank nor in the sum. A sum that does becomes inf or NaN on all ranks alike, which is what
    loss scaling looks for; a rank's share of at most 2^-25 (3e-8) becomes 0.
    """

    def __init__(self, by: str | None = None):
        self.transport = Transport(by)

    def average(self, flat: torch.Tensor, parameters: Sequence[torch.Tensor]) -> torch.Tensor:
        halves = (flat / self.transport.ranks).to(torch.float16)
        return self.transport.sum_(halves).to(flat.dtype)
