"""Gates: what the counters of a launch may be at most. They are exact, so a gate is met or it is not.

A gate says what it found, what the target is, and which line of the answer is to blame for most of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labkit.compute.emulator.counts import Counts

Measure = Callable[[Counts], float]


@dataclass(frozen=True)
class Gate:
    """A counter, or a ratio of counters, and the most it may be.

    Attributes
    ----------
    words : str
        What is counted, as it follows a number: ``"sectors a load request"``.
    measure : function of Counts
        The figure, from the counters of a launch or of one of its lines.
    target : float
        The most it may be.
    why : str
        What an answer that is above does wrong, in one sentence.
    told : bool
        Whether an answer that meets the gate is told its figure.
    """

    words: str
    measure: Measure
    target: float
    why: str
    told: bool = True

    def sentence(self, found: float) -> str:
        return f"{_short(found)} {self.words}, target {_short(self.target)}"


def sectors_a_request(way: str) -> Measure:
    """Sectors that the average request of loads or stores of global memory touches; 0 without requests."""

    def measure(counts: Counts) -> float:
        requests = counts[f"global_{way}_requests"]
        return counts[f"global_{way}_sectors"] / requests if requests else 0.0

    return measure


def counter(*keys: str) -> Measure:
    """The sum of some counters."""
    return lambda counts: float(sum(counts.get(key, 0) for key in keys))


def judge(gates: Sequence[Gate], lines: Mapping[str, Any]) -> tuple[str, str] | None:
    """What the first gate that is not met has to say, with its why; None when all are met."""
    counted = {line: Counts(values) for line, values in lines.items()}
    for gate in gates:
        found = gate.measure(total(counted))
        if found > gate.target:
            return f"The values are right, but: {gate.sentence(found)}{_blame(gate, counted)}.", gate.why
    return None


def reached(gates: Sequence[Gate], lines: Mapping[str, Any]) -> tuple[str, ...]:
    """One line a gate: what was found, and the target."""
    whole = total({line: Counts(values) for line, values in lines.items()})
    return tuple(gate.sentence(gate.measure(whole)) for gate in gates if gate.told)


def total(lines: Mapping[str, Counts]) -> Counts:
    """The counters of all lines together."""
    keys = {key: None for counts in lines.values() for key in counts}
    return Counts({key: sum(counts.get(key, 0) for counts in lines.values()) for key in keys})


def _blame(gate: Gate, lines: Mapping[str, Counts]) -> str:
    """The line with the largest figure, where there is one."""
    worst = max(lines, key=lambda line: gate.measure(lines[line]), default="")
    if not worst or not gate.measure(lines[worst]):
        return ""
    return f" (most in line {worst})"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else f"{number:,.3g}"
