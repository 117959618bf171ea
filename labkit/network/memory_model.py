"""What training keeps in memory: weights, gradients, optimizer, activations; by precision and ZeRO stage.

Modelled. The first three follow from the number of parameters: with mixed precision and Adam 2 + 2 + 12 bytes
a parameter (weights and gradients in 16 bits; weights, momentum and variance in 32), of which ZeRO stage 1
divides the optimizer's part by the ranks, stage 2 also the gradients, stage 3 also the weights. Source:
Rajbhandari et al., "ZeRO", 2020, section 3. Activations of a transformer layer: Korthikanti et al., "Reducing
Activation Recomputation in Large Transformer Models", 2022, equation 2. Fragmentation, buffers of
communication and of libraries come on top.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.units import show_bytes

# bytes a parameter: weights, gradients, and the 32-bit copy of the weights that 16-bit training keeps
PRECISIONS = {"fp32": (4, 4, 0), "mixed": (2, 2, 4), "bf16": (2, 2, 0), "fp64": (8, 8, 0)}
OPTIMIZERS = {"sgd": 0, "momentum": 1, "adam": 2}  # numbers a parameter that the optimizer remembers
_STAGES = {"optimizer": 1, "gradients": 2, "weights": 3}  # from which ZeRO stage on it is divided


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes on one rank: modelled, before anything a library or allocator adds."""

    weights: float
    gradients: float
    optimizer: float
    activations: float
    precision: str
    optimizer_name: str
    zero_stage: int
    ranks: int

    @property
    def total(self) -> float:
        return self.weights + self.gradients + self.optimizer + self.activations

    def fits(self, capacity: float) -> bool:
        """Whether it is no more than ``capacity`` bytes."""
        return self.total <= capacity

    def to_dict(self) -> dict[str, Any]:
        return {"label": "modelled", **asdict(self), "total": self.total}

    def __repr__(self) -> str:
        return (
            f"TrainingMemory({show_bytes(self.total)} a rank: weights {show_bytes(self.weights)}, gradients "
            f"{show_bytes(self.gradients)}, optimizer {show_bytes(self.optimizer)}, activations "
            f"{show_bytes(self.activations)}; {self.precision}, {self.optimizer_name}, ZeRO {self.zero_stage} on "
            f"{self.ranks} ranks, modelled)"
        )

    def _repr_html_(self) -> str:
        from labkit.hardware.html import facts_table

        parts = ("weights", "gradients", "optimizer", "activations", "total")
        return facts_table({name: show_bytes(getattr(self, name)) for name in parts}, repr(self))


def training_memory(
    parameters: float,
    precision: str = "mixed",
    optimizer: str = "adam",
    zero_stage: int = 0,
    ranks: int = 1,
    activations: float = 0.0,
) -> TrainingMemory:
    """Memory of one rank that trains ``parameters`` parameters with data parallelism over ``ranks``.

    Parameters
    ----------
    precision : str
        ``"fp32"``; ``"mixed"``: 16-bit weights and gradients with 32-bit copies in the optimizer; ``"bf16"``:
        everything in 16 bits, without copies; ``"fp64"``.
    optimizer : str
        ``"sgd"``, ``"momentum"`` or ``"adam"``.
    zero_stage : int
        0 to 3; FSDP with full sharding is 3.
    activations : float
        Bytes, from `transformer_activations` or `measured_memory`.

    Raises
    ------
    LabkitError
        For an unknown precision, optimizer or stage, and for no ranks.
    """
    if precision not in PRECISIONS or optimizer not in OPTIMIZERS:
        known = ", ".join([*PRECISIONS, *OPTIMIZERS])
        raise LabkitError(f"{precision!r} with {optimizer!r} is not modelled: choose from {known}.")
    if zero_stage not in range(4) or ranks < 1 or parameters < 0:
        raise LabkitError("ZeRO has stages 0 to 3, on at least one rank, of zero parameters or more.")
    weight, gradient, copy = PRECISIONS[precision]
    number = 4 if copy else weight  # what the optimizer remembers is as precise as what it updates
    whole = {
        "weights": weight * parameters,
        "gradients": gradient * parameters,
        "optimizer": (copy + number * OPTIMIZERS[optimizer]) * parameters,
    }
    parts = {name: size / (ranks if zero_stage >= _STAGES[name] else 1) for name, size in whole.items()}
    return TrainingMemory(
        **parts,
        activations=activations,
        precision=precision,
        optimizer_name=optimizer,
        zero_stage=zero_stage,
        ranks=ranks,
    )


def least_stage(memory: TrainingMemory, capacity: float) -> TrainingMemory | None:
    """The same training with the lowest ZeRO stage that fits into ``capacity`` bytes; None when none does.

    ``memory`` is that of stage 0.
    """
    if memory.zero_stage != 0:
        raise LabkitError("Start from the memory of ZeRO stage 0: training_memory(..., zero_stage=0).")
    stages = [memory]
    for stage in (1, 2, 3):
        divided = {
            name: getattr(memory, name) / memory.ranks for name, least in _STAGES.items() if stage >= least
        }
        stages.append(replace(memory, zero_stage=stage, **divided))
    return next((one for one in stages if one.fits(capacity)), None)


def transformer_activations(
    layers: int,
    hidden: int,
    heads: int,
    sequence: int,
    batch: int,
    tensor_parallel: int = 1,
    checkpointed: bool = False,
) -> float:
    """Bytes of activations kept for backward, 16-bit, dropout included, attention not fused.

    s b h (10 + 24/t + 5 a s / (h t)) a layer; 2 s b h a layer when only each layer's input is kept
    ("checkpointed") and the rest computed again.
    """
    one = sequence * batch * hidden
    if checkpointed:
        return float(layers * 2 * one)
    return layers * one * (10 + 24 / tensor_parallel + 5 * heads * sequence / (hidden * tensor_parallel))


@dataclass(frozen=True)
class MeasuredMemory:
    """Bytes that torch's allocator gave out and has not had back: measured, on one step of training.

    `activations` is what is alive at the end of the forward pass beyond weights and input; `peak` the most that
    was alive at once from the first byte of the model on.
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int
    peak: int
    device: str

    def to_dict(self) -> dict[str, Any]:
        return {"label": "measured", **asdict(self)}

    def __repr__(self) -> str:
        return (
            f"MeasuredMemory(weights {show_bytes(self.weights)}, gradients {show_bytes(self.gradients)}, optimizer "
            f"{show_bytes(self.optimizer)}, activations {show_bytes(self.activations)}, peak "
            f"{show_bytes(self.peak)}; measured on {self.device})"
        )


def measured_memory(model: Any, loss: Any, optimizer: Any, device: str = "cpu") -> MeasuredMemory:
    """Train one step and count allocations: on the CPU by the profiler's records, on a GPU by its allocator.

    Parameters
    ----------
    model : callable
        Makes the model, on the device.
    loss : callable
        ``loss(model)``, from an input that is there already.
    optimizer : callable
        ``optimizer(parameters)``.
    """
    counter = _OnGPU(device) if device.startswith("cuda") else _OnCPU()
    with counter:
        made = model()
        counter.mark("weights")
        value = loss(made)
        counter.mark("forward")
        value.backward()
        del value
        counter.mark("backward")
        kept = optimizer(made.parameters())  # held until its memory has been counted
        kept.step()
        counter.mark("step")
    at = counter.alive()
    return MeasuredMemory(
        weights=at["weights"],
        activations=at["forward"] - at["weights"],
        gradients=at["backward"] - at["weights"],
        optimizer=at["step"] - at["backward"],
        peak=at["peak"],
        device=device,
    )


class _OnCPU:
    """Every allocation of the profiled stretch, in order of time."""

    def __init__(self) -> None:
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler would greet on stderr

        import torch
        from torch.profiler import ProfilerActivity, profile

        self._mark = torch.profiler.record_function
        self._profile = profile(activities=[ProfilerActivity.CPU], profile_memory=True)

    def __enter__(self) -> _OnCPU:
        self._profile.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        self._profile.__exit__(*details)

    def mark(self, name: str) -> None:
        with self._mark(f"mark:{name}"):
            pass

    def alive(self) -> dict[str, int]:
        recorded: Any = self._profile.profiler
        rows = sorted(recorded.kineto_results.events(), key=lambda event: event.start_ns())
        total = peak = 0
        found: dict[str, int] = {}
        for event in rows:
            if event.name() == "[memory]":
                total += event.nbytes()
                peak = max(peak, total)
            elif event.name().startswith("mark:"):
                found[event.name().removeprefix("mark:")] = total
        return {**found, "peak": peak}


class _OnGPU:
    """The caching allocator's own books."""

    def __init__(self, device: str) -> None:
        import torch

        self._cuda, self._device = torch.cuda, device
        self._at: dict[str, int] = {}

    def __enter__(self) -> _OnGPU:
        self._cuda.reset_peak_memory_stats(self._device)
        self._before = self._cuda.memory_allocated(self._device)
        return self

    def __exit__(self, *details: Any) -> None:
        self._at["peak"] = self._cuda.max_memory_allocated(self._device) - self._before

    def mark(self, name: str) -> None:
        self._at[name] = self._cuda.memory_allocated(self._device) - self._before

    def alive(self) -> dict[str, int]:
        return self._at
