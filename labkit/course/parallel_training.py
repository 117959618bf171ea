"""Lesson 07 on real ranks: the small networks and data of the course, trained with whatever function a learner wrote.

Every function here runs on a rank, in ``labkit.ranks(n).run``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from labkit.course.datasets import digits, text
from labkit.course.models import ConvNet, Transformer
from labkit.network.p2p import endpoint
from labkit.network.training import DataParallel, World

_LENGTH = 32


def digit_batches(steps: int, batch: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Whole batches of images and labels, the same on every rank."""
    data, order = digits(), torch.Generator().manual_seed(7)
    images, labels = torch.from_numpy(data.images), torch.from_numpy(data.labels)
    chosen = [torch.randint(len(labels), (batch,), generator=order) for _ in range(steps)]
    return [(images[one], labels[one]) for one in chosen]


def accuracy(model: nn.Module) -> float:
    """The share of the held-out digits that the model reads right."""
    data = digits()
    with torch.no_grad():
        read = model(torch.from_numpy(data.test_images)).argmax(1)
    return float((read == torch.from_numpy(data.test_labels)).float().mean())


def train_with(
    train: Callable[..., Any], steps: int = 60, batch: int = 64, lr: float = 0.2
) -> dict[str, Any]:
    """Read digits with ``train(world, model, loss, batches, lr)``; ranks start with different weights."""
    world = World()
    torch.manual_seed(world.rank)
    model = ConvNet()
    began = time.perf_counter()
    train(world, model, F.cross_entropy, digit_batches(steps, batch), lr)
    took = time.perf_counter() - began
    sizes = sum(one.detach().double().abs().sum() for one in model.parameters())
    return {"accuracy": accuracy(model), "weights": float(sizes), "seconds": took}


def writer(tied: bool = False) -> nn.Module:
    """A small Transformer that continues English prose, the same on every rank."""
    torch.manual_seed(3)
    return Transformer(len(text().alphabet), length=_LENGTH, tied=tied)


def prose(step: int, batch: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    """This rank's part of a step: codes of characters, and of those that come next, (batch, 32) each."""
    codes = torch.from_numpy(text().codes)
    random = torch.Generator().manual_seed(1000 * step + endpoint().rank)
    starts = torch.randint(len(codes) - _LENGTH - 1, (batch,), generator=random)
    rows = starts[:, None] + torch.arange(_LENGTH + 1)
    return codes[rows[:, :-1]], codes[rows[:, 1:]]


def next_character(scores: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy over all places."""
    return F.cross_entropy(scores.flatten(0, 1), wanted.flatten())


def prose_loss(model: nn.Module, step: int) -> torch.Tensor:
    """For `labkit.network.training.measure_steps`."""
    codes, wanted = prose(step)
    return next_character(model(codes), wanted)


def overlap_with(overlapped: Callable[..., Any], bucket_bytes: int = 64 * 1024, steps: int = 2) -> float:
    """Backward passes of the Transformer with ``overlapped(world, parameters, bucket_bytes)``; the last loss."""
    model = writer()
    finish = overlapped(World(), list(model.parameters()), bucket_bytes)
    loss = torch.zeros(())
    for step in range(steps):
        model.zero_grad()
        loss = prose_loss(model, step)
        loss.backward()
        finish()
    return float(loss.detach())


def accumulate_with(
    accumulate: Callable[..., Any], micro_batches: int = 4, steps: int = 2
) -> tuple[int, int]:
    """``accumulate(ddp, loss, micro_batches, optimizer)`` on the Transformer.

    Returns bytes that this rank sent for a batch, and those that one exchange of all gradients takes.
    """
    ddp = DataParallel(writer())
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    here: Any = endpoint()
    before = sum(here.sent.values())
    for step in range(steps):
        parts = [prose(step * micro_batches + k, batch=4) for k in range(micro_batches)]
        accumulate(ddp, next_character, parts, optimizer)
    return (sum(here.sent.values()) - before) // steps, ddp.bytes_sent()


class Skipping(nn.Module):
    """The Transformer, of which a forward pass leaves the last layer out."""

    def __init__(self) -> None:
        super().__init__()
        self.whole = writer()

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        whole: Any = self.whole
        x = whole.characters(codes) + whole.places(torch.arange(codes.shape[1]))
        return whole.scores(whole.norm(whole.layers[0](x)))


def unused_with(unused: Callable[..., Any]) -> list[str]:
    """``unused(output, parameters)`` for a Transformer that leaves its last layer out."""
    model = Skipping()
    return list(unused(model(prose(0)[0]), dict(model.named_parameters())))


def graph_nodes(output: torch.Tensor) -> Iterator[Any]:
    """Every node of autograd's graph behind an output, once."""
    nodes = [output.grad_fn]
    seen = set(nodes)
    while nodes:
        node: Any = nodes.pop()
        yield node
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                nodes.append(following)
