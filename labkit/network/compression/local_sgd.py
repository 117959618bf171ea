"""Local SGD: ranks train alone, and average their weights every few steps.

Source: Stich, "Local SGD Converges Fast and Communicates Little", ICLR 2019.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from labkit.errors import LabkitError
from labkit.network.compression.transport import Transport


class LocalSGD:
    """Wraps an optimizer of a model that nobody else keeps in step (no DDP).

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        Its own state, such as momentum, stays local.
    every : int
        Steps from average to average: 1 is what DDP does with plain SGD, at the same volume.

    Raises
    ------
    LabkitError
        For ``every`` below 1.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, every: int = 8, by: str | None = None):
        if every < 1:
            raise LabkitError(f"LocalSGD(every={every!r}): weights are averaged every 1, 2, 3 ... steps.")
        self.optimizer, self.every = optimizer, every
        self.transport = Transport(by)
        self.steps = 0
        for parameter in self._parameters():
            self.transport.spread(parameter.data)

    def zero_grad(self) -> None:
        self.optimizer.zero_grad()

    def step(self) -> None:
        """A step of the optimizer and, when it is time, the average."""
        self.optimizer.step()
        self.steps += 1
        if self.steps % self.every == 0:
            self._average()

    def finish(self) -> None:
        """Average what the last, incomplete round has left; call it when training ends."""
        if self.steps % self.every:
            self._average()

    @torch.no_grad()
    def _average(self) -> None:
        parameters = list(self._parameters())
        flat = torch.cat([one.reshape(-1) for one in parameters])
        mean = self.transport.sum_(flat) / self.transport.ranks
        parts = mean.split([one.numel() for one in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.copy_(part.view_as(parameter))

    def _parameters(self) -> Iterable[Any]:
        return (parameter for group in self.optimizer.param_groups for parameter in group["params"])
