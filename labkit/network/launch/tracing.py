"""Record one rank's function with torch.profiler, and keep what a timeline needs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from labkit.network.launch.meter import Meter

MAX_EVENTS = 20_000
_IN_FLIGHT = ("gloo:", "nccl:")


def traced(function: Callable[..., Any], args: Any, meter: Meter) -> tuple[Any, dict[str, Any]]:
    """The function's value and its trace: ``begin`` and ``end`` in ns of the wall clock, and rows of
    ``(kind, name, start ns, end ns)``.

    Kinds: ``call`` (a communication call, from entering to leaving it), ``flight`` (communication under way,
    also behind the function's back), ``op`` (a torch operator that no other one called), ``kernel`` (on a
    GPU). All ranks share one machine, so its wall clock is one clock.
    """
    import torch
    import torch.distributed as dist
    from torch.profiler import ProfilerActivity, profile

    from labkit.network.p2p import endpoint

    here: Any = endpoint()
    here.tracing = True
    activities = [ProfilerActivity.CPU]
    if dist.get_backend() == "nccl":
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities) as profiler:
        dist.barrier()  # profilers start at different moments: that is no waiting of the function's
        meter.begin()
        begin = time.time_ns()
        value = function(*args)
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        end = time.time_ns()
    here.tracing = False
    events = profiler.profiler.kineto_results.events()
    found = [*filter(None, map(_row, events)), *(("flight", *flight, 0) for flight in here.flights)]
    rows = [row for row in found if row[2] >= begin and row[3] <= end]
    kept = _outermost_ops(sorted(rows, key=lambda row: (row[2], -row[3])))
    room = _within_limit(kept)
    trace = {"begin": begin, "end": end, "rows": [row[:4] for row in room]}
    return value, {**trace, "left_out": len(kept) - len(room), "process": os.getpid()}


def _within_limit(rows: list[Any], limit: int = MAX_EVENTS) -> list[Any]:
    """At most ``limit`` rows: operators beyond it are left out, communication is not."""
    spare = limit - sum(row[0] != "op" for row in rows)
    kept = []
    for row in rows:
        if row[0] == "op":
            spare -= 1
            if spare < 0:
                continue
        kept.append(row)
    return kept[:limit]


def _row(event: Any) -> tuple[str, str, int, int, int] | None:
    name, start = event.name(), event.start_ns()
    end = start + event.duration_ns()
    if name.startswith("call:"):
        return "call", name.removeprefix("call:"), start, end, event.start_thread_id()
    if name.startswith(_IN_FLIGHT):
        return "flight", name, start, end, 0
    if "CUDA" in str(event.device_type()):
        kind = "flight" if "nccl" in name.lower() else "kernel"
        return kind, name, start, end, 0
    if "::" in name and not name.startswith("c10d::"):
        return "op", name, start, end, event.start_thread_id()
    return None


def _outermost_ops(rows: list[Any]) -> list[Any]:
    """Without the operators (and calls) that run inside another one of the same thread."""
    kept = []
    until: dict[tuple[str, int], int] = {}
    for row in rows:
        kind, _, _, end, thread = row
        nested = kind in ("op", "call") and end <= until.get((kind, thread), 0)
        if not nested:
            kept.append(row)
            until[kind, thread] = end
    return kept
