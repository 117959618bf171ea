"""Lesson 10: the digits learnt by several ranks, in one of the ways of `labkit.network.compression`, and counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from labkit.hardware.units import parse, show_bytes, show_time


@dataclass(frozen=True)
class Point:
    """Training after some steps, on one rank.

    Attributes
    ----------
    steps : int
    bytes_sent : int
        What this rank had put on the wire by then (counted), weights sent at the start included.
    seconds : float
        Time spent in steps (measured); that of testing is left out.
    accuracy : float
        Share of the held-out digits that are recognised.
    """

    steps: int
    bytes_sent: int
    seconds: float
    accuracy: float


@dataclass(frozen=True)
class Training:
    """One way to train, as a rank has seen it.

    Attributes
    ----------
    way : str
    points : tuple of Point
    where : str
        What counted the bytes.
    weights : int
        Elements of the model.
    checksum : float
        Sum over all weights in the end; ranks that are in step have the same.
    """

    way: str
    points: tuple[Point, ...]
    where: str
    weights: int
    checksum: float

    @property
    def last(self) -> Point:
        return self.points[-1]

    @property
    def bytes_a_step(self) -> float:
        """Between the first point and the last; without what is sent at the start."""
        first = self.points[0]
        return (self.last.bytes_sent - first.bytes_sent) / (self.last.steps - first.steps)

    @property
    def step_seconds(self) -> float:
        """Median time of a step, from point to point; the first steps, which warm up, are left out."""
        pairs = zip(self.points, self.points[1:], strict=False)
        return median((b.seconds - a.seconds) / (b.steps - a.steps) for a, b in pairs)

    def to_dict(self) -> dict[str, Any]:
        return {"label": "measured", **asdict(self)}

    def __repr__(self) -> str:
        last = self.last
        return (
            f"Training({self.way}: {last.steps} steps, {show_bytes(last.bytes_sent)} sent, "
            f"{show_time(last.seconds)}, {100 * last.accuracy:.1f} % right)"
        )


def train(way: str, steps: int = 120, batch: int = 32, channels: int = 32, lr: float = 0.3) -> Training:
    """Train on this rank's share of each batch; call it on all ranks.

    Parameters
    ----------
    way : str
        One of `labkit.network.compression.WAYS`.
    batch : int
        Images a rank and a step.
    channels : int
        Of the ConvNet: 16, 32 and 48 give 10, 29 and 57 thousand weights.
    """
    from labkit.network.compression import prepare

    return _train(way, lambda net: prepare(way, net, lr, steps), steps, batch, channels)


def train_with(sign_mean: Callable[..., Any], steps: int = 120, lr: float = 0.3) -> Training:
    """Train with an answer of exercise 10.sign, a function of NumPy arrays, in place of the hook."""
    import torch

    from labkit.network.compression import hook

    def prepare(net: Any) -> tuple[Any, Any]:
        model = torch.nn.parallel.DistributedDataParallel(net)
        model.register_comm_hook(_Answered(sign_mean), hook)
        return model, torch.optim.SGD(net.parameters(), lr)

    return _train(sign_mean.__name__, prepare, steps)


class _Answered:
    """A communication hook's state that leaves the work to ``answer(gradient, residual)``."""

    def __init__(self, answer: Callable[..., Any]):
        from labkit.network.compression.residuals import Residuals

        self.answer, self.residuals = answer, Residuals()

    def average(self, flat: Any, parameters: Any) -> Any:
        import torch

        kept = torch.cat([self.residuals.of(one).detach().reshape(-1) for one in parameters])
        mean, left = self.answer(flat.numpy().copy(), kept.numpy())
        self.residuals.keep(torch.as_tensor(left, dtype=flat.dtype), parameters)
        return torch.as_tensor(mean, dtype=flat.dtype)


def _train(
    way: str, prepare: Callable[[Any], Any], steps: int, batch: int = 32, channels: int = 32
) -> Training:
    import torch

    from labkit.course.models import ConvNet
    from labkit.network.compression import Wire
    from labkit.network.context import rank_context

    here = rank_context()
    torch.manual_seed(1)
    wire, net = Wire(), ConvNet(channels)
    model, optimizer = prepare(net)
    images, labels, held_out = _data()
    order = torch.Generator().manual_seed(2)
    points: list[Point] = []
    spent = 0.0
    for step in range(1, steps + 1):
        everybody = torch.randint(len(images), (batch * here.world_size,), generator=order)
        mine = everybody[here.rank :: here.world_size]
        began = time.perf_counter()
        loss = torch.nn.functional.cross_entropy(model(images[mine]), labels[mine])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == steps and hasattr(optimizer, "finish"):
            optimizer.finish()  # what is averaged last counts, and is what is tested
        spent += time.perf_counter() - began
        if step % max(1, steps // 12) == 0 or step == steps:
            points.append(Point(step, wire.sent(), spent, _accuracy(net, *held_out)))
    weights = [one.detach().double().sum() for one in net.parameters()]
    count = sum(one.numel() for one in net.parameters())
    return Training(way, tuple(points), wire.where, count, float(sum(weights)))


def gradient_matrix(steps: int = 30, channels: int = 32) -> Any:
    """The gradient of the second convolution after some steps of SGD, as PowerSGD sees it; a NumPy matrix.

    A row for each of its ``2 * channels`` filters, a column for each of the ``9 * channels`` weights of one.
    """
    import torch

    from labkit.course.models import ConvNet

    torch.manual_seed(1)
    net = ConvNet(channels)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
    images, labels, _ = _data()
    for step in range(steps):
        some = slice(64 * step % 1024, 64 * step % 1024 + 64)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(images[some]), labels[some]).backward()
        optimizer.step()
    gradient: Any = net.second.weight.grad
    return gradient.reshape(len(gradient), -1).numpy()


def compress_seconds(elements: int, times: int = 31) -> float:
    """Median time of making and reading the message of `Sign`, without sending it; on one rank."""
    import torch

    from labkit.network.compression import Sign

    method, parameters = Sign(), [torch.zeros(elements)]
    gradient = torch.randn(elements)
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        method.average(gradient, parameters)
        taken.append(time.perf_counter() - began)
    return sorted(taken)[times // 2]


def with_link(cluster: Any, bandwidth: str) -> Any:
    """The cluster with all its links at this bandwidth; an emulated one is made anew, which costs nothing."""
    from labkit.network.cluster.emulated import EmulatedCluster

    if isinstance(cluster, EmulatedCluster):
        return EmulatedCluster(cluster.nodes, parse(bandwidth, "rate"), cluster.latency, cluster.missing)
    for node in cluster.nodes:
        cluster.link(node).set(bandwidth=bandwidth)
    return cluster


def _data() -> Any:
    import torch

    from labkit.course.datasets import digits

    data = digits()
    learn = torch.from_numpy(data.images), torch.from_numpy(data.labels)
    return *learn, (torch.from_numpy(data.test_images), torch.from_numpy(data.test_labels))


def _accuracy(net: Any, images: Any, labels: Any) -> float:
    import torch

    with torch.no_grad():
        return float((net(images).argmax(1) == labels).float().mean())
