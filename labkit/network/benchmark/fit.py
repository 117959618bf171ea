"""Alpha and beta fitted to measured times, through the cost of the algorithm that was measured.

A message of n bytes takes alpha + n / beta; a collective takes A alpha + B(n) / beta, where A and B come from
its cost (`labkit.network.collectives_cost`). torch does not say which algorithm it runs, so its figures are
those of the usual one: what links *would* have to be like for it to take as long.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from labkit.errors import LabkitError
from labkit.hardware.units import show_rate, show_time
from labkit.network import collectives_cost as cost
from labkit.network.benchmark.report import BandwidthReport

_MODELS = {
    ("all_reduce", "halving-doubling"): cost.halving_doubling,
    ("all_reduce", "tree"): cost.binomial_all_reduce,
    "all_reduce": cost.ring,
    "all_gather": cost.ring_half,
    "reduce_scatter": cost.ring_half,
    "broadcast": cost.binomial,
    "all_to_all": cost.pairwise,
}


@dataclass(frozen=True)
class Fit:
    """Seconds ``alpha`` a message and ``beta`` bytes/s; ``error`` is the median relative error of the fit.

    ``beta`` is infinite when the largest size takes no longer than the smallest.
    """

    operation: str
    implementation: str
    alpha: float
    beta: float
    error: float
    model: str

    def to_dict(self) -> dict[str, Any]:
        beta = self.beta if math.isfinite(self.beta) else None  # JSON has no infinity
        return {"label": "fitted to measured times", **asdict(self), "beta": beta}

    def __repr__(self) -> str:
        rate = show_rate(self.beta) if math.isfinite(self.beta) else "not seen at these sizes"
        what = f"{self.operation} by {self.implementation}"
        return (
            f"Fit({what}: alpha {show_time(self.alpha)}, beta {rate}, off by {self.error:.0%} in the median; "
            f"{self.model})"
        )


def fit(report: BandwidthReport) -> tuple[Fit, ...]:
    """A fit for every kind of rows that has two sizes or more, least squares of the relative errors.

    Raises
    ------
    LabkitError
        On a single rank, where nothing is sent.
    """
    if report.ranks < 2:
        raise LabkitError("Alpha and beta need at least 2 ranks: one rank alone sends nothing.")
    kinds = [kind for kind in report.kinds() if len(report.of(*kind).rows) > 1]
    return tuple(_fit(report.of(*kind)) for kind in kinds)


def modelled(one: Fit, size: float, ranks: int) -> float:
    """Seconds that the fitted model gives a size."""
    messages, moved = _cost(one.operation, one.implementation, size, ranks)
    return messages * one.alpha + moved / one.beta


def _fit(report: BandwidthReport) -> Fit:
    first = report.rows[0]
    kind = first.operation, first.implementation
    seconds = np.array([row.seconds for row in report.rows])
    design = np.array([_cost(*kind, row.size_bytes, report.ranks) for row in report.rows])
    alpha, inverse = _non_negative(design / seconds[:, None])
    error = np.abs(design @ np.array([alpha, inverse]) / seconds - 1)
    beta = 1 / inverse if inverse else math.inf
    return Fit(*kind, float(alpha), float(beta), float(np.median(error)), _words(*kind))


def _cost(operation: str, implementation: str, size: float, ranks: int) -> tuple[float, float]:
    """Messages one after the other, and bytes one after the other."""
    model = _model(operation, implementation)
    if model is None:
        return 1.0, size
    return model(0, ranks, 1.0, 1.0), model(size, ranks, 0.0, 1.0)


def _model(operation: str, implementation: str) -> Any:
    return _MODELS.get((operation, implementation)) or _MODELS.get(operation)


def _words(operation: str, implementation: str) -> str:
    model = _model(operation, implementation)
    formula = "alpha + n/beta" if model is None else str(model.__doc__)
    return f"as if {formula}" if implementation == "torch" and model else formula


def _non_negative(design: np.ndarray) -> tuple[float, float]:
    """Two coefficients, none negative, for a goal of ones."""
    goal = np.ones(len(design))
    best = (math.inf, (0.0, 0.0))
    for chosen in itertools.chain([(0, 1)], [(0,), (1,)]):
        columns = design[:, chosen]
        scale = np.abs(columns).max(axis=0)
        found = np.linalg.lstsq(columns / scale, goal, rcond=None)[0] / scale
        rest = float(((columns @ found - goal) ** 2).sum())
        if (found >= 0).all() and rest < best[0]:
            whole = [0.0, 0.0]
            for place, value in zip(chosen, found, strict=True):
                whole[place] = float(value)
            best = rest, (whole[0], whole[1])
    return best[1]
