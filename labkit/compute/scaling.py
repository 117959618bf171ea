"""What more workers can bring: Amdahl's law, Gustafson's law, and this machine's own answer."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from labkit.compute import child, host
from labkit.compute.curves import Curve
from labkit.errors import LabkitError

MACHINE = "this machine's CPU"
LIMIT_S = 120.0
LARGE = 2_000_000  # pixels; from here on chance disturbs less, and time is dearer


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
    question = {"crews": list(workers), "filter": filter, "repeats": repeats, "image": _packed(image)}
    found = child.ask("labkit.compute.scaling", question, LIMIT_S)
    return Scaling(tuple(workers), tuple(found["strong_s"]), tuple(found["weak_s"]), cores())


def over_size(
    filter: str, image: np.ndarray, sides: Sequence[int], workers: int = 2
) -> tuple[Curve, Curve, Curve]:
    """Square images of these sides: one process, a crew already started, and a crew that must be started."""
    question = {"sides": list(sides), "filter": filter, "workers": workers, "image": _packed(image)}
    found = child.ask("labkit.compute.scaling", question, LIMIT_S)
    sizes = tuple(side * side for side in sides)
    lines = {
        "no worker": found["alone_s"],
        f"{workers} workers, already started": found["warm_s"],
        f"{workers} workers, started first": [found["start_s"] + seconds for seconds in found["warm_s"]],
    }
    one, warm, cold = (Curve(name, "measured", MACHINE, sizes, tuple(times)) for name, times in lines.items())
    return one, warm, cold


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Measure, in a process of its own: the large images never swell the notebook's kernel."""
    image = _unpacked(question["image"])
    if "sides" in question:
        return _time_sizes(question["filter"], image, question["sides"], question["workers"])
    return _time_crews(question["filter"], image, question["crews"], question["repeats"])


def _time_sizes(filter: str, image: np.ndarray, sides: Sequence[int], workers: int) -> dict[str, Any]:
    alone_s, warm_s = [], []
    with host.Workers(workers) as crew:
        for picture in (host.enlarge(image, side, side) for side in sides):
            repeats = 3 if picture.size < LARGE else 2
            alone = partial(host.alone, filter, picture, np.empty_like(picture))
            alone_s.append(host.best(alone, repeats).total_s)
            warm_s.append(_best_s(crew, filter, picture, repeats))
        return {"alone_s": alone_s, "warm_s": warm_s, "start_s": crew.start_s}


def _time_crews(filter: str, image: np.ndarray, crews: Sequence[int], repeats: int) -> dict[str, Any]:
    strong_s, weak_s = [], []
    for workers in crews:
        many = host.enlarge(image, image.shape[0] * workers, image.shape[1])
        with host.Workers(workers) as crew:
            strong_s.append(_best_s(crew, filter, image, repeats))
            weak_s.append(_best_s(crew, filter, many, repeats))
    return {"strong_s": strong_s, "weak_s": weak_s}


def _best_s(crew: host.Workers, filter: str, image: np.ndarray, repeats: int) -> float:
    out = np.empty_like(image)
    return host.best(lambda: crew.run(filter, image, out), repeats).total_s


def _packed(image: np.ndarray) -> dict[str, Any]:
    pixels = np.ascontiguousarray(image, np.float32)
    return {"shape": pixels.shape, "float32": base64.b64encode(pixels.tobytes()).decode()}


def _unpacked(packed: dict[str, Any]) -> np.ndarray:
    pixels = np.frombuffer(base64.b64decode(packed["float32"]), np.float32)
    return pixels.reshape(packed["shape"])


if __name__ == "__main__":
    print(json.dumps(answer(json.loads(sys.stdin.readline()))))
