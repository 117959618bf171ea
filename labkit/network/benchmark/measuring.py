"""Measure collectives inside ranks: warm up, repeat, check.

One repeat is a burst of calls, long enough for the clock, behind a barrier; it counts as long as its slowest
rank takes. Calls in a burst may run into each other, as they do in nccl-tests: of a broadcast, the root may
begin the next one before the last rank has the previous one.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence

import torch
import torch.distributed as dist

from labkit.errors import LabkitError
from labkit.network.benchmark.operations import Buffers, Implementation, buffers, chosen, wrong
from labkit.network.benchmark.report import BandwidthReport, Row

_BURST_S = 2e-3
_MOST_CALLS = 100


def measure(
    counts: Sequence[int],
    operations: list[str] | None = None,
    by: str = "both",
    dtype: str = "float32",
    repeats: int = 20,
    warmup: int = 3,
    where: str = "",
) -> BandwidthReport:
    """Measure on the ranks that call it, all of them with the same arguments.

    Parameters
    ----------
    counts : sequence of int
        Sizes in bytes; rounded up to a whole number of elements for every rank.
    operations : list of str, optional
        All of them by default.
    by : str
        ``"torch"``, ``"labkit"``, or ``"both"``.
    dtype : str
        A type torch reduces.
    repeats, warmup : int
        Bursts that count, and calls that do not.
    where : str
        The link, for the report.

    Raises
    ------
    LabkitError
        For an unknown operation or type, and less than one repeat.
    """
    kind = getattr(torch, dtype, None)
    if not isinstance(kind, torch.dtype) or kind in (torch.bool, torch.complex64, torch.complex128):
        raise LabkitError(f"{dtype!r} is no type to measure with: float32, float16, int64, ...")
    if repeats < 1 or warmup < 1:
        raise LabkitError("Measuring takes at least one repeat and one call to warm up.")
    size, backend = dist.get_world_size(), dist.get_backend()
    step = kind.itemsize * size
    rounded = sorted({-(-count // step) * step for count in counts})
    rows = [
        _row(one, count, kind, dtype, repeats, warmup) for one in chosen(operations, by) for count in rounded
    ]
    place = f"{size} ranks on {backend}{', ' + where if where else ''}"
    return BandwidthReport(size, backend, place, tuple(rows), _devices())


def _row(
    one: Implementation, size_bytes: int, kind: torch.dtype, dtype: str, repeats: int, warmup: int
) -> Row:
    device = _device()
    count = size_bytes // kind.itemsize
    data = buffers(one, count, kind, device)
    one.run(data)
    mistakes = torch.tensor([wrong(one, data, count)], device=device)
    dist.all_reduce(mistakes)
    data.sent.zero_()  # so that repeated sums stay what they are
    calls = _calls(one, data, warmup)
    times = torch.tensor(
        [_burst(one, data, calls) for _ in range(repeats)], dtype=torch.float64, device=device
    )
    dist.all_reduce(times, dist.ReduceOp.MAX)
    low, median, high = torch.quantile(
        times.cpu(), torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)
    ).tolist()
    return Row(
        operation=one.operation,
        implementation=one.name,
        size_bytes=size_bytes,
        element_bytes=kind.itemsize,
        dtype=dtype,
        ranks=dist.get_world_size(),
        seconds=median,
        low=low,
        high=high,
        repeats=repeats,
        wrong=int(mistakes),
        in_place=one.in_place,
    )


def _calls(one: Implementation, data: Buffers, warmup: int) -> int:
    """How many calls make a burst, the same on all ranks."""
    took = torch.tensor([min(_burst(one, data, 1) for _ in range(warmup))], dtype=torch.float64)
    took = took.to(_device())
    dist.all_reduce(took, dist.ReduceOp.MAX)
    return max(1, min(_MOST_CALLS, round(_BURST_S / max(float(took), 1e-9))))


def _burst(one: Implementation, data: Buffers, calls: int) -> float:
    """Seconds a call, seen by this rank."""
    dist.barrier()
    _finish()
    began = time.perf_counter()
    for _ in range(calls):
        one.run(data)
    _finish()
    return (time.perf_counter() - began) / calls


def _finish() -> None:
    """A GPU answers a call before it has done it."""
    if dist.get_backend() == "nccl":
        torch.cuda.synchronize()


def _device() -> torch.device:
    if dist.get_backend() == "nccl":
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def _devices() -> tuple[str, ...]:
    """A line a rank, as nccl-tests writes them."""
    import os

    device = _device()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU process"
    index = device.index or 0
    mine = (
        f"Rank {dist.get_rank():>2} Group  0 Pid {os.getpid():>6} on {platform.node()} device {index:>2} "
        f"[{index:#04x}] {name}"
    )
    lines = [""] * dist.get_world_size()
    dist.all_gather_object(lines, mine)
    return tuple(lines)
