"""Constants that links alone do not tell, fitted to measurements: at most three for a system.

    T(S) = start + sqrt(pipeline x) + x / efficiency,    x = S / (algorithm bandwidth the simulator finds)

`start` is what the smallest message takes: software, and every hop's latency. `efficiency` is the share of the
simulated bandwidth that large messages get. The middle term is the price of a pipeline: of m chunks through h
stages the last leaves after (h - 1 + m)(a + x/m), which is least at m = sqrt((h - 1) x / a), and there exceeds
x + (h - 1) a by 2 sqrt((h - 1) a x); so `pipeline` stands for 4 (h - 1) a. Without that term sizes in the middle are
missed by half.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.errors import LabkitError
from labkit.hardware.html import facts_table
from labkit.hardware.units import parse, show_rate, show_time
from labkit.network.fabric.measurements import Measured, measured
from labkit.network.fabric.result import CollectiveResult, LinkLoads

if TYPE_CHECKING:
    from labkit.network.fabric.machine import Fabric

CONSTANTS = ("start", "pipeline", "bandwidth")


@dataclass(frozen=True)
class Calibration:
    """Fitted constants: seconds `start_s` and `pipeline_s`, and `bandwidth` in bytes/s.

    `simulated_bandwidth` is what the links of the catalogue would allow, None if there was no fabric to ask.
    `worst` and `median` are relative errors on the sizes fitted to.
    """

    start_s: float
    pipeline_s: float
    bandwidth: float
    simulated_bandwidth: float | None
    source: str
    sizes: int
    median: float
    worst: float

    @property
    def efficiency(self) -> float | None:
        """The share of the simulated bandwidth that was reached."""
        return None if self.simulated_bandwidth is None else self.bandwidth / self.simulated_bandwidth

    @property
    def label(self) -> str:
        return f"modelled, constants fitted to {self.source}"

    def predict(self, size: str | float) -> float:
        """Seconds for a size, on the system fitted to. A prediction of the model, not a measurement."""
        count = parse(size, "size")
        base = self.simulated_bandwidth or self.bandwidth
        return self._time(count / base)

    def errors(self, measurements: Any) -> np.ndarray:
        """Relative errors of the predictions, signed, one a size of `measurements`."""
        known = measured(measurements)
        return np.array([self.predict(s) / t - 1 for s, t in zip(known.sizes, known.seconds, strict=True)])

    def _time(self, transfer: float) -> float:
        return self.start_s + math.sqrt(self.pipeline_s * transfer) + transfer / (self.efficiency or 1.0)

    def applied(self, result: CollectiveResult, simulated_bandwidth: float) -> CollectiveResult:
        """The result with these constants, on a fabric whose links allow `simulated_bandwidth`."""
        seconds = self._time(result.size_bytes / simulated_bandwidth)
        share = result.seconds / seconds
        links = result.links
        return replace(
            result,
            seconds=seconds,
            algorithm_bandwidth=result.algorithm_bandwidth * share,
            bus_bandwidth=result.bus_bandwidth * share,
            links=LinkLoads(links.names, links.kinds, links.bytes, links.busy * share),
            timeline=None,
            calibration=self.source,
        )

    def to_dict(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {"label": self.label, **plain, "efficiency": self.efficiency}

    def __repr__(self) -> str:
        share = "" if self.efficiency is None else f" ({self.efficiency:.0%} of the simulated)"
        return (
            f"Calibration(start {show_time(self.start_s)}, pipeline {show_time(self.pipeline_s)}, "
            f"{show_rate(self.bandwidth)}{share}; {self.sizes} sizes of {self.source}, off by {self.median:.1%} in the "
            f"median and {self.worst:.1%} at worst)"
        )

    def _repr_html_(self) -> str:
        share = "" if self.efficiency is None else f", {self.efficiency:.0%} of what the links would allow"
        facts = {
            "start": show_time(self.start_s),
            "pipeline": show_time(self.pipeline_s),
            "algorithm bandwidth": show_rate(self.bandwidth) + share,
            "error on the sizes fitted to": f"{self.median:.1%} in the median, {self.worst:.1%} at worst",
        }
        return facts_table(facts, self.label)


def calibrate(
    measurements: Any,
    fabric: Fabric | None = None,
    operation: str = "all_reduce",
    constants: Sequence[str] = CONSTANTS,
    name: str | None = None,
    **options: Any,
) -> Calibration:
    """Fit at most three constants to measurements, by least squares of the relative errors.

    Parameters
    ----------
    measurements : see `labkit.network.fabric.measurements.measured`
    fabric : Fabric, optional
        Whose links say how much bandwidth there is; without one, all of it is fitted.
    operation : str
        ``"all_reduce"``, ``"broadcast"``, ...; `options` go to it (algorithm, chunks, ...).
    constants : sequence
        Which of ``"start"``, ``"pipeline"``, ``"bandwidth"`` to fit. Point-to-point times want the first and the last
        (alpha and beta); bandwidth left out stays that of the links.
    name : str, optional
        What to call the measurements.

    Raises
    ------
    LabkitError
        For fewer sizes than constants, and measurements that cannot be read.
    """
    known = measured(measurements, name)
    if unknown := set(constants) - set(CONSTANTS):
        raise LabkitError(f"{min(unknown)!r} is no constant of the model: fit {', '.join(CONSTANTS)}.")
    if fabric is None and "bandwidth" not in constants:
        raise LabkitError("Without a fabric nothing says how much bandwidth there is: fit 'bandwidth' too.")
    if len(set(known.sizes)) < len(constants):
        raise LabkitError(
            f"{len(constants)} constants need as many sizes, and {known.source} has {len(known.sizes)}."
        )
    simulated = None if fabric is None else fabric.limit(operation, **options)
    return _fitted(known, simulated, constants)


def _fitted(known: Measured, simulated: float | None, constants: Sequence[str]) -> Calibration:
    sizes, seconds = np.array(known.sizes), np.array(known.seconds)
    base = simulated or 1.0
    transfer = sizes / base
    columns = {"start": np.ones(len(sizes)), "pipeline": np.sqrt(transfer), "bandwidth": transfer}
    fixed = transfer if "bandwidth" not in constants else np.zeros(len(sizes))
    found = _least_squares({key: columns[key] / seconds for key in constants}, 1 - fixed / seconds)
    slope = found.get("bandwidth", 1.0)
    if slope * transfer.max() < 1e-6 * seconds.max():
        raise LabkitError(
            f"{known.source} takes no longer for larger sizes, so no bandwidth can be fitted: add sizes."
        )
    made = Calibration(
        start_s=found.get("start", 0.0),
        # Fitted in units of the simulated transfer time; without one, of the fitted one.
        pipeline_s=found.get("pipeline", 0.0) ** 2 * (1.0 if simulated else 1 / slope),
        bandwidth=base / slope,
        simulated_bandwidth=simulated,
        source=known.source,
        sizes=len(sizes),
        median=0.0,
        worst=0.0,
    )
    errors = np.abs(made.errors(known))
    return replace(made, median=float(np.median(errors)), worst=float(errors.max()))


def _least_squares(columns: dict[str, np.ndarray], goal: np.ndarray) -> dict[str, float]:
    """Coefficients, none negative, with the least sum of squares; three unknowns allow to try every subset."""
    best: tuple[float, dict[str, float]] = (math.inf, {})
    names = list(columns)
    for count in range(len(names), 0, -1):
        for chosen in itertools.combinations(names, count):
            matrix = np.stack([columns[name] for name in chosen], axis=1)
            scale = np.abs(matrix).max(axis=0)
            solution = np.linalg.lstsq(matrix / scale, goal, rcond=None)[0] / scale
            rest = float(((matrix @ solution - goal) ** 2).sum())
            if (solution >= 0).all() and rest < best[0]:
                best = rest, dict(zip(chosen, map(float, solution), strict=True))
    return {**dict.fromkeys(names, 0.0), **best[1]}
