"""What deserves attention, in words: uneven load, full memory, heat, low clocks, and busy GPUs that wait.

Each rule looks at the last seconds and not at one sample, so that a peak raises no alarm.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from labkit.telemetry.series import Reading, Series

WINDOW = 6.0  # seconds that a rule looks back
FEWEST = 3  # samples in the window
REFRESH = 8.0  # seconds after which figures in a standing sentence are brought up to date
BUSY, WAITING = 90.0, 0.4  # per cent busy; share of the power limit below which a busy GPU does little
FULL = 95.0  # per cent of a memory
NEAR = 5.0  # degrees below the temperature at which a GPU slows down
UNEVEN = 40.0  # per cent between the most and the least busy GPU
RANK = "Rank "  # how the names of ranks begin
HALF = 50.0  # per cent of the samples


@dataclass
class Device:
    """Means over the window of one device's metrics, by the last word of their keys, and their limits."""

    name: str
    means: dict[str, float] = field(default_factory=dict)
    series: dict[str, Series] = field(default_factory=dict)

    def limit(self, metric: str) -> float | None:
        return self.series[metric].limit if metric in self.series else None


@dataclass(frozen=True)
class Notice:
    """One sentence; ``kind`` and ``devices`` stay the same while its figures move."""

    kind: str
    devices: tuple[str, ...]
    sentence: str


class Watch:
    """Looks at every sample and keeps the sentences that hold now."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, dict[Series, float]]] = deque()
        self._notices: tuple[Notice, ...] = ()
        self._said_at = -REFRESH

    def look(self, now: float, readings: Sequence[Reading]) -> tuple[str, ...]:
        """Take one sample in at ``now`` seconds; the sentences that hold, the gravest first."""
        known = {one.series: one.value for one in readings if one.value is not None and one.series.device}
        self._seen.append((now, known))
        while self._seen[0][0] < now - WINDOW:
            self._seen.popleft()
        found = tuple(notices(self._devices())) if len(self._seen) >= FEWEST else ()
        same = [(one.kind, one.devices) for one in found] == [
            (one.kind, one.devices) for one in self._notices
        ]
        if not same or now - self._said_at >= REFRESH:
            self._notices, self._said_at = found, now
        return tuple(one.sentence for one in self._notices)

    def _devices(self) -> list[Device]:
        """Those that are here; of ranks only what they did without a break, since an earlier run is history."""
        values: dict[Series, list[float]] = defaultdict(list)
        samples: dict[str, int] = defaultdict(int)
        here = {series.device for series in self._seen[-1][1]}
        for _, known in reversed(self._seen):
            present = {series.device for series in known}
            here = {name for name in here if name in present or not name.startswith(RANK)}
            for name in here:
                samples[name] += 1
            for series, value in known.items():
                if series.device in here:
                    values[series].append(value)
        devices: dict[str, Device] = {}
        for series, found in values.items():
            if samples[series.device] >= FEWEST:
                device = devices.setdefault(series.device, Device(series.device))
                metric = series.key.rpartition(".")[2]
                device.means[metric], device.series[metric] = sum(found) / len(found), series
        return list(devices.values())


def notices(devices: list[Device]) -> Iterator[Notice]:
    """What is to be said of these devices."""
    for kind, rule in RULES:
        of = {device.name: sentence for device in devices if (sentence := rule(device))}
        if of:
            yield Notice(kind, tuple(of), f"{names(list(of))} {next(iter(of.values()))}")
    yield from _uneven([device for device in devices if "utilization" in device.means])
    yield from _waited_for([device for device in devices if {"compute", "wait"} <= device.means.keys()])


def _hot(device: Device) -> str:
    degrees, limit = device.means.get("temperature"), device.limit("temperature")
    if degrees is None or limit is None or degrees < limit - NEAR:
        return ""
    return f"at {degrees:.0f} °C: clocks are lowered at {limit:.0f} °C"


def _slowed_by_heat(device: Device) -> str:
    return "slowed down by heat: look at the airflow" if device.means.get("slowed_by_heat", 0) >= HALF else ""


def _slowed_by_hardware(device: Device) -> str:
    slowed = device.means.get("slowed_by_hardware", 0) >= HALF
    return "slowed down by the hardware: heat, or a power supply that asks for less" if slowed else ""


def _full(device: Device) -> str:
    share = device.means.get("memory")
    if share is None or share < FULL:
        return ""
    of = device.series["memory"].of
    return f"memory {share:.0f} % full{f' (of {of})' if of else ''}: the next allocation may fail"


def _waiting(device: Device) -> str:
    watts, limit = device.means.get("power"), device.limit("power")
    if watts is None or not limit or device.means.get("utilization", 0) < BUSY or watts > WAITING * limit:
        return ""
    busy = device.means["utilization"]
    return f"{busy:.0f} % busy at {watts:.0f} W of {limit:.0f} W: probably waiting (for data, or for another GPU)"


def _at_power_limit(device: Device) -> str:
    limit = device.limit("power")
    if device.means.get("at_power_limit", 0) < HALF:
        return ""
    return f"at the power limit{f' of {limit:.0f} W' if limit else ''}: clocks are lower than they could be"


def _uneven(gpus: list[Device]) -> Iterator[Notice]:
    if len(gpus) < 2:
        return
    most, least = (pick(gpus, key=lambda gpu: gpu.means["utilization"]) for pick in (max, min))
    high, low = most.means["utilization"], least.means["utilization"]
    if high - low >= UNEVEN:
        sentence = f"The load is uneven: {most.name} is {high:.0f} % busy, {least.name} {low:.0f} %"
        yield Notice("uneven", (most.name, least.name), sentence)


def _waited_for(ranks: list[Device]) -> Iterator[Notice]:
    """Ranks that wait while one computes: it has more to do than they, or is slower."""
    if len(ranks) < 2:
        return
    slow = max(ranks, key=lambda rank: rank.means["compute"])
    computes = slow.means["compute"]
    idle = [rank for rank in ranks if rank.means["wait"] >= UNEVEN <= computes - rank.means["compute"]]
    if idle:
        waits = max(rank.means["wait"] for rank in idle)
        whom = ", ".join(rank.name.removeprefix(RANK) for rank in idle)
        who = f"Ranks {whom} wait up to" if len(idle) > 1 else f"Rank {whom} waits"
        busy = slow.name.removeprefix(RANK)
        sentence = f"{who} {waits:.0f} % of the time for rank {busy}, which computes {computes:.0f} % of it"
        yield Notice("imbalance", (slow.name, *(rank.name for rank in idle)), sentence)


RULES: tuple[tuple[str, Callable[[Device], str]], ...] = (
    ("hardware", _slowed_by_hardware),
    ("heat", _slowed_by_heat),
    ("hot", _hot),
    ("full", _full),
    ("waiting", _waiting),
    ("power", _at_power_limit),
)


def names(devices: list[str]) -> str:
    """``"GPU 0:"``, ``"GPUs 0, 2:"``, ``"GPUs 0 to 7:"``, and whatever is no GPU by its name."""
    numbers = [name.removeprefix("GPU ") for name in devices if name.startswith("GPU ")]
    others = [name for name in devices if not name.startswith("GPU ")]
    if len(numbers) > 2 and numbers == [str(int(numbers[0]) + i) for i in range(len(numbers))]:
        others.insert(0, f"GPUs {numbers[0]} to {numbers[-1]}")
    elif numbers:
        others.insert(0, f"GPU{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}")
    return f"{', '.join(others)}:"
