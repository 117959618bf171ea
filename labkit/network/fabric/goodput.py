"""Useful work when machines fail: how often to write a checkpoint, and what is left of the time.

Failures come at random, at a constant rate. With a mean M between them, a checkpoint that takes d after every t of
work, and r to start again, t of work takes M e^(r/M) (e^((t+d)/M) - 1) on average (Daly, A higher order estimate of
the optimum checkpoint interval for restart dumps, FGCS 22(3), 2006).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.html import facts_table
from labkit.hardware.units import parse, show_time
from labkit.network.fabric.topology import whole


@dataclass(frozen=True)
class Goodput:
    """`share` of the time that is useful work, with a checkpoint every `interval_s` of it. Modelled."""

    share: float
    interval_s: float
    best_interval_s: float
    between_failures_s: float
    checkpoint_s: float
    restart_s: float
    nodes: int

    label = "modelled"

    def to_dict(self) -> dict[str, Any]:
        return {"label": self.label, **asdict(self)}

    def __repr__(self) -> str:
        return (
            f"Goodput({self.share:.1%} with a checkpoint every {show_time(self.interval_s)}, a failure every "
            f"{show_time(self.between_failures_s)} on {self.nodes} nodes, {self.label})"
        )

    def _repr_html_(self) -> str:
        facts = {
            "useful": f"{self.share:.1%} of the time",
            "checkpoint": f"every {show_time(self.interval_s)} of work (best: {show_time(self.best_interval_s)})",
            "a failure": f"every {show_time(self.between_failures_s)} on {self.nodes} nodes",
        }
        return facts_table(facts, self.label)


def goodput(
    nodes: int,
    node_mtbf: str | float,
    checkpoint: str | float,
    restart: str | float = 0.0,
    interval: str | float | None = None,
) -> Goodput:
    """Share of the time left for work on `nodes`, each of which fails once in `node_mtbf`.

    Times are seconds or strings such as ``"5min"``; `checkpoint` is what writing one takes and `interval` the work
    between two, the best one by default.

    Raises
    ------
    LabkitError
        For a mean time between failures, or an interval, of zero.
    """
    count = whole(nodes, "nodes")
    mean = parse(node_mtbf, "time") / count
    writing, again = parse(checkpoint, "time"), parse(restart, "time")
    if mean <= 0 or (interval is not None and parse(interval, "time") <= 0):
        raise LabkitError("node_mtbf and interval must be longer than nothing: give a time such as '1000h'.")
    best = best_interval(mean, writing)
    chosen = best if interval is None else parse(interval, "time")
    return Goodput(useful(chosen, mean, writing, again), chosen, best, mean, writing, again, count)


def useful(interval: float, mean: float, checkpoint: float, restart: float) -> float:
    """Work over expected time; all in seconds. 0 where the interval is never survived."""
    exponent = (interval + checkpoint) / mean + restart / mean
    if exponent > 700:  # e^x overflows a double
        return 0.0
    if interval == 0:
        return math.exp(-restart / mean)
    return interval / (mean * math.exp(restart / mean) * math.expm1((interval + checkpoint) / mean))


def best_interval(mean: float, checkpoint: float) -> float:
    """The interval that leaves most: where e^(-(t + d)/M) = 1 - t/M, near sqrt(2 d M) for short checkpoints."""
    low, high = 0.0, mean
    for _ in range(200):
        middle = (low + high) / 2
        if math.exp(-(middle + checkpoint) / mean) < 1 - middle / mean:
            low = middle
        else:
            high = middle
    return high
