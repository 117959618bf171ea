"""Lesson 00: what each check asks, and the answers, worked out or looked up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.course.checks import Call
from labkit.course.lessons.l00_reports import REPORTS


@dataclass(frozen=True)
class Printed:
    """One figure as it is printed: the GB/s one way for each GPU, and the factors that are easily forgotten."""

    text: str
    GBps: float
    both_ways: bool = False
    bits: bool = False
    gpus: int = 1  # that share what is printed


FIGURES = {
    "a": Printed("InfiniBand HDR, 200 Gbps; every GPU has a port of its own", 25.0, bits=True),
    "b": Printed("A100, NVLink: 600 GB/s", 300.0, both_ways=True),
    "c": Printed("PCIe 4.0 x16: 64 GB/s", 31.5, both_ways=True),
    "d": Printed("H100, NVLink: 900 GB/s", 450.0, both_ways=True),
    "e": Printed("four network ports of 400 Gbps in a server with eight GPUs", 25.0, bits=True),
    "f": Printed("NVSwitch in a DGX A100 (eight GPUs): 4.8 TB/s", 300.0, both_ways=True, gpus=8),
    "g": Printed("100 Gigabit Ethernet, one port for two GPUs", 6.25, bits=True, gpus=2),
    "h": Printed("PCIe 5.0: 32 GT/s for each of 16 lanes", 63.0, bits=True),
}
TOLERANCE = 0.025  # 64 GB/s halved is 32; the line code of PCIe leaves 31.5

LAYERS = ("compute", "communication", "scheduling")


@dataclass(frozen=True)
class Truth:
    """What limits a recorded run, the series that show it, and where: a series that has to stay below a bound."""

    layer: str
    series: tuple[str, ...]
    below: tuple[str, float] | None = None


_GPUS = range(4)
_POWER = tuple(f"gpu.{n}.power" for n in _GPUS)
RUNS = {
    "run-1": Truth("compute", ("own.workers busy", "cpu", "cpu.0", "cpu.1")),
    "run-2": Truth("communication", ("own.received MB/s", "network.local")),
    "run-3": Truth("scheduling", ("own.workers busy", "own.images waiting"), ("own.workers busy", 1.4)),
    "run-4": Truth("compute", _POWER),
    "run-5": Truth("communication", ("network.sent", *_POWER)),
    "run-6": Truth(
        "scheduling",
        ("own.jobs waiting", *(f"gpu.{n}.{what}" for n in (1, 2, 3) for what in ("utilization", "power"))),
    ),
}


def per_second() -> list[tuple[float, float, float]]:
    """``(done, seconds, rate)``: whole and broken numbers, nothing done, much and little time."""
    return [(120, 4, 30.0), (7, 2, 3.5), (0, 5, 0.0), (1, 8, 0.125), (3_000_000, 0.5, 6e6)]


def per_second_calls(_: Any) -> Iterator[Call]:
    for done, seconds, rate in per_second():
        yield Call({"done": done, "seconds": seconds}, rate)


def report_table(random: np.random.Generator) -> str:
    """A learner's own report."""
    return REPORTS[int(random.integers(len(REPORTS)))].text


def report_calls(text: str) -> Iterator[Call]:
    yield Call({"report": text}, next(report for report in REPORTS if report.text == text))


def layers_table(random: np.random.Generator) -> dict[str, str]:
    """Three runs, one for each layer, in an order of the learner's own; some measured, some modelled."""
    by_layer = [[name for name, truth in RUNS.items() if truth.layer == layer] for layer in LAYERS]
    order = random.permutation(len(LAYERS))
    chosen = [by_layer[layer][int(random.integers(2))] for layer in order]
    return dict(zip("ABC", chosen, strict=True))


def layers_calls(table: dict[str, str]) -> Iterator[Call]:
    yield Call({"runs": dict(table)}, {name: RUNS[run] for name, run in table.items()})


def begun(answer: dict[str, Any]) -> bool:
    return not all(
        value is None or (isinstance(value, str) and not value.strip()) for value in answer.values()
    )
