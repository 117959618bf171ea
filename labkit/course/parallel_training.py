"""Lesson 07 on real ranks: the small networks and data of the course, trained with whatever function a learner wrote.

Every function here runs on a rank, in ``labkit.ranks(n).run``.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from labkit.course.datasets import Text, digits, text
from labkit.course.models import ConvNet, Transformer
from labkit.network.p2p import endpoint
from labkit.network.timeline import Timeline
from labkit.network.training import DataParallel, ShardedEmbedding, World
from labkit.network.training.data_parallel import reachable

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
    batches = digit_batches(steps, batch)
    began = time.perf_counter()
    train(world, model, F.cross_entropy, batches, lr)
    took = time.perf_counter() - began
    sizes = sum(one.detach().double().abs().sum() for one in model.parameters())
    return {"accuracy": accuracy(model), "weights": float(sizes), "seconds": took}


@cache
def _manual() -> Text:
    """Read once: its preparation takes longer than a step, and must not count as part of one."""
    return text()


def writer(tied: bool = False) -> nn.Module:
    """A small Transformer that continues English prose, the same on every rank."""
    torch.manual_seed(3)
    return Transformer(len(_manual().alphabet), length=_LENGTH, tied=tied)


def prose(step: int, batch: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
    """This rank's part of a step: codes of characters, and of those that come next, (batch, 32) each."""
    codes = torch.from_numpy(_manual().codes)
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
    finish = overlapped(World(), list(model.parameters()), bucket_bytes) or _nothing  # as yet unwritten
    loss = torch.zeros(())
    for step in range(steps):
        model.zero_grad()
        loss = prose_loss(model, step)
        loss.backward()
        finish()
    return float(loss.detach())


def _nothing() -> None:
    """Until the learner's function returns another one."""


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
    return list(unused(model(prose(0)[0]), dict(model.named_parameters())) or ())


def drifting(steps: int = 60, batch: int = 64, lr: float = 0.2) -> dict[str, tuple[list[float], float]]:
    """Digits, learnt rightly and in two wrong ways: how far each step leaves this rank's weights from the mean of all
    ranks', and the accuracy in the end."""
    ways = {"right": (True, True), "own start": (False, True), "own gradient": (True, False)}
    return {name: _drift(*way, steps, batch, lr) for name, way in ways.items()}


def _drift(same_start: bool, averaged: bool, steps: int, batch: int, lr: float) -> tuple[list[float], float]:
    world = World()
    torch.manual_seed(world.rank)
    model = ConvNet()
    weights = list(model.parameters())
    if same_start:
        for one in weights:
            world.broadcast(one)
    distances = []
    for x, y in digit_batches(steps, batch):
        mine = slice(world.rank, None, world.world_size)
        slopes = torch.autograd.grad(F.cross_entropy(model(x[mine]), y[mine]), weights)
        slope = torch.cat([one.reshape(-1) for one in slopes])
        if averaged:
            world.all_reduce(slope)
            slope /= world.world_size
        for one, piece in zip(weights, slope.split([one.numel() for one in weights]), strict=True):
            one.data -= lr * piece.view_as(one)
        distances.append(_distance(world, weights))
    return distances, accuracy(model)


def _distance(world: World, weights: list[Any]) -> float:
    own = torch.cat([one.detach().reshape(-1) for one in weights])
    mean = own.clone()
    world.all_reduce(mean)
    return float((own - mean / world.world_size).norm())


def step_events(bucket: str, overlap: bool = True) -> list[tuple[str, str]]:
    """One backward pass of the Transformer: what happened, in order."""
    ddp = DataParallel(writer(), bucket, overlap)
    prose_loss(ddp, 0).backward()
    return [(one.what, one.name) for one in ddp.log]


def backward_passes(bucket: str, overlap: bool, steps: int = 3) -> None:
    """For a trace."""
    ddp = DataParallel(writer(), bucket, overlap)
    for step in range(steps):
        ddp.zero_grad()
        prose_loss(ddp, step).backward()


def last_pass(timeline: Timeline, buckets: int) -> Timeline:
    """Of a trace of several passes, the last one: from the end of the all-reduces before it."""
    before = 0.0
    for rank in range(timeline.ranks):
        mine = [one for one in timeline.events if one.rank == rank and one.name == "labkit:ring_all_reduce"]
        before = max([before, *(one.end for one in mine[:-buckets][-1:])])
    return timeline.between(before, timeline.seconds)


def sent_by_accumulation(micro_batches: int = 4) -> dict[str, int]:
    """Bytes of gradients that this rank sends for one step of so many micro-batches."""
    return {
        "synchronised each time": _sent(micro_batches, quiet=0),
        "all but the last in no_sync()": _sent(micro_batches, quiet=micro_batches - 1),
    }


def _sent(micro_batches: int, quiet: int) -> int:
    ddp = DataParallel(writer())
    here: Any = endpoint()
    before = sum(here.sent.values())
    with ddp.no_sync():
        for k in range(quiet):
            (prose_loss(ddp, k) / micro_batches).backward()
    for k in range(quiet, micro_batches):
        (prose_loss(ddp, k) / micro_batches).backward()
    return sum(here.sent.values()) - before


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """What C++ writes to the error stream goes nowhere."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def step_costs(steps: int = 5) -> dict[str, float]:
    """Seconds of the fastest step of the Transformer, by what DDP is told; and of walking its graph once."""
    torch_ddp = nn.parallel.DistributedDataParallel
    ways: dict[str, Callable[[], nn.Module]] = {
        "ours, overlap": lambda: DataParallel(writer(), "64KiB"),
        "ours, overlap, find_unused": lambda: DataParallel(writer(), "64KiB", find_unused=True),
        "ours, no overlap": lambda: DataParallel(writer(), "64KiB", overlap=False),
        "torch's DDP": lambda: torch_ddp(writer(), bucket_cap_mb=1 / 16),
        "torch's DDP, find_unused": lambda: torch_ddp(
            writer(), bucket_cap_mb=1 / 16, find_unused_parameters=True
        ),
    }
    with _silent():  # torch advises against find_unused where nothing is unused
        costs = {name: _fastest_step(make(), steps) for name, make in ways.items()}
    loss = prose_loss(writer(), 0)
    began = time.perf_counter()
    reachable(loss)
    return {**costs, "one walk over the graph": time.perf_counter() - began}


def _fastest_step(wrapped: nn.Module, steps: int) -> float:
    times = []
    for step in range(steps):
        wrapped.zero_grad()
        began = time.perf_counter()
        prose_loss(wrapped, step).backward()
        times.append(time.perf_counter() - began)
    return min(times[1:])


def lookups(rows: int = 4096, features: int = 16, asked: int = 64) -> dict[str, int]:
    """A sharded table, looked up and trained on once: bytes this rank sent, and those of the whole table's gradient."""
    world, here = World(), endpoint()
    torch.manual_seed(0)
    table = torch.randn(rows, features)
    layer = ShardedEmbedding(table)
    ids = torch.randint(rows, (asked,), generator=torch.Generator().manual_seed(world.rank))
    before = sum(here.sent.values())  # type: ignore[attr-defined]
    layer(ids).square().sum().backward()
    sent = sum(here.sent.values()) - before  # type: ignore[attr-defined]
    return {"sent": sent, "whole table": table.numel() * table.element_size()}
