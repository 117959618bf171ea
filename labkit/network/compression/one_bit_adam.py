"""1-bit Adam: Adam as long as its variance still moves, then momentum of which signs are sent.

Source: Tang et al., "1-bit Adam: Communication Efficient Large-Scale Training with Adam's Convergence Speed",
ICML 2021, algorithm 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from labkit.errors import LabkitError
from labkit.network.compression.residuals import Residuals
from labkit.network.compression.signs import decode, encode, mean
from labkit.network.compression.transport import Transport


class OneBitAdam(torch.optim.Optimizer):
    """Steps from *local* gradients: it averages them itself, so the model must not be wrapped in DDP.

    For ``warm_up`` steps gradients are averaged in full precision, and Adam runs as ever. Then the variance is
    frozen: each rank updates the momentum with its own gradient, and signs of that momentum are exchanged, with
    error feedback. A weight whose variance is still 0 then (it has never had a gradient) stays where it is: there
    is nothing to divide by.

    Parameters
    ----------
    warm_up : int
        Steps in full precision, at least 1; its authors took 15 % of all steps for BERT.
    lr, betas, eps
        As in Adam; both moments are corrected for their start at zero.

    Raises
    ------
    LabkitError
        Without a warm-up step.
    """

    def __init__(
        self,
        parameters: Iterable[torch.nn.Parameter],
        lr: float = 1e-3,
        warm_up: int = 100,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        by: str | None = None,
    ):
        if warm_up < 1:
            raise LabkitError(
                "1-bit Adam without a warm-up has no variance to freeze: warm_up is at least 1."
            )
        super().__init__(parameters, {"lr": lr, "warm_up": warm_up, "betas": betas, "eps": eps})
        self.transport = Transport(by)
        self.residuals = Residuals()
        self.steps = 0
        for parameter in self._all():
            self.transport.spread(parameter.data)
            self.state[parameter] = {
                "momentum": torch.zeros_like(parameter),
                "variance": torch.zeros_like(parameter),
            }

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        loss = None if closure is None else torch.enable_grad()(closure)()
        self.steps += 1
        for group in self.param_groups:
            if self.steps <= group["warm_up"]:
                self._warm_up(group)
            else:
                self._compressed(group)
            self._move(group)
        return loss

    def _warm_up(self, group: dict[str, Any]) -> None:
        first, second = group["betas"]
        gradients = _flat([_gradient(one) for one in group["params"]])
        average = self.transport.sum_(gradients) / self.transport.ranks
        for parameter, gradient in self._parts(group, average):
            self.state[parameter]["momentum"].lerp_(gradient, 1 - first)
            self.state[parameter]["variance"].lerp_(gradient.square(), 1 - second)

    def _compressed(self, group: dict[str, Any]) -> None:
        parameters, first = group["params"], group["betas"][0]
        sizes = [parameter.numel() for parameter in parameters]
        own = _flat([self.state[one]["momentum"].lerp(_gradient(one), 1 - first) for one in parameters])
        corrected = self.residuals.added(own, parameters)
        message = encode(corrected, sizes)
        self.residuals.keep(corrected - decode(message, sizes, own), parameters)
        for parameter, momentum in self._parts(group, mean(self.transport.gather(message), sizes, own)):
            self.state[parameter]["momentum"].copy_(momentum)

    def _move(self, group: dict[str, Any]) -> None:
        first, second = group["betas"]
        seen = min(self.steps, group["warm_up"])  # gradients that the variance has taken in
        for parameter in group["params"]:
            state = self.state[parameter]
            variance = state["variance"] / (1 - second**seen)
            step = state["momentum"] / (1 - first**self.steps) / (variance.sqrt() + group["eps"])
            parameter -= group["lr"] * torch.where(variance > 0, step, 0)

    def _all(self) -> Iterable[torch.nn.Parameter]:
        return (parameter for group in self.param_groups for parameter in group["params"])

    def _parts(self, group: dict[str, Any], flat: torch.Tensor) -> Iterable[tuple[Any, torch.Tensor]]:
        parameters = group["params"]
        parts = flat.split([one.numel() for one in parameters])
        return ((one, part.view_as(one)) for one, part in zip(parameters, parts, strict=True))


def _gradient(parameter: torch.nn.Parameter) -> torch.Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _flat(tensors: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat([one.reshape(-1) for one in tensors])
