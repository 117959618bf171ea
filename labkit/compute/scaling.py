"""What more workers can bring: Amdahl's law, Gustafson's law, and this machine's own answer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from labkit.compute import host
from labkit.compute.curves import Curve
from labkit.errors import LabkitError

MACHINE = "this machine's CPU"


def amdahl(workers: float, serial: float) -> float:
    """Speed-up of one fixed problem whose share ``serial`` (0 to 1) cannot be divided among the workers.

    Source: G. Amdahl, AFIPS Spring Joint Computer Conference, 1967.
    """
    return 1 / (_share(serial) + (1 - serial) / workers)


def gustafson(workers: float, serial: float) -> float:
    """Speed-up when the problem grows with the workers, so that the time stays: each brings work of its own.

    ``serial`` is the share of the time that the *many* workers spend on the part they cannot divide.
    Source: J. Gustafson, Reevaluating Amdahl's law, Communications of the ACM 31, 1988.
    """
    return workers - _share(serial) * (workers - 1)


def _share(serial: float) -> float:
    if not 0 <= serial <= 1:
        raise LabkitError(f"A serial share lies between 0 and 1; {serial!r} does not.")
    return serial


@dataclass(frozen=True)
class Scaling:
    """Seconds (the fastest of several runs) with 1, 2, 4 ... workers, measured on this machine's CPU.

    ``strong_s``: one photograph, shared by all. ``weak_s``: a photograph for every worker.
    """

    workers: tuple[int, ...]
    strong_s: tuple[float, ...]
    weak_s: tuple[float, ...]
    cores: int

    @property
    def strong(self) -> tuple[float, ...]:
        """Speed-up on the fixed problem: time of one worker over time of many."""
        return tuple(self.strong_s[0] / seconds for seconds in self.strong_s)

    @property
    def weak(self) -> tuple[float, ...]:
        """Scaled speed-up: as many times the work, in so many times the time of one."""
        return tuple(
            n * self.weak_s[0] / seconds for n, seconds in zip(self.workers, self.weak_s, strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "how": "measured", "on": MACHINE}


def cores() -> int:
    """Cores this process may use (a container or a batch system may grant fewer than the machine has)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def measure(filter: str, image: np.ndarray, workers: Sequence[int] = (1, 2, 4), repeats: int = 5) -> Scaling:
    """Filter the image with crews of these sizes, already started, copies included."""
    strong, weak = [], []
    for count in workers:
        many = host.enlarge(image, image.shape[0] * count, image.shape[1])
        with host.Workers(count) as crew:
            strong.append(_best_s(crew, filter, image, repeats))
            weak.append(_best_s(crew, filter, many, repeats))
    return Scaling(tuple(workers), tuple(strong), tuple(weak), cores())


def _best_s(crew: host.Workers, filter: str, image: np.ndarray, repeats: int) -> float:
    out = np.empty_like(image)
    return host.best(lambda: crew.run(filter, image, out), repeats).total_s


def over_size(
    filter: str, image: np.ndarray, sides: Sequence[int], workers: int = 2
) -> tuple[Curve, Curve, Curve]:
    """Square images of these sides: alone, by a crew already started, and by a crew that must first be
    started."""
    alone_s, warm_s = [], []
    with host.Workers(workers) as crew:
        for picture in (host.enlarge(image, side, side) for side in sides):
            alone_s.append(host.best(partial(host.alone, filter, picture, np.empty_like(picture)), 3).total_s)
            warm_s.append(_best_s(crew, filter, picture, 3))
        start_s = crew.start_s
    sizes = tuple(side * side for side in sides)
    lines = {
        "no worker": alone_s,
        f"{workers} workers, already started": warm_s,
        f"{workers} workers, started first": [start_s + seconds for seconds in warm_s],
    }
    one, warm, cold = (Curve(name, "measured", MACHINE, sizes, tuple(times)) for name, times in lines.items())
    return one, warm, cold
