"""``labkit.inspect``: run a launch under observation and say what it did, and what the hardware would do."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from labkit.compute import registers
from labkit.compute.emulator.counting import Counter, Line
from labkit.compute.emulator.counts import Counts
from labkit.compute.emulator.findings import Finding, from_error
from labkit.compute.emulator.geometry import Launch, chunks
from labkit.compute.emulator.inspection_html import as_html, as_text
from labkit.compute.emulator.kernel import Configured
from labkit.compute.emulator.observers import observed
from labkit.compute.emulator.sanitizer import Sanitizer
from labkit.compute.model import ModelledTime, modelled_time
from labkit.compute.occupancy import Occupancy, occupancy
from labkit.compute.stopwatch import measured_seconds, on_host
from labkit.compute.throughput import as_float32
from labkit.errors import KernelError, LabkitError
from labkit.hardware.catalog import gpu as catalogued
from labkit.hardware.records import GPU

# Beyond this many threads a launch is inspected on a sample of whole blocks.
WHOLE_THREADS = 2**22
VERSION = 2


@dataclass(frozen=True)
class Roofline:
    """Where a launch stands: ``intensity`` in FLOP a byte of DRAM traffic (None without traffic), ``bound`` by
    ``"memory"``, ``"compute"`` or ``"launch"``, ``ridge`` of the card in float32 FLOP a byte."""

    intensity: float | None
    ridge: float
    bound: str
    gpu: str


@dataclass(frozen=True)
class Inspection:
    """What one launch did, as the emulator saw it, and what a catalogued card would do with it.

    Attributes
    ----------
    totals, lines : Counts, dict
        Counters of the launch and of each source line: exact, emulated.
    findings : tuple of Finding
        What the sanitizer found, worst first. ``ok`` tells that none is an error.
    occupancy : Occupancy or None
        By calculation for the card; None for a card without known limits.
    time : ModelledTime
        By the roofline, modelled, with its assumptions.
    sampled : float
        The share of the blocks that was run; below 1 the counters are scaled up.
    measured_s : float or None
        Seconds on this machine's GPU, where there is one.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    gpu: str
    findings: tuple[Finding, ...]
    totals: Counts
    lines: dict[Line, Counts]
    occupancy: Occupancy | None
    time: ModelledTime
    sampled: float
    measured_s: float | None
    text: str = field(repr=False)
    first_line: int = field(repr=False)

    @property
    def ok(self) -> bool:
        return not any(f.severity == "error" for f in self.findings)

    @property
    def roofline(self) -> Roofline:
        intensity = self.totals.flops / self.totals.dram_bytes if self.totals.dram_bytes else None
        return Roofline(intensity, self.time.ridge, self.time.bound, self.gpu)

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    def to_dict(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "provenance": "emulated; occupancy and time modelled",
            "kernel": self.kernel,
            "grid": list(self.grid),
            "block": list(self.block),
            "gpu": self.gpu,
            "findings": [f.to_dict() for f in self.findings],
            "totals": dict(self.totals),
            "lines": {str(line): dict(counts) for line, counts in self.lines.items()},
            "occupancy": self.occupancy.to_dict() if self.occupancy else None,
            "time": self.time.to_dict(),
            "sampled": self.sampled,
            "measured_s": self.measured_s,
            "text": self.text,
            "first_line": self.first_line,
        }


def inspect(
    launch: Any, *arguments: Any, gpu: str | GPU | None = None, step_budget: int | None = None
) -> Inspection:
    """Run ``inspect(kernel[grid, block], *arguments)`` on the emulator, sanitized and counted.

    The launch goes on where it can after a mistake, so one run tells all of them; arrays are left as it leaves them.
    ``gpu`` is the card of the catalogue to model: by default this machine's own, or an A100.

    Raises
    ------
    LabkitError
        When ``launch`` is not a kernel with its launch shape, or the card is unknown.
    """
    configured = as_configured(launch)
    measured = measured_here(launch, configured, arguments)
    arguments = tuple(map(on_host, arguments))
    card = catalogued(gpu) if gpu is not None else own_card()
    kernel, shape = configured.kernel, configured.shape
    sanitizer, counter = Sanitizer(strict=False), Counter(int(card.l2_MB * 1e6))
    share, pieces = sample(shape)
    try:
        observed(
            kernel,
            shape,
            arguments,
            [sanitizer, counter],
            sharedmem=configured.sharedmem,
            step_budget=step_budget,
            pieces=pieces,
        )
    except KernelError as error:
        sanitizer.found[("end",)] = from_error(error)
    lines = {line: counts.scaled(1 / share) for line, counts in counter.lines(kernel.source.name).items()}
    totals = Counts({key: sum(c[key] for c in lines.values()) for key in Counts()})
    return Inspection(
        kernel=kernel.source.name,
        grid=shape.grid,
        block=shape.block,
        gpu=card.id,
        findings=sanitizer.findings,
        totals=totals,
        lines=lines,
        occupancy=occupancy_of(configured, arguments, card),
        time=time_of(totals, card),
        sampled=share,
        measured_s=measured,
        text=kernel.source.text,
        first_line=kernel.source.first_line,
    )


def measured_here(launch: Any, configured: Configured, arguments: tuple) -> float | None:
    """Seconds on this machine's GPU; None where the launch is the emulator's own."""
    if launch is configured:
        return None
    from labkit.compute import cuda

    return measured_seconds(cuda, launch, arguments)


def sample(shape: Launch) -> tuple[float, Any]:
    """The share of the blocks to run, and the chunks: all of them, or some spread evenly over the grid."""
    threads = shape.blocks * shape.threads_per_block
    if threads <= WHOLE_THREADS:
        return 1.0, None
    every = -(-threads // WHOLE_THREADS)
    picked = [chunk for number, chunk in enumerate(chunks(shape)) if number % every == 0]
    return sum(c.blocks for c in picked) / shape.blocks, picked


def own_card() -> GPU:
    """This machine's GPU if the catalogue has it, else an A100."""
    from labkit.hardware import usable_gpu

    device = usable_gpu()
    return (device.catalogued() if device else None) or catalogued("A100")


def time_of(totals: Counts, card: GPU) -> ModelledTime:
    """The roofline's time; other precisions are counted as the float32 operations that take as long."""
    flops = as_float32(totals.flops_fp16, totals.flops_fp32, totals.flops_fp64, card.compute_capability)
    return modelled_time(flops=flops, bytes=totals.dram_bytes, gpu=card)


def occupancy_of(configured: Configured, arguments: tuple, card: GPU) -> Occupancy | None:
    try:
        program = configured.kernel.program(configured.kernel.classify(arguments))
        static = sum(prod(o[1]) * o[2].itemsize for o in program.arrays if o[0] == "shared")
        compiled = registers.usage(configured.kernel, card)
        return occupancy(
            configured.shape.threads_per_block,
            static + configured.sharedmem,
            compiled["registers"] if compiled else None,
            card,
        )
    except LabkitError:
        return None


def as_configured(launch: Any) -> Configured:
    """A launch of the emulator, also from a launch of numba's own kernel."""
    if isinstance(launch, Configured):
        return launch
    dispatcher = getattr(launch, "dispatcher", None)
    original = getattr(dispatcher, "py_func", None)
    if original is not None:
        from labkit.compute.emulator.kernel import jit

        return jit(original)[launch.griddim, launch.blockdim, 0, launch.sharedmem]
    raise LabkitError(
        f"labkit.inspect needs a kernel with its launch shape, but got {type(launch).__name__}: "
        "write labkit.inspect(kernel[blocks, threads], argument, ...)."
    )


def load(data: dict[str, Any]) -> Inspection:
    """An inspection from what ``to_dict`` gave.

    Raises
    ------
    LabkitError
        For data of a newer version, or that is no inspection.
    """
    version = data.get("version") if isinstance(data, dict) else None
    if not isinstance(version, int):
        raise LabkitError("This is not a saved inspection: it has no version.")
    if version > VERSION:
        raise LabkitError(
            f"This inspection was saved by a newer labkit (version {version} of the format; this one reads up to "
            f"{VERSION}): update labkit to open it."
        )
    known = data["occupancy"]
    if known:
        known = Occupancy(**{k: v for k, v in known.items() if k not in ("label", "fraction")})
    time = {k: v for k, v in data["time"].items() if k != "label"}
    return Inspection(
        kernel=data["kernel"],
        grid=tuple(data["grid"]),
        block=tuple(data["block"]),
        gpu=data["gpu"],
        findings=tuple(Finding(**f) for f in data["findings"]),
        totals=Counts(data["totals"]),
        lines={int(k) if k.isdigit() else k: Counts(v) for k, v in data["lines"].items()},
        occupancy=known,
        time=ModelledTime(**{**time, "assumptions": tuple(time["assumptions"])}),
        sampled=data["sampled"],
        measured_s=data["measured_s"],
        text=data["text"],
        first_line=data["first_line"],
    )
