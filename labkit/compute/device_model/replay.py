"""Play a timeline slowly on the wall clock, so that a live plot can show what its links carry."""

from __future__ import annotations

import time
from collections.abc import Callable

from labkit.compute.device_model.operations import COPY_IN, COPY_OUT
from labkit.compute.device_model.timeline import Timeline

STEP_S = 0.05


def replay(timeline: Timeline, metric: Callable[..., object], slower: float = 600.0) -> float:
    """Call ``metric(name, value, provenance=...)`` with the GB/s of both directions, while the timeline runs ``slower``
    times slower than its own, simulated clock. The rates are those on that clock. Returns the seconds it took here."""
    begin = time.monotonic()
    last, now = 0.0, 0.0
    while now < timeline.seconds:
        time.sleep(STEP_S)
        last, now = now, (time.monotonic() - begin) / slower
        for kind in (COPY_IN, COPY_OUT):
            rate = timeline.rate(kind, last, now) / 1e9
            metric(f"{kind} (GB/s)", rate, provenance=timeline.how)
    for kind in (COPY_IN, COPY_OUT):
        metric(f"{kind} (GB/s)", 0.0, provenance=timeline.how)
    return time.monotonic() - begin
