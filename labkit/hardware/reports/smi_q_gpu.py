"""One GPU of ``nvidia-smi -q``: which path of which era holds which fact."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from labkit.hardware.reports.base import number, whole, word
from labkit.hardware.reports.text import quote

_LOST = re.compile(r"GPU is lost|Unknown Error|ERR!", re.IGNORECASE)
_REASONS = re.compile(
    r"clocks_(?:throttle|event)_reasons\.(?:.*\.)?(?:clocks_(?:throttle|event)_reason_)?(\w+)"
)
_UNCORRECTED = re.compile(r"ecc_errors\.volatile\.(?:.*uncorrect\w*|double_bit\.total)")
_PROCESS = re.compile(r"processes\.(?:\w+\.)*?(?:process_info\.)?(\w+)")

# fact -> paths that held it, newest first; text and XML
WORDS = {
    "name": ("product_name",),
    "architecture": ("product_architecture",),
    "uuid": ("gpu_uuid", "uuid"),
    "persistence": ("persistence_mode",),
    "mig_mode": ("mig_mode.current", "mig_mode.current_mig"),
    "performance_state": ("performance_state",),
    "compute_mode": ("compute_mode",),
    "ecc_mode": ("ecc_mode.current", "ecc_mode.current_ecc"),
    "fabric_state": ("fabric.state",),
    "fabric_status": ("fabric.status",),
    "recovery_action": ("gpu_recovery_action",),
}
NUMBERS = {
    "temperature_C": ("temperature.gpu_current_temp", "temperature.gpu_temp"),
    "slowdown_temperature_C": ("temperature.gpu_slowdown_temp", "temperature.gpu_temp_slow_threshold"),
    "power_W": (
        "gpu_power_readings.instantaneous_power_draw",
        "gpu_power_readings.instant_power_draw",
        "gpu_power_readings.average_power_draw",
        "gpu_power_readings.power_draw",
        "power_readings.power_draw",
    ),
    "power_limit_W": (
        "gpu_power_readings.current_power_limit",
        "gpu_power_readings.enforced_power_limit",
        "gpu_power_readings.power_limit",
        "power_readings.enforced_power_limit",
        "power_readings.power_limit",
    ),
    "sm_clock_MHz": ("clocks.sm", "clocks.sm_clock"),
    "sm_clock_max_MHz": ("max_clocks.sm", "max_clocks.sm_clock"),
    "utilization_percent": ("utilization.gpu", "utilization.gpu_util"),
}
WHOLES = {
    "memory_total_MiB": ("fb_memory_usage.total",),
    "memory_used_MiB": ("fb_memory_usage.used",),
    "memory_free_MiB": ("fb_memory_usage.free",),
    "pcie_generation": (
        "pci.gpu_link_info.pcie_generation.current",
        "pci.pci_gpu_link_info.pcie_gen.current_link_gen",
    ),
    "pcie_generation_max": (
        "pci.gpu_link_info.pcie_generation.max",
        "pci.pci_gpu_link_info.pcie_gen.max_link_gen",
    ),
    "pcie_width": (
        "pci.gpu_link_info.link_width.current",
        "pci.pci_gpu_link_info.link_widths.current_link_width",
    ),
    "pcie_width_max": (
        "pci.gpu_link_info.link_width.max",
        "pci.pci_gpu_link_info.link_widths.max_link_width",
    ),
    "pcie_replays": ("pci.replays_since_reset", "pci.replay_counter"),
    "remapped_rows_correctable": ("remapped_rows.correctable_error", "remapped_rows.remapped_row_corr"),
    "remapped_rows_uncorrectable": ("remapped_rows.uncorrectable_error", "remapped_rows.remapped_row_unc"),
}
FLAGS = {
    "remap_pending": ("remapped_rows.pending", "remapped_rows.remapped_row_pending"),
    "remap_failed": ("remapped_rows.remapping_failure_occurred", "remapped_rows.remapped_row_failure"),
    "retirement_pending": (
        "retired_pages.pending_page_blacklist",
        "retired_pages.pending_blacklist",
        "retired_pages.pending_retirement",
        "retired_pages.pending",
    ),
    "reset_required": ("gpu_reset_status.reset_required", "reset_status.reset_required"),
}


@dataclass(frozen=True)
class QueriedProcess:
    """A process on the GPU; memory in MiB."""

    pid: int
    type: str | None
    name: str | None
    memory_MiB: int | None


@dataclass(frozen=True)
class QueriedGPU:
    """What the driver says of one GPU: W, MHz, MiB, degrees C, percent; None where it says nothing.

    `clock_reasons`: what holds the clocks down, such as ``hw_power_brake_slowdown``; None when that section is
    not there. `processes` likewise. `lost`: a reading that is only an error.
    """

    bus_id: str
    name: str | None = None
    architecture: str | None = None
    uuid: str | None = None
    persistence: str | None = None
    mig_mode: str | None = None
    performance_state: str | None = None
    compute_mode: str | None = None
    ecc_mode: str | None = None
    fabric_state: str | None = None
    fabric_status: str | None = None
    recovery_action: str | None = None
    temperature_C: float | None = None
    slowdown_temperature_C: float | None = None
    power_W: float | None = None
    power_limit_W: float | None = None
    sm_clock_MHz: float | None = None
    sm_clock_max_MHz: float | None = None
    utilization_percent: float | None = None
    memory_total_MiB: int | None = None
    memory_used_MiB: int | None = None
    memory_free_MiB: int | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    pcie_replays: int | None = None
    remapped_rows_correctable: int | None = None
    remapped_rows_uncorrectable: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    retirement_pending: bool | None = None
    reset_required: bool | None = None
    ecc_uncorrected: int | None = None
    clock_reasons: tuple[str, ...] | None = None
    processes: tuple[QueriedProcess, ...] | None = None
    lost: bool = False


@dataclass
class RawGPU:
    """Path -> value and line, as they came in; processes apart, for their paths repeat."""

    bus_id: str
    values: dict[str, tuple[str, str]] = field(default_factory=dict)
    processes: list[dict[str, str]] = field(default_factory=list)
    process_section: bool = False
    lost: str | None = None

    def add(self, path: str, value: str, line: str) -> None:
        if path.startswith("processes"):
            self._process(path, value)
        if _LOST.search(value) and self.lost is None:
            self.lost = quote(line)
        self.values.setdefault(path, (value, quote(line)))

    def _process(self, path: str, value: str) -> None:
        self.process_section = True
        match = _PROCESS.fullmatch(path)
        key = match[1] if match else ""
        if key in ("process_id", "pid"):
            self.processes.append({"pid": value})
        elif key and self.processes:
            self.processes[-1].setdefault(key, value)


def build(raw: RawGPU) -> tuple[QueriedGPU, dict[str, str]]:
    """The GPU, and the line each fact was read from."""
    facts: dict[str, Any] = {}
    quotes: dict[str, str] = {}
    for table, convert in ((WORDS, word), (NUMBERS, number), (WHOLES, whole), (FLAGS, _flag)):
        for name, paths in table.items():
            for path in paths:
                value, line = raw.values.get(path, ("", ""))
                found = convert(value)
                if found is not None:
                    facts[name], quotes[name] = found, line
                    break
    facts["ecc_uncorrected"] = _uncorrected(raw, quotes)
    facts["clock_reasons"] = _reasons(raw, quotes)
    facts["processes"] = _processes(raw)
    if raw.lost:
        quotes["lost"] = raw.lost
    # One odd field is an old card; a card that is gone answers nothing at all.
    gone = (
        raw.lost is not None and facts.get("memory_total_MiB") is None and facts.get("temperature_C") is None
    )
    return QueriedGPU(bus_id=raw.bus_id, lost=gone, **facts), quotes


def _flag(text: str) -> bool | None:
    return {"yes": True, "no": False}.get((word(text) or "").lower())


def _reasons(raw: RawGPU, quotes: dict[str, str]) -> tuple[str, ...] | None:
    found: list[str] = []
    seen = False
    for path, (value, line) in raw.values.items():
        match = _REASONS.fullmatch(path)
        if match is None or value not in ("Active", "Not Active"):
            continue
        seen = True
        if value == "Active":
            name = {"gpu_idle": "idle"}.get(match[1], match[1])
            found.append(name)
            quotes[name] = line
    return tuple(found) if seen else None


def _uncorrected(raw: RawGPU, quotes: dict[str, str]) -> int | None:
    counts = []
    for path, (value, line) in raw.values.items():
        count = whole(value) if _UNCORRECTED.fullmatch(path) else None
        if count is not None:
            counts.append(count)
            if count:
                quotes.setdefault("ecc_uncorrected", line)
    return sum(counts) if counts else None


def _processes(raw: RawGPU) -> tuple[QueriedProcess, ...] | None:
    if not raw.process_section:
        return None
    found = []
    for entry in raw.processes:
        pid = whole(entry["pid"])
        if pid is not None:
            name = word(entry.get("name") or entry.get("process_name"))
            memory = whole(entry.get("used_gpu_memory") or entry.get("used_memory"))
            found.append(QueriedProcess(pid, word(entry.get("type")), name, memory))
    return tuple(found)
