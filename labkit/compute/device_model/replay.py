"""Play a timeline slowly on the wall clock, so that a live plot can show what its links carry."""

from __future__ import annotations

import time
from collections.abc import Callable

from labkit.compute.device_model.operations import COPY_IN, COPY_OUT
from labkit.compute.device_model.timeline import Timeline

STEP_S = 0.05


def replay(timeline: Timeline, metric: Callable[..., object], seconds: float = 4.0) -> float:
    """Call ``metric(name, value, provenance=...)`` with GB/s of both directions and whether a kernel runs.

    The timeline is stretched to ``seconds`` of wall time; rates are those of its own, simulated clock. Returns how
    many times slower than that clock it was played.
    """
    begin, scale = time.monotonic(), timeline.seconds / seconds
    last = 0.0
    while (now := time.monotonic() - begin) < seconds:
        for kind in (COPY_IN, COPY_OUT):
            rate = timeline.rate(kind, last * scale, now * scale) / 1e9
            metric(f"{kind} (GB/s)", rate, provenance=timeline.how)
        last = now
        time.sleep(STEP_S)
    for kind in (COPY_IN, COPY_OUT):
        metric(f"{kind} (GB/s)", 0.0, provenance=timeline.how)
    return seconds / timeline.seconds
