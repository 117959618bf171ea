"""What a move of n bytes takes, T = alpha + n / beta, for the links of the catalogue, host copies and disks.

Where sources differ, the slower end is taken: the lowest rate achieved, the highest latency. What no source tells is
assumed, and every move says so itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labkit.compute.curves import Curve
from labkit.compute.offload import COPY_START_S
from labkit.errors import LabkitError
from labkit.hardware.catalog import gpu, latency, link
from labkit.hardware.records import GPU, Link, Record
from labkit.hardware.units import parse, show_rate, show_time

MEMORY_COPY_BYTES_PER_S = 10e9
"""What one CPU core copies from one place in memory to another, bytes/s. Assumed; measure your own."""

# Disks: start-up seconds, bytes/s, and where both come from.
_DISKS = {
    "hard disk": (
        12.7e-3,
        0.2e9,
        "assumed: 8.5 ms to move the arm, half a turn at 7200 a minute (4.2 ms), 0.2 GB/s",
    ),
    "sata ssd": (
        100e-6,
        0.55e9,
        "assumed: 100 us a read; 6 Gbit/s with 8b/10b leave 0.6 GB/s, less its protocol",
    ),
    "nvme ssd": (
        80e-6,
        7.0e9,
        "assumed: 80 us a read; four lanes of PCIe 4 carry 7.9 GB/s, less their headers",
    ),
}
DISKS = tuple(_DISKS)


@dataclass(frozen=True, repr=False)
class Move(Record):
    """One way of moving bytes: :meth:`seconds` is ``alpha_s + n / bytes_per_s``.

    Attributes
    ----------
    alpha_s : float
        Seconds before the first byte moves, however few there are.
    bytes_per_s : float
        The rate of a very large move, one way.
    how : str
        ``"modelled"`` or ``"measured"``.
    basis : str
        Where both figures come from, and what is assumed.
    """

    name: str
    alpha_s: float
    bytes_per_s: float
    how: str
    basis: str

    def seconds(self, size: float | str) -> float:
        """Seconds for ``size`` bytes (or ``"4MiB"``) in one move."""
        return self.alpha_s + parse(size, "size") / self.bytes_per_s

    @property
    def half_size(self) -> float:
        """The size, bytes, that reaches half the rate: alpha times beta. Smaller moves are mostly start-up."""
        return self.alpha_s * self.bytes_per_s

    def rate(self, size: float | str) -> float:
        """Bytes a second that a move of ``size`` bytes reaches."""
        count = parse(size, "size")
        return count / self.seconds(count)

    def curve(self, sizes: Sequence[int]) -> Curve:
        """Seconds over these sizes, for a figure."""
        return Curve(self.name, self.how, self.basis, tuple(sizes), tuple(map(self.seconds, sizes)))

    def __repr__(self) -> str:
        start, rate = show_time(self.alpha_s), show_rate(self.bytes_per_s)
        return f"Move({self.name}: {start} + n / ({rate}), {self.how})"


def host_copy(
    card: str | GPU = "A100", pinned: bool = True, memory_copy: float | str = MEMORY_COPY_BYTES_PER_S
) -> Move:
    """A copy between the host's memory and a card, either way.

    From pageable memory every byte is first copied into a pinned buffer of the driver, by the CPU: the seconds a byte
    of both copies add up (in pieces they overlap in part, so this is the slow end).

    Parameters
    ----------
    memory_copy : float or str
        What the CPU copies in its own memory, bytes/s or ``"12GB/s"``.
    """
    known = gpu(card)
    slot, rate, basis = _host_link(known)
    assumed = f"{show_time(COPY_START_S)} a copy assumed"
    if pinned:
        return Move(f"{slot}, pinned", COPY_START_S, rate, "modelled", f"{basis}; {assumed}")
    core = parse(memory_copy, "rate")
    both = 1 / (1 / rate + 1 / core)
    why = f"{basis}, after a copy by the CPU at {show_rate(core)}; {assumed}"
    return Move(f"{slot}, pageable", COPY_START_S, both, "modelled", why)


def _host_link(card: GPU) -> tuple[str, float, str]:
    """Name, bytes/s one way, and basis of the link between a card and its host."""
    found = link("nvlink-c2c") if card.host_link else link(f"pcie{card.pcie.generation}")
    name = "NVLink-C2C" if card.host_link else f"PCIe {card.pcie.generation} x{card.pcie.lanes}"
    share = 1.0 if card.host_link else card.pcie.lanes / 16
    rate, basis = _large(found)
    return name, rate * share, f"{basis}, {card.name}"


def over(name: str | Link) -> Move:
    """A move over a link of the catalogue, such as ``"nvlink4"``, ``"100gbe"``, ``"ndr"`` or ``"cxl2"``.

    NVLink is that of one GPU, all its links together; everything else is one slot or port.
    """
    found = link(name)
    rate, basis = _large(found)
    start, waits = _start(found)
    return Move(found.id, start, rate, "modelled", f"{basis}; {waits}")


def _large(found: Link) -> tuple[float, str]:
    if found.tcp_goodput_mtu1500_GBps:
        return found.tcp_goodput_mtu1500_GBps * 1e9, "TCP payload at 1500-byte frames"
    if found.pair_one_way_GBps:
        return min(found.pair_one_way_GBps) * 1e9, "achieved one way between a pair of GPUs"
    if found.achieved_GBps:
        return min(found.achieved_GBps) * 1e9, f"achieved: {found.achieved_with}"
    return found.raw_GBps * (found.per_gpu or 1) * 1e9, "line rate one way, nothing lost to protocol"


def _start(found: Link) -> tuple[float, str]:
    if found.latency_us:
        return max(found.latency_us) / 1e6, f"latency of {found.latency_of}"
    if found.kind == "pcie":
        return COPY_START_S, f"{show_time(COPY_START_S)} a copy assumed"
    if found.kind in ("nvlink", "nvswitch"):
        return max(link("nvlink3").latency_us or (0.0,)) / 1e6, "latency of NVLink 3 taken"
    wait = latency({"ethernet": "tcp", "infiniband": "rdma-write-fabric"}.get(found.kind, "pcie-dma-read"))
    return max(wait.us) / 1e6, wait.what


def disk(kind: str = "nvme ssd") -> Move:
    """One read from a disk: ``"hard disk"``, ``"sata ssd"`` or ``"nvme ssd"``. Assumed, of no certain product."""
    if kind not in _DISKS:
        raise LabkitError(f"There is no disk {kind!r}: choose one of {', '.join(DISKS)}.")
    return Move(kind, *_DISKS[kind][:2], "modelled", _DISKS[kind][2])
