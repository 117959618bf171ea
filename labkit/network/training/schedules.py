"""Pipeline schedules: in which order a stage runs its micro-batches forward and backward.

GPipe runs all forward, then all backward, and keeps the activations of all of them; 1F1B ("one forward, one
backward") begins backward as soon as it can, with the same bubble and activations of at most as many
micro-batches as there are stages. Sources: Huang et al., "GPipe", 2019; Narayanan et al., "PipeDream", 2019.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from labkit.errors import LabkitError


class Step(NamedTuple):
    """``"forward"`` or ``"backward"`` of one micro-batch."""

    what: str
    micro_batch: int


class Placed(NamedTuple):
    """A step on the clock of a model: times in units of the cost given."""

    stage: int
    step: Step
    start: float
    end: float


@dataclass(frozen=True)
class Schedule:
    """``steps[stage]`` is what a stage does, in order."""

    name: str
    stages: int
    micro_batches: int
    steps: tuple[tuple[Step, ...], ...]

    def kept(self, stage: int) -> int:
        """Micro-batches whose activations a stage holds at most at once."""
        held = most = 0
        for step in self.steps[stage]:
            held += 1 if step.what == "forward" else -1
            most = max(most, held)
        return most

    def placed(self, forward: float = 1.0, backward: float = 2.0) -> tuple[Placed, ...]:
        """When each step runs, where messages take no time: modelled.

        Raises
        ------
        LabkitError
            When the stages wait for each other for ever.
        """
        return _play(self, {"forward": forward, "backward": backward})

    def bubble(self, forward: float = 1.0, backward: float = 2.0) -> float:
        """The fraction of the stages' time that they idle; (p - 1) / (m + p - 1) for both schedules."""
        placed = self.placed(forward, backward)
        span = max(one.end for one in placed) * self.stages
        return 1 - sum(one.end - one.start for one in placed) / span

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __repr__(self) -> str:
        return (
            f"Schedule({self.name}: {self.stages} stages, {self.micro_batches} micro-batches, bubble "
            f"{self.bubble():.1%} (modelled), keeps at most {self.kept(0)})"
        )

    def _repr_html_(self) -> str:
        from labkit.hardware.html import table

        rows = [
            (
                str(stage),
                " ".join(f"{s.what[0].upper()}{s.micro_batch}" for s in steps),
                str(self.kept(stage)),
            )
            for stage, steps in enumerate(self.steps)
        ]
        return table(("stage", "order: Forward, Backward", "activations kept"), rows, repr(self))


def gpipe(stages: int, micro_batches: int) -> Schedule:
    """All micro-batches forward, then all backward, the last one first."""
    _check(stages, micro_batches)
    forward = tuple(Step("forward", m) for m in range(micro_batches))
    backward = tuple(Step("backward", m) for m in reversed(range(micro_batches)))
    return Schedule("GPipe", stages, micro_batches, (forward + backward,) * stages)


def one_f_one_b(stages: int, micro_batches: int) -> Schedule:
    """A few forward to fill the pipeline, then forward and backward in turns, then the rest backward."""
    _check(stages, micro_batches)
    return Schedule(
        "1F1B", stages, micro_batches, tuple(_turns(stages - 1 - s, micro_batches) for s in range(stages))
    )


def _turns(ahead: int, micro_batches: int) -> tuple[Step, ...]:
    ahead = min(ahead, micro_batches)
    steps = [Step("forward", m) for m in range(ahead)]
    for m in range(ahead, micro_batches):
        steps += [Step("forward", m), Step("backward", m - ahead)]
    steps += [Step("backward", m) for m in range(micro_batches - ahead, micro_batches)]
    return tuple(steps)


def _check(stages: int, micro_batches: int) -> None:
    if stages < 1 or micro_batches < 1:
        raise LabkitError("A pipeline has at least one stage and one micro-batch.")


def _play(schedule: Schedule, cost: dict[str, float]) -> tuple[Placed, ...]:
    ended: dict[tuple[int, Step], float] = {}
    clock, at = [0.0] * schedule.stages, [0] * schedule.stages
    placed: list[Placed] = []
    total = sum(map(len, schedule.steps))
    while len(placed) < total:
        before = len(placed)
        for stage, steps in enumerate(schedule.steps):
            while at[stage] < len(steps):
                step = steps[at[stage]]
                ready = _ready(schedule, stage, step, ended)
                if ready is None:
                    break
                start = max(clock[stage], ready)
                clock[stage] = ended[stage, step] = start + cost[step.what]
                placed.append(Placed(stage, step, start, clock[stage]))
                at[stage] += 1
        if len(placed) == before:
            raise LabkitError(f"{schedule.name}: the stages wait for each other for ever, at steps {at}.")
    return tuple(sorted(placed, key=lambda one: (one.start, one.stage)))


def _ready(schedule: Schedule, stage: int, step: Step, ended: dict[tuple[int, Step], float]) -> float | None:
    """When what a step needs is there; None when it has not been placed yet."""
    if step.what == "forward":
        return 0.0 if stage == 0 else ended.get((stage - 1, step))
    if stage == schedule.stages - 1:
        return ended.get((stage, Step("forward", step.micro_batch)))
    return ended.get((stage + 1, step))
