"""Ranks from a cell: how fast they start, how fast a failure is told, how fast labkit's own all-reduce is.

The peer for the start is what launchers for notebooks do: spawn a fresh interpreter for each rank, import
torch in it, join the process group, run the function. The peer for the all-reduce is torch's own, gloo.
"""

from __future__ import annotations

import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

from labkit.bench import Figure
from labkit.errors import LabkitError
from labkit.network.errors import RankError
from labkit.network.ranks import Ranks, ranks

RANKS = 4
_MIB = 1 << 20


def figures(quick: bool) -> Iterable[Figure]:
    """Warm start against spawn, the time to the first failure, the ring against gloo's all-reduce."""
    four = ranks(RANKS)
    if four.backend != "gloo":
        raise LabkitError("These figures are about gloo: hide the GPUs with CUDA_VISIBLE_DEVICES=''.")
    four.run(_cell)  # the first run also waits for torch to be imported
    yield from _start_figures(four, quick)
    yield _failure_figure(four, 1 if quick else 3)
    yield _ring_figure(four, 9 if quick else 25)


def _start_figures(four: Ranks, quick: bool) -> Iterable[Figure]:
    warm = statistics.median(_seconds(lambda: four.run(_cell)) for _ in range(5 if quick else 15))
    yield Figure(f"warm run of a function on {RANKS} ranks", warm, "s", "at most", 0.3, "gloo, loopback")
    cold = statistics.median(_seconds(_spawned) for _ in range(1 if quick else 3))
    detail = f"spawn of the same function took {cold:.2f} s"
    yield Figure("times faster than a launcher that spawns", cold / warm, "times", "at least", 30, detail)


def _cell() -> int:
    """What both run: the ranks add up their numbers."""
    import torch
    import torch.distributed as dist

    total = torch.ones(1) * dist.get_rank()
    dist.all_reduce(total)
    return int(total)


def _spawned() -> None:
    """The same function through fresh interpreters, as notebook launchers start them."""
    import torch.multiprocessing as mp

    with tempfile.TemporaryDirectory(prefix="labkit-bench-") as folder:
        mp.spawn(_spawned_rank, args=(os.path.join(folder, "rendezvous"),), nprocs=RANKS)


def _spawned_rank(rank: int, rendezvous: str) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=RANKS)
    if _cell() != RANKS * (RANKS - 1) // 2:
        raise RuntimeError("the ranks added up to something else")
    dist.destroy_process_group()


def _failure_figure(four: Ranks, repeats: int) -> Figure:
    seconds = statistics.median(_seconds_to_report(four) for _ in range(repeats))
    detail = "from the exception to the report; another rank ignores SIGINT and SIGTERM"
    return Figure("first failing rank reported", seconds, "s", "at most", 2, detail)


def _seconds_to_report(four: Ranks) -> float:
    try:
        four.run(_one_fails)
    except RankError as error:
        if error.rank == 0:
            return time.time() - float(str(error).split("at ", 1)[1].split()[0])
    raise LabkitError("The failing rank was not the one reported, so its time means nothing.")


def _one_fails() -> None:
    import torch.distributed as dist

    if dist.get_rank() == 1:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    dist.barrier()
    if dist.get_rank() == 0:
        raise ValueError(f"at {time.time()}")
    time.sleep(600)


def _ring_figure(four: Ranks, repeats: int) -> Figure:
    ours, torchs = four.run(_race, 16 * _MIB // 4, repeats)[0]
    detail = f"ring {1e3 * ours:.1f} ms, torch's own {1e3 * torchs:.1f} ms, float32, median of {repeats}"
    return Figure("own ring all-reduce of 16 MiB", torchs / ours, "of torch", "at least", 0.7, detail)


def _race(elements: int, repeats: int) -> tuple[float, float]:
    """Median seconds of both, taken in turns so that a busy moment hits both."""
    import torch
    import torch.distributed as dist

    from labkit.network.collectives import ring_all_reduce

    data = torch.ones(elements)
    took: dict[Any, list[float]] = {ring_all_reduce: [], dist.all_reduce: []}
    for _ in range(repeats + 2):
        for function, seconds in took.items():
            data.fill_(1)
            dist.barrier()
            seconds.append(_seconds(lambda f=function: (f(data), dist.barrier())))  # type: ignore[misc]
            if not bool((data == dist.get_world_size()).all()):
                raise RuntimeError("an all-reduce gave a wrong sum, so its time means nothing")
    ours, torchs = (statistics.median(seconds[2:]) for seconds in took.values())
    return ours, torchs


def _seconds(action: Callable[[], Any]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
