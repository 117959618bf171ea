"""How long a launch would take on a catalogued card: the roofline model, and never more than a model.

A kernel moves `bytes` to and from device memory and does `flops` operations. At best the card does both at
its peak and at the same time, so the slower of the two decides, and every launch adds a constant (Williams,
Waterman, Patterson, Roofline, CACM 52(4), 2009; the constant is the alpha of T = alpha + n/beta).
"""

from __future__ import annotations

from dataclasses import dataclass

from labkit.errors import LabkitError
from labkit.hardware.catalog import gpu as catalogued
from labkit.hardware.html import facts_table
from labkit.hardware.records import GPU, Record
from labkit.hardware.units import parse, show_bytes, show_rate, show_time

LAUNCH_S = 5e-6
"""Seconds a launch costs before the kernel's first instruction. Assumed: the order of magnitude of launches
from C++, not a figure of any card; launches from Python cost several times as much. Measure your own."""


@dataclass(frozen=True)
class Roofline(Record):
    """The roof of one card: the most it can do at a given arithmetic intensity.

    `peak_flops` FLOP/s dense (operations/s for int8), `bandwidth_bytes_per_s` of its memory, both peaks.
    """

    gpu: str
    precision: str
    peak_flops: float
    bandwidth_bytes_per_s: float

    @property
    def ridge(self) -> float:
        """Intensity, FLOP a byte, from which on compute is the limit instead of memory."""
        return self.peak_flops / self.bandwidth_bytes_per_s

    def attainable(self, intensity: float) -> float:
        """FLOP/s that a kernel of this intensity (FLOP a byte) can reach at most."""
        return min(self.peak_flops, intensity * self.bandwidth_bytes_per_s)


@dataclass(frozen=True)
class ModelledTime(Record):
    """The modelled time of one launch, what bounds it, and what was assumed.

    `seconds` is `launch_s` plus the larger of `compute_s` and `memory_s`; `bound` names the largest of the
    three. `intensity` and `ridge` are FLOP a byte; `intensity` is None when no byte is moved.
    """

    seconds: float
    bound: str
    compute_s: float
    memory_s: float
    launch_s: float
    flops: float
    bytes: float
    intensity: float | None
    ridge: float
    precision: str
    gpu: str
    assumptions: tuple[str, ...]

    @property
    def label(self) -> str:
        """What stands beside the number wherever it is shown."""
        return f"modelled on {self.gpu}"

    def to_dict(self) -> dict[str, object]:
        return {"label": self.label, **super().to_dict()}

    def __repr__(self) -> str:
        return (
            f"ModelledTime({show_time(self.seconds)}, bound by {self.bound}, {self.label}, {self.precision})"
        )

    def _repr_html_(self) -> str:
        facts = {
            "time": f"{show_time(self.seconds)}, bound by {self.bound}",
            "launch, compute, memory": ", ".join(
                map(show_time, (self.launch_s, self.compute_s, self.memory_s))
            ),
            "work": f"{self.flops:.4g} FLOP ({self.precision}), {show_bytes(self.bytes)}",
            "intensity": None if self.intensity is None else f"{self.intensity:.3g} FLOP a byte",
            "ridge": f"{self.ridge:.3g} FLOP a byte",
            "assumed": " ".join(self.assumptions),
        }
        return facts_table(facts, self.label)


def roofline(gpu: str | GPU = "A100", precision: str = "fp32") -> Roofline:
    """The roof of a card of the catalogue; LabkitError for an unknown card, or a precision it lacks."""
    card = catalogued(gpu)
    return Roofline(card.id, precision, card.peak_flops(precision), card.memory_bandwidth_bytes_per_s)


def modelled_time(
    flops: float = 0,
    bytes: float | str = 0,
    gpu: str | GPU = "A100",
    precision: str = "fp32",
    launch_s: float | str = LAUNCH_S,
) -> ModelledTime:
    """Roofline time of one launch on a catalogued card.

    Parameters
    ----------
    flops : float
        Operations of the whole launch; a fused multiply-add counts two.
    bytes : float or str
        Bytes moved to and from device memory, or a size such as ``"64MiB"``.
    gpu : str or GPU
        A card of the catalogue.
    precision : {"fp32", "tf32", "fp16_tensor", "fp8", "fp4", "int8"}
        Which peak the operations run at.
    launch_s : float or str
        Constant cost of a launch in seconds, or a time such as ``"5us"``; `LAUNCH_S` is an assumption.

    Raises
    ------
    LabkitError
        For an unknown card, a precision it lacks, and work that is negative or not a number.
    """
    card = catalogued(gpu)
    roof = roofline(card, precision)
    work, moved, launch = _count(flops), parse(bytes, "size"), parse(launch_s, "time")
    compute, memory = work / roof.peak_flops, moved / roof.bandwidth_bytes_per_s
    return ModelledTime(
        seconds=launch + max(compute, memory),
        bound=_bound(launch, compute, memory),
        compute_s=compute,
        memory_s=memory,
        launch_s=launch,
        flops=work,
        bytes=moved,
        intensity=work / moved if moved else None,
        ridge=roof.ridge,
        precision=precision,
        gpu=card.id,
        assumptions=_assumptions(card, roof, launch),
    )


def _count(flops: float) -> float:
    if (
        isinstance(flops, (str, bool))
        or not hasattr(flops, "__float__")
        or not 0 <= float(flops) < float("inf")
    ):
        raise LabkitError(f"flops={flops!r} is not a number of operations: give zero or more, such as 2 * n.")
    return float(flops)


def _bound(launch: float, compute: float, memory: float) -> str:
    if launch >= max(compute, memory):
        return "launch"
    return "compute" if compute > memory else "memory"


def _assumptions(card: GPU, roof: Roofline, launch: float) -> tuple[str, ...]:
    known = "an assumption, not a figure of this card" if launch == LAUNCH_S else "as given"
    said = [
        f"Memory runs at its peak of {show_rate(roof.bandwidth_bytes_per_s)}; real kernels reach less.",
        f"Arithmetic runs at its dense {roof.precision} peak of {roof.peak_flops / 1e12:g} T a second.",
        "The two overlap perfectly, every multiprocessor is busy, and each byte is moved once.",
        f"A launch costs {show_time(launch)}, {known}.",
    ]
    if "memory_bandwidth_GBps" in card.uncertain:
        said.append(f"Documents disagree on the memory bandwidth of {card.id}.")
    return tuple(said)
