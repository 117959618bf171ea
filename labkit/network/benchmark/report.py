"""What a benchmark of collectives found: rows, bandwidths, and the table that nccl-tests prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.units import show_bytes, show_time

# Bytes that must pass a rank's link for every byte of the message, as nccl-tests counts: p ranks.
_BUS_FACTOR = {
    "all_reduce": lambda p: 2 * (p - 1) / p,
    "all_gather": lambda p: (p - 1) / p,
    "reduce_scatter": lambda p: (p - 1) / p,
    "all_to_all": lambda p: (p - 1) / p,
    "broadcast": lambda p: 1.0,
    "send_recv": lambda p: 1.0,
}
OPERATIONS = tuple(_BUS_FACTOR)
_NCCL_NAMES = {"all_to_all": "alltoall", "send_recv": "sendrecv"}
_REDUCES = ("all_reduce", "reduce_scatter")
_SPLITS = ("all_gather", "reduce_scatter", "all_to_all")  # count is of one rank's part


def bus_factor(operation: str, ranks: int) -> float:
    """Bus bandwidth over algorithm bandwidth (PERFORMANCE.md of nccl-tests)."""
    return _BUS_FACTOR[operation](ranks)


@dataclass(frozen=True)
class Row:
    """One operation, implementation and size, measured.

    Attributes
    ----------
    operation, implementation : str
        ``"all_reduce"``, ...; ``"torch"`` or the name of labkit's own algorithm.
    size_bytes, element_bytes : int
        As nccl-tests counts: the whole message; of all_gather and reduce_scatter the gathered one.
    dtype : str
    seconds, low, high : float
        Median over the repeats, and the quartiles; a repeat counts as long as its slowest rank takes.
    repeats : int
    wrong : int
        Elements with a wrong value, over all ranks.
    in_place : bool
    """

    operation: str
    implementation: str
    size_bytes: int
    element_bytes: int
    dtype: str
    ranks: int
    seconds: float
    low: float
    high: float
    repeats: int
    wrong: int
    in_place: bool

    @property
    def algorithm_bandwidth(self) -> float:
        """Size over time, bytes/s."""
        return self.size_bytes / self.seconds

    @property
    def bus_bandwidth(self) -> float:
        """What that asks of each rank's link, bytes/s: comparable between operations and worlds."""
        return self.algorithm_bandwidth * bus_factor(self.operation, self.ranks)

    @property
    def spread(self) -> float:
        """Distance of the quartiles over the median."""
        return (self.high - self.low) / self.seconds

    def to_dict(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "algorithm_bandwidth": self.algorithm_bandwidth,
            "bus_bandwidth": self.bus_bandwidth,
        }


@dataclass(frozen=True)
class BandwidthReport:
    """All rows of a run. `where` says on what: backend, link, machine."""

    ranks: int
    backend: str
    where: str
    rows: tuple[Row, ...]
    devices: tuple[str, ...] = field(default=(), repr=False)

    def of(self, operation: str, implementation: str = "torch") -> BandwidthReport:
        """Only the rows of one operation and implementation.

        Raises
        ------
        LabkitError
            When there are none; what there is is named.
        """
        kept = tuple(r for r in self.rows if (r.operation, r.implementation) == (operation, implementation))
        if not kept:
            there = ", ".join(f"{one} by {other}" for one, other in self.kinds())
            raise LabkitError(f"There is no {operation} by {implementation} in this report, only {there}.")
        return BandwidthReport(self.ranks, self.backend, self.where, kept, self.devices)

    def kinds(self) -> tuple[tuple[str, str], ...]:
        """Pairs of operation and implementation, in order."""
        return tuple(dict.fromkeys((row.operation, row.implementation) for row in self.rows))

    @property
    def wrong(self) -> int:
        return sum(row.wrong for row in self.rows)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BandwidthReport:
        """The report that `to_dict` wrote."""
        names = Row.__dataclass_fields__
        rows = tuple(Row(**{key: row[key] for key in names}) for row in data["rows"])
        return cls(data["ranks"], data["backend"], data["where"], rows, tuple(data["devices"]))

    def to_dict(self) -> dict[str, Any]:
        """For JSON; `labkit.network.fabric.calibrate` reads it when it holds one kind of rows."""
        return {
            "label": "measured",
            "ranks": self.ranks,
            "backend": self.backend,
            "where": self.where,
            "devices": list(self.devices),
            "rows": [row.to_dict() for row in self.rows],
        }

    def text(self) -> str:
        """One table for every kind of rows, as nccl-tests prints them."""
        return "\n\n".join(_table(self.of(*kind)) for kind in self.kinds())

    def __repr__(self) -> str:
        return (
            f"BandwidthReport({len(self.rows)} rows of {len(self.kinds())} kinds, {self.ranks} ranks on "
            f"{self.backend}, measured)"
        )

    def _repr_html_(self) -> str:
        from labkit.hardware.html import table

        head = ("operation", "by", "size", "time", "quartiles", "algorithm GB/s", "bus GB/s", "wrong")
        return table(head, map(_cells, self.rows), f"{self.where} (measured)")


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.operation,
        row.implementation,
        show_bytes(row.size_bytes),
        show_time(row.seconds),
        f"{show_time(row.low)} to {show_time(row.high)}",
        f"{row.algorithm_bandwidth / 1e9:.3g}",
        f"{row.bus_bandwidth / 1e9:.3g}",
        str(row.wrong),
    )


_HEAD = """\
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)"""


def _table(report: BandwidthReport) -> str:
    rows = report.rows
    first = rows[0]
    name = _NCCL_NAMES.get(first.operation, first.operation)
    sizes = [row.size_bytes for row in rows]
    average = sum(row.bus_bandwidth for row in rows) / len(rows) / 1e9
    uneven = max(rows, key=lambda row: row.spread)
    lines = [
        f"# Collective test starting: {name}_perf",
        f"# by {first.implementation}, {report.where}",
        f"# nThread 1 nGpus 1 minBytes {min(sizes)} maxBytes {max(sizes)} iters: {first.repeats} validation: 1",
        "#",
        "# Using devices",
        *(f"#  {device}" for device in report.devices),
        "#",
        _HEAD,
        *map(_line, rows),
        f"# Out of bounds values : {report.wrong} {'FAILED' if report.wrong else 'OK'}",
        f"# Avg bus bandwidth    : {average:g}",
        f"# Times are medians; the quartiles lie at most {uneven.spread:.0%} apart (at {uneven.size_bytes} B).",
        f"# Collective test concluded: {name}_perf",
    ]
    return "\n".join(lines)


def _line(row: Row) -> str:
    count = row.size_bytes // row.element_bytes
    if row.operation in _SPLITS:
        count //= row.ranks
    redop = "sum" if row.operation in _REDUCES else "none"
    root = 0 if row.operation == "broadcast" else -1
    head = f"{row.size_bytes:>12}  {count:>12}  {_TYPES.get(row.dtype, row.dtype):>8}  {redop:>6}  {root:>6}"
    halves = [_half(row), _NOTHING]
    return head + "".join(reversed(halves) if row.in_place else halves)


_TYPES = {"float32": "float", "float64": "double", "float16": "half"}
_NOTHING = f"  {'N/A':>7}  {'N/A':>6}  {'N/A':>6}  {'N/A':>5}"


def _half(row: Row) -> str:
    figures = (
        _figures(row.seconds * 1e6, 7),
        *(_figures(rate / 1e9, 6) for rate in (row.algorithm_bandwidth, row.bus_bandwidth)),
    )
    return f"  {figures[0]}  {figures[1]}  {figures[2]}  {row.wrong:>5}"


def _figures(value: float, width: int) -> str:
    """As many digits as the column holds, at least three of them significant."""
    if value < 0.095:
        return f"{value:>{width}.2g}" if value < 1e-4 else f"{value:>{width}.4f}"
    return f"{value:>{width}.{0 if value >= 1000 else 1 if value >= 100 else 2}f}"


def as_report(parts: Iterable[BandwidthReport]) -> BandwidthReport:
    """Several reports of one run as one."""
    every = list(parts)
    first = every[0]
    rows = tuple(row for part in every for row in part.rows)
    return BandwidthReport(first.ranks, first.backend, first.where, rows, first.devices)
