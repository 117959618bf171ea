"""Recordings of GPUs that nobody measured: computed from data sheets by a model that is written here.

``python -m labkit.telemetry.traces.modelled`` computes them anew. The model has few rules, all of them round:

* power: a tenth of the limit when idle, 7 % of it more as soon as a kernel runs (clocks rise), and the rest in
  proportion to the share of the peak that is achieved;
* temperature: 35 °C, and 45 °C more at the power limit, approached with a time constant of 20 s;
* utilisation: 100 % whenever some kernel runs, however little of the GPU it fills, and also when a
  communication library waits for its peers by asking again and again;
* training reaches 45 % of the dense bf16 peak, and what is sent over a link is what the link carries.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from labkit.hardware import gpu as catalogued
from labkit.telemetry.recording import Recording
from labkit.telemetry.series import Series
from labkit.telemetry.traces import FOLDER

INTERVAL = 0.5
CARD = catalogued("H100")
LIMIT_W = CARD.power_W
PEAK_TFLOPS = CARD.peak_flops("fp16_tensor") / 1e12
MACHINE = f"modelled: {{}} {CARD.name}, figures from the data sheet, nothing was measured"
COOLEST, WARMER, SECONDS = 35.0, 45.0, 20.0


@dataclass(frozen=True)
class State:
    """What a GPU does: busy or not, the share of its peak it reaches, its memory in use, in per cent."""

    busy: bool = False
    share: float = 0.0
    memory: float = 5.0

    @property
    def watts(self) -> float:
        return LIMIT_W * (0.1 + 0.07 * self.busy + 0.83 * self.share)


@dataclass(frozen=True)
class Phase:
    """A stretch of time: its name (empty: no span), seconds, what each GPU does, and metrics of one's own."""

    name: str
    seconds: float
    gpus: tuple[State, ...]
    own: dict[str, float]
    network_MBps: float | None = None


def computed(phases: list[Phase]) -> Recording:
    """The recording that these phases make, two samples a second."""
    gpus = len(phases[0].gpus)
    recording = Recording(INTERVAL, began=0.0, machine=MACHINE.format(gpus))
    degrees = [COOLEST + WARMER * 0.1] * gpus
    at = 0.0
    for phase in phases:
        begin = at
        for _ in range(round(phase.seconds / INTERVAL)):
            at += INTERVAL
            degrees = [warmed(*pair) for pair in zip(degrees, phase.gpus, strict=True)]
            recording.append(at, _sample(phase, degrees), {})
        if phase.name:
            recording.end(recording.begin(phase.name, begin), at)
    return recording


def warmed(degrees: float, state: State) -> float:
    """Its temperature one interval later."""
    goal = COOLEST + WARMER * state.watts / LIMIT_W
    return degrees + (goal - degrees) * (1 - math.exp(-INTERVAL / SECONDS))


def _sample(phase: Phase, degrees: list[float]) -> dict[Series, float | None]:
    values: dict[Series, float | None] = {}
    for number, state in enumerate(phase.gpus):
        found = (100.0 * state.busy, state.memory, state.watts, degrees[number])
        values |= dict(zip(gpu_series(number), found, strict=True))
    if phase.network_MBps is not None:
        values[NETWORK] = phase.network_MBps
    for name, value in phase.own.items():
        values[Series(f"own.{name}", name, _unit(name), "modelled", "own")] = value
    return values


def _unit(name: str) -> str:
    return name.split()[-1] if "/" in name or name.endswith("TFLOPS") else ""


def gpu_series(number: int) -> tuple[Series, ...]:
    """Utilisation, memory, power and temperature of a GPU, in this order."""
    device = f"GPU {number}"
    memory = f"{CARD.memory_GB:g} GB"

    def one(metric: str, suffix: str, unit: str, group: str, of: str, limit: float | None) -> Series:
        hidden = metric == "temperature"
        return Series(
            f"gpu.{number}.{metric}", device + suffix, unit, "modelled", group, of, hidden, device, limit
        )

    return (
        one("utilization", "", "%", "gpu", "", None),
        one("memory", " memory", "%", "gpu memory", memory, 100.0),
        one("power", " power", "W", "gpu power", f"{LIMIT_W:g} W", LIMIT_W),
        one("temperature", " temperature", "°C", "gpu temperature", "slows down at 87 °C", 87.0),
    )


NETWORK = Series("network.sent", "Network sent", "MB/s", "modelled", "network", device="Network")
IDLE = State()
TRAINING = State(True, 0.45, 70.0)
SPINNING = State(True, 0.02, 70.0)
LINK_MBPS = 25e9 / 8 / 1e6  # a network card of 25 Gbit/s, one way
STEP_TFLOP = 200.0  # of one step on one GPU


def busy_not_full() -> list[Phase]:
    """One GPU reads 100 % twice: with one block that fills a hundredth of it, and with a large product."""
    small, large = State(True, 0.004, 12.0), State(True, 0.6, 12.0)
    return [
        Phase("", 5, (IDLE,), {"TFLOPS": 0.0}),
        Phase("one block", 15, (small,), {"TFLOPS": 0.004 * PEAK_TFLOPS}),
        Phase("", 5, (IDLE,), {"TFLOPS": 0.0}),
        Phase("all multiprocessors", 15, (large,), {"TFLOPS": 0.6 * PEAK_TFLOPS}),
        Phase("", 5, (IDLE,), {"TFLOPS": 0.0}),
    ]


def one_straggler() -> list[Phase]:
    """Eight GPUs at 100 %; from the middle on seven of them wait for GPU 5, which has twice the work."""
    even, waiting = (TRAINING,) * 8, State(True, 0.235, 70.0)
    uneven = (*(waiting,) * 5, TRAINING, *(waiting,) * 2)
    fast = 0.45 * PEAK_TFLOPS / STEP_TFLOP
    return [
        Phase("even", 20, even, {"steps/s": fast}),
        Phase("uneven", 25, uneven, {"steps/s": fast / 2}),
    ]


def _limited(gpus: tuple[State, ...], own: dict[str, float], network: float) -> list[Phase]:
    idle = (IDLE,) * len(gpus)
    none = dict.fromkeys(own, 0.0)
    rest = Phase("", 3, idle, none, 0.0)
    return [rest, Phase("work", 14, gpus, own, network), rest]


def run_4() -> list[Phase]:
    """Four GPUs that compute all the time."""
    rate = 0.45 * PEAK_TFLOPS / STEP_TFLOP
    return _limited((TRAINING,) * 4, {"steps/s": rate, "jobs waiting": 0.0}, 120.0)


def run_5() -> list[Phase]:
    """Four GPUs that wait most of the time for gradients, which a slow network carries."""
    return _limited((SPINNING,) * 4, {"steps/s": 0.1, "jobs waiting": 0.0}, LINK_MBPS)


def run_6() -> list[Phase]:
    """One job holds a GPU; three more jobs wait for that same one, and three GPUs have none."""
    rate = 0.45 * PEAK_TFLOPS / STEP_TFLOP
    return _limited((TRAINING, IDLE, IDLE, IDLE), {"steps/s": rate, "jobs waiting": 3.0}, 0.0)


TRACES: dict[str, Callable[[], list[Phase]]] = {
    "busy-not-full": busy_not_full,
    "one-straggler": one_straggler,
    "run-4": run_4,
    "run-5": run_5,
    "run-6": run_6,
}

if __name__ == "__main__":
    for name, phases in TRACES.items():
        computed(phases()).save(FOLDER / f"{name}.npz")
