"""What the catalogue says of a card, a link, a latency, a claim: plain records, units in their names."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.html import facts_table

PRECISIONS = ("fp32", "tf32", "fp16_tensor", "fp8", "fp4", "int8")


class Record:
    """A frozen dataclass that shows itself."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as it goes into JSON; tuples stay tuples."""
        return asdict(self)  # type: ignore[call-overload]

    def _repr_html_(self) -> str:
        return facts_table(self.to_dict())


@dataclass(frozen=True)
class SMResources(Record):
    """What one streaming multiprocessor holds: the limits that occupancy is counted against.

    Registers are allocated per warp in steps of `register_unit`. Source: CUDA C++ Programming Guide,
    technical specifications per compute capability.
    """

    compute_capability: str
    threads: int
    warps: int
    blocks: int
    registers: int
    register_unit: int
    shared_KiB: int
    shared_per_block_KiB: int
    fp32_lanes: int


@dataclass(frozen=True)
class Fabric(Record):
    """The links between GPUs. `total_both_ways_GBps` adds all links and both directions, as vendors do."""

    kind: str
    links: int
    total_both_ways_GBps: float
    generation: int | None = None
    bridged_pair: bool = False
    domain: str | None = None
    domain_total_TBps: float | None = None
    between_dies_GBps: float | None = None

    @property
    def per_direction_GBps(self) -> float:
        """What one GPU can send, over all its links."""
        return self.total_both_ways_GBps / 2


@dataclass(frozen=True)
class HostLink(Record):
    """A link to the CPU that is not PCIe."""

    kind: str
    per_direction_GBps: float


@dataclass(frozen=True)
class PCIe(Record):
    """The slot. `peer_access` False: the driver does not let two such cards copy to each other directly."""

    generation: int
    lanes: int
    peer_access: bool = True


@dataclass(frozen=True)
class GPU(Record):
    """One card of the catalogue. Peaks are dense and at the boost clock; None: not supported, or unpublished.

    GB, GB/s and MB are decimal, as vendors print them. `uncertain` names the fields for which documents
    disagree or none was found; `same_name` tells of another card that prints the same name.
    """

    id: str
    name: str
    vendor: str
    memory_GB: float
    memory_bandwidth_GBps: float
    fp32_TFLOPS: float
    tf32_TFLOPS: float | None
    fp16_tensor_TFLOPS: float | None
    fp8_TFLOPS: float | None
    fp4_TFLOPS: float | None
    int8_TOPS: float | None
    fabric: Fabric | None
    pcie: PCIe
    power_W: float
    compute_capability: str
    multiprocessors: int
    l2_MB: float
    boost_MHz: float | None
    source: str
    memory_sizes_GB: tuple[float, ...] = ()
    names: tuple[str, ...] = field(default=(), repr=False)
    host_link: HostLink | None = None
    min_cuda: str | None = None
    devices_per_module: int = 1
    uncertain: tuple[str, ...] = ()
    same_name: str | None = None
    note: str | None = None

    def __repr__(self) -> str:
        return (
            f"GPU({self.id}: {self.memory_GB:g} GB at {self.memory_bandwidth_GBps:g} GB/s, "
            f"{self.fp32_TFLOPS:g} TFLOPS fp32, {self.multiprocessors} multiprocessors, {self.power_W:g} W)"
        )

    @property
    def memory_bandwidth_bytes_per_s(self) -> float:
        """Peak of the memory, bytes/s."""
        return self.memory_bandwidth_GBps * 1e9

    def peak_flops(self, precision: str = "fp32") -> float:
        """Dense peak in operations a second.

        Parameters
        ----------
        precision : {"fp32", "tf32", "fp16_tensor", "fp8", "fp4", "int8"}

        Raises
        ------
        LabkitError
            For another word, or a precision this card does not have.
        """
        if precision not in PRECISIONS:
            raise LabkitError(f"{precision!r} is no precision of the catalogue: use {', '.join(PRECISIONS)}.")
        peak = self.int8_TOPS if precision == "int8" else getattr(self, f"{precision}_TFLOPS")
        if peak is None:
            have = ", ".join(word for word in PRECISIONS if self._has(word))
            raise LabkitError(f"The catalogue has no {precision} peak for {self.id}: it has {have}.")
        return float(peak) * 1e12

    def _has(self, precision: str) -> bool:
        return getattr(self, "int8_TOPS" if precision == "int8" else f"{precision}_TFLOPS") is not None


@dataclass(frozen=True)
class Link(Record):
    """One kind of link. Rates are GB/s in one direction of what `of` names, unless a field says both ways."""

    id: str
    kind: str
    of: str
    raw_GBps: float
    source: str
    signal: str | None = None
    achieved_GBps: tuple[float, float] | None = None
    achieved_with: str | None = None
    latency_us: tuple[float, float] | None = None
    latency_of: str | None = None
    per_gpu: int | None = None
    ports: int | None = None
    total_both_ways_GBps: float | None = None
    pair_one_way_GBps: tuple[float, float] | None = None
    pair_both_ways_GBps: tuple[float, float] | None = None
    nccl_per_gpu_GBps: float | None = None
    tcp_goodput_mtu1500_GBps: float | None = None
    tcp_goodput_mtu9000_GBps: float | None = None
    uncertain: tuple[str, ...] = ()
    note: str | None = None
    names: tuple[str, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        achieved = f", {_range(self.achieved_GBps)} achieved" if self.achieved_GBps else ""
        return f"Link({self.id}: {self.raw_GBps:g} GB/s one way a {self.of}{achieved})"


@dataclass(frozen=True)
class Latency(Record):
    """How long a small message waits, from the lowest to the highest figure found, in microseconds."""

    id: str
    what: str
    us: tuple[float, float]
    source: str
    uncertain: bool = False

    def __repr__(self) -> str:
        return f"Latency({self.id}: {_range(self.us)} us{', uncertain' if self.uncertain else ''})"


@dataclass(frozen=True)
class Claim(Record):
    """A popular claim, the verdict on it, and the figure that holds up.

    `verdict`: true, mostly_true, misleading, false, unsourced or bug. `basis`: derived, documented or
    recalled. `lesson`: number of the lesson that lets the learner test it.
    """

    id: str
    claim: str
    verdict: str
    figure: str
    basis: str
    lesson: str


def _range(pair: tuple[float, float]) -> str:
    low, high = pair
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
