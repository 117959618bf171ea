"""The ways to train that lesson 10 compares, by name, each with what it needs: a wrapped model and an optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.optim import SGD

from labkit.errors import LabkitError
from labkit.network.compression.few import TopK
from labkit.network.compression.half import Fp16, Plain
from labkit.network.compression.hooks import Method, hook
from labkit.network.compression.local_sgd import LocalSGD
from labkit.network.compression.low_rank import PowerSGD
from labkit.network.compression.one_bit_adam import OneBitAdam
from labkit.network.compression.signs import Sign

Ready = tuple[nn.Module, Any]
Maker = Callable[[nn.Module, float, int], Ready]


def _hooked(state: Callable[[], Method]) -> Maker:
    """DDP with a communication hook, and plain SGD: what error feedback delays, momentum would multiply."""

    def make(model: nn.Module, lr: float, steps: int) -> Ready:
        wrapped = nn.parallel.DistributedDataParallel(model)
        wrapped.register_comm_hook(state(), hook)
        return wrapped, SGD(model.parameters(), lr)

    return make


def _local(model: nn.Module, lr: float, steps: int) -> Ready:
    return model, LocalSGD(SGD(model.parameters(), lr), every=8)


def _adam(model: nn.Module, lr: float, steps: int) -> Ready:
    return model, OneBitAdam(model.parameters(), lr / 100, warm_up=max(1, round(0.2 * steps)), eps=1e-5)


WAYS: dict[str, Maker] = {
    "fp32": _hooked(Plain),
    "fp16": _hooked(Fp16),
    "top 1 %": _hooked(TopK),
    "top 1 %, no feedback": _hooked(lambda: TopK(feedback=False)),
    "sign": _hooked(Sign),
    "PowerSGD": _hooked(PowerSGD),
    "PowerSGD, no feedback": _hooked(lambda: PowerSGD(feedback=False)),
    "local SGD": _local,
    "1-bit Adam": _adam,
}


def prepare(way: str, model: nn.Module, lr: float = 0.3, steps: int = 100) -> Ready:
    """A model and an optimizer for one of the `WAYS`; on all ranks alike.

    Parameters
    ----------
    lr : float
        Of SGD; 1-bit Adam takes a hundredth of it.
    steps : int
        How long training will be: a fifth of it is 1-bit Adam's warm-up.

    Raises
    ------
    LabkitError
        For an unknown way.
    """
    if way not in WAYS:
        raise LabkitError(f"{way!r} is no way to train here: {', '.join(WAYS)}.")
    return WAYS[way](model, lr, steps)
