"""labkit's data parallelism beside torch's DDP and FSDP2: the same steps, measured the same way.

Time is from a barrier to the end of the slowest rank. Bytes are what the rank's TCP connections delivered, as
the system counts them, so that all are counted alike: payload and the headers of gloo, not those of TCP.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from labkit.errors import LabkitError
from labkit.hardware.units import show_bytes, show_time
from labkit.network.launch.meter import Traffic
from labkit.network.p2p import endpoint
from labkit.network.training.data_parallel import DataParallel

WAYS = ("labkit", "labkit, no overlap", "torch DDP", "torch FSDP2")


@dataclass(frozen=True)
class Measured:
    """A way to train, measured on one rank.

    Attributes
    ----------
    way : str
    seconds : float
        Median of a step, of the slowest rank.
    fastest : float
        The fastest step, of the slowest rank: on a machine that others use too, less of it is theirs.
    wire_bytes : float or None
        Bytes a step that this rank's TCP connections carried out; None where the network is not TCP (NCCL).
    payload_bytes : float
        Of those, a step, what labkit's own sends and receives count; 0 for torch's own.
    weight_bytes : int
        Weights this rank holds between steps.
    losses : tuple of float
        This rank's loss of each step.
    """

    way: str
    seconds: float
    fastest: float
    wire_bytes: float | None
    payload_bytes: float
    weight_bytes: int
    losses: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"label": "measured", **asdict(self)}

    def __repr__(self) -> str:
        sent = "bytes not counted" if self.wire_bytes is None else f"{show_bytes(self.wire_bytes)} out"
        return f"Measured({self.way}: {show_time(self.seconds)} and {sent} a step)"


def measure_steps(
    way: str,
    model: Callable[[], nn.Module],
    loss: Callable[[nn.Module, int], torch.Tensor],
    steps: int = 5,
    lr: float = 0.01,
    bucket: str | float = "1MiB",
) -> Measured:
    """Train ``steps`` steps of SGD in one of the `WAYS`; call it inside ranks, on all of them.

    Parameters
    ----------
    model : callable
        Makes the model; the same one on all ranks.
    loss : callable
        ``loss(wrapped model, step)`` of this rank's part of that step's batch.

    Raises
    ------
    LabkitError
        For an unknown way, and for less than 2 steps (the first one warms up).
    """
    if steps < 2:
        raise LabkitError("The first step warms up, so measuring takes at least 2.")
    wrapped = _wrapped(way, model(), bucket)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=lr)
    here: Any = endpoint()
    times, losses = [], []
    wire, payload = 0, 0
    for step in range(steps):
        dist.barrier()
        if step == 1:
            wire, payload = _wire(), sum(here.sent.values())
        began = time.perf_counter()
        value = loss(wrapped, step)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(float(value.detach()))
        times.append(time.perf_counter() - began)
    dist.barrier()  # by then what was sent has been delivered
    wire, payload = _wire() - wire, sum(here.sent.values()) - payload
    tcp = dist.get_backend() != "nccl"
    return Measured(
        way=way,
        seconds=_slowest(statistics.median(times[1:])),
        fastest=_slowest(min(times[1:])),
        wire_bytes=wire / (steps - 1) if tcp else None,
        payload_bytes=payload / (steps - 1),
        weight_bytes=sum(_local(one).nbytes for one in wrapped.parameters()),
        losses=tuple(losses),
    )


def _wrapped(way: str, module: nn.Module, bucket: str | float) -> nn.Module:
    if way not in WAYS:
        raise LabkitError(f"{way!r} is no way to train here: {', '.join(WAYS)}.")
    if way.startswith("labkit"):
        return DataParallel(module, bucket, overlap=way == "labkit")
    if way == "torch DDP":
        from labkit.hardware.units import parse

        return nn.parallel.DistributedDataParallel(module, bucket_cap_mb=parse(bucket, "size") / (1 << 20))
    return _fsdp(module)


def _fsdp(module: nn.Module) -> nn.Module:
    """Every child with parameters is a unit of its own, every layer of a list of layers too: gathered before use, and
    let go after."""
    try:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        raise LabkitError("This PyTorch has no FSDP2 (fully_shard): it came with 2.6.") from None
    kind = "cuda" if dist.get_backend() == "nccl" else "cpu"
    mesh = init_device_mesh(kind, (dist.get_world_size(),))
    for unit in _units(module):
        fully_shard(unit, mesh=mesh)
    fully_shard(module, mesh=mesh)
    return module


def _units(module: nn.Module) -> Iterator[nn.Module]:
    for child in module.children():
        if isinstance(child, (nn.ModuleList, nn.ModuleDict)):
            yield from _units(child)
        elif any(True for _ in child.parameters()):
            yield child


def _local(parameter: torch.Tensor) -> torch.Tensor:
    """Of a tensor sharded over ranks, this rank's part."""
    to_local = getattr(parameter, "to_local", None)
    return to_local() if to_local is not None else parameter


def _wire() -> int:
    traffic = Traffic()
    traffic.count()
    return traffic.sent


def _slowest(seconds: float) -> float:
    worst = torch.tensor([seconds], dtype=torch.float64)
    if dist.get_backend() == "nccl":
        worst = worst.cuda()
    dist.all_reduce(worst, dist.ReduceOp.MAX)
    return float(worst)
