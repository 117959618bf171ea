"""A stage of a pipeline on a real rank: follows a schedule, sends activations on and gradients back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from labkit.errors import LabkitError
from labkit.network.p2p import endpoint, exchange, recv, send
from labkit.network.training.schedules import Schedule, Step


class PipelineStage:
    """One rank's layers; stage k is rank k.

    Parameters
    ----------
    module : nn.Module
        This rank's layers.
    schedule : Schedule
        Of as many stages as there are ranks.
    loss : callable
        ``loss(output, target)`` of a micro-batch, on the last rank. Its gradients add up over micro-batches:
        give the sum over samples divided by the size of the whole batch to get those of the batch's mean.
    features : sequence of int
        The shape, without the batch, of what comes in from the rank before; its type is the parameters'.

    Attributes
    ----------
    log : list of Step
        What the last `run` did, in order.
    most_kept : int
        Micro-batches whose activations were held at once, at most.
    """

    def __init__(
        self,
        module: nn.Module,
        schedule: Schedule,
        loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
        features: Sequence[int] = (),
    ):
        here = endpoint()
        if schedule.stages != here.size:
            raise LabkitError(f"The schedule has {schedule.stages} stages and there are {here.size} ranks.")
        self.module, self.schedule, self.loss, self.features = module, schedule, loss, tuple(features)
        self.rank, self.last = here.rank, here.size - 1
        self.log: list[Step] = []
        self.most_kept = 0

    def run(
        self,
        sizes: Sequence[int],
        inputs: Sequence[torch.Tensor] | None = None,
        targets: Sequence[torch.Tensor] | None = None,
    ) -> float | None:
        """One batch, forward and backward; gradients are left in the parameters.

        Parameters
        ----------
        sizes : sequence of int
            Samples of each micro-batch, the same on all ranks; they may differ.
        inputs, targets : sequences of tensors
            Micro-batches; inputs are needed on the first rank, targets on the last.

        Returns
        -------
        float or None
            The sum of the losses, on the last rank.
        """
        if len(sizes) != self.schedule.micro_batches:
            raise LabkitError(
                f"The schedule has {self.schedule.micro_batches} micro-batches, and {len(sizes)} are given."
            )
        self.log, self.most_kept = [], 0
        batch = _Batch(self, sizes, inputs, targets)
        for step in self.schedule.steps[self.rank]:
            batch.do(step)
            self.log.append(step)
            self.most_kept = max(self.most_kept, len(batch.kept))
        batch.flush()
        return batch.total if self.rank == self.last else None


class _Batch:
    """The state of one `run`: activations kept, and a message that waits to be sent.

    A send is held back until the next receive: when both are with the same neighbour they go at once, as they
    must over NCCL, where each rank would otherwise wait for the other to receive.
    """

    def __init__(self, stage: PipelineStage, sizes: Sequence[int], inputs: Any, targets: Any):
        self.stage, self.sizes, self.inputs, self.targets = stage, sizes, inputs, targets
        self.kept: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.total = 0.0
        self._leaving: tuple[torch.Tensor, int] | None = None
        self._like = next(stage.module.parameters(), torch.empty(0))

    def do(self, step: Step) -> None:
        if step.what == "forward":
            self._forward(step.micro_batch)
        else:
            self._backward(step.micro_batch)

    def flush(self) -> None:
        """Send what is held back."""
        if self._leaving is not None:
            send(*self._leaving)
            self._leaving = None

    def _forward(self, m: int) -> None:
        stage = self.stage
        if stage.rank == 0:
            came = self.inputs[m]
        else:
            came = self._like.new_empty(self.sizes[m], *stage.features).detach()
            self._receive(came, stage.rank - 1)
            came.requires_grad_()
        made = stage.module(came)
        if stage.rank == stage.last:
            if stage.loss is None:
                raise LabkitError("The last stage needs a loss: PipelineStage(..., loss=...).")
            made = stage.loss(made, self.targets[m])
            self.total += float(made.detach())
        else:
            self._send(made.detach(), stage.rank + 1)
        self.kept[m] = came, made

    def _backward(self, m: int) -> None:
        stage = self.stage
        came, made = self.kept[m]
        gradient = None
        if stage.rank < stage.last:
            gradient = torch.empty_like(made)
            self._receive(gradient, stage.rank + 1)
        made.backward(gradient)
        del self.kept[m]
        if stage.rank > 0:  # the rank before waits for it, also where these layers leave their input unused
            self._send(torch.zeros_like(came) if came.grad is None else came.grad, stage.rank - 1)

    def _send(self, tensor: torch.Tensor, to: int) -> None:
        self.flush()
        self._leaving = tensor.contiguous(), to

    def _receive(self, into: torch.Tensor, source: int) -> None:
        if self._leaving is not None and self._leaving[1] == source:
            tensor, to = self._leaving
            self._leaving = None
            exchange(tensor, to, into, source)
            return
        self.flush()
        recv(into, source)
