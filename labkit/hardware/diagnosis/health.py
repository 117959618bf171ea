"""The state of each GPU, from ``nvidia-smi`` in all its forms: heat, power, memory errors, slots, who holds memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

from labkit.hardware.diagnosis.case import Case
from labkit.hardware.diagnosis.finding import Finding
from labkit.hardware.reports.smi_q import SmiQuery
from labkit.hardware.reports.smi_q_gpu import QueriedGPU
from labkit.hardware.reports.smi_table import SmiTable, TableGPU

LOST = (
    "has fallen off the bus or answers with errors only. Look for 'Xid' in 'sudo dmesg', drain the node and "
    "restart it; "
    "if it happens again, reseat or replace the card and check its power supply."
)
# what holds the clocks down -> severity, what it means and what to do
_REASONS = {
    "hw_power_brake_slowdown": (
        "error",
        "a power brake: the server's power supply tells the card to slow down. Check power supplies and cables, the "
        "rack's power budget, and the BMC's event log.",
    ),
    "hw_thermal_slowdown": (
        "error",
        "heat, stopped by the hardware. Check fans, air flow and the heat sink.",
    ),
    "sw_thermal_slowdown": ("warning", "heat, held back by the driver. Check fans, air flow and the room."),
    "sw_power_cap": (
        "note",
        "its power limit: normal under full load. 'nvidia-smi -q -d POWER' shows the limit.",
    ),
}


def health(case: Case) -> Iterator[Finding]:
    for query in case.all(SmiQuery):
        for i, gpu in enumerate(query.gpus):
            yield from _queried(query, i, gpu)
        yield from _slow_gpu(
            [(i, g.utilization_percent, g.power_W) for i, g in enumerate(query.gpus)], query, "power_W"
        )
    for smi in case.all(SmiTable):
        for entry in smi.gpus:
            yield from _listed(smi, entry)
        yield from _slow_gpu([(g.index, g.utilization_percent, g.power_W) for g in smi.gpus], smi, "readings")


def _queried(query: SmiQuery, i: int, gpu: QueriedGPU) -> Iterator[Finding]:
    def line(key: str) -> str:
        return query.quote(f"gpu{i}.{key}", f"gpu{i}")

    if gpu.lost:
        yield Finding("error", f"GPU {i} ({gpu.bus_id}) {LOST}", line("lost"))
    reasons = gpu.clock_reasons or ()
    for reason, (severity, text) in _REASONS.items():
        if reason in reasons:
            yield Finding(severity, f"GPU {i} is slowed down by {text}", line(reason))
    if "hw_slowdown" in reasons and not {"hw_power_brake_slowdown", "hw_thermal_slowdown"} & set(reasons):
        text = f"GPU {i} is slowed down by its hardware, for power or heat. Run 'nvidia-smi -q -d PERFORMANCE' next."
        yield Finding("warning", text, line("hw_slowdown"))
    yield from _memory_errors(i, gpu, line)
    yield from _slot(i, gpu, line)
    yield from _fabric(i, gpu, line)


def _memory_errors(i: int, gpu: QueriedGPU, line: Callable[[str], str]) -> Iterator[Finding]:
    if gpu.remap_failed:
        text = f"GPU {i} could not replace a broken row of its memory: it has no spare rows left. Replace the card."
        yield Finding("error", text, line("remap_failed"))
    if gpu.remap_pending:
        yield Finding(
            "warning",
            f"GPU {i} has a row remap pending: a broken row of memory is replaced at the next reset, and errors may "
            f"come until then. Drain it and run 'sudo nvidia-smi --gpu-reset -i {i}', or restart the node.",
            line("remap_pending"),
        )
    if gpu.retirement_pending:
        text = f"GPU {i} has memory pages that retire at the next start: drain it and restart the node."
        yield Finding("warning", text, line("retirement_pending"))
    if gpu.ecc_uncorrected:
        yield Finding(
            "error",
            f"GPU {i} has met {gpu.ecc_uncorrected} uncorrectable memory errors since the driver started: results may "
            "be lost. Reset it; if errors return, run 'dcgmi diag -r 3' and replace the card.",
            line("ecc_uncorrected"),
        )
    if gpu.reset_required:
        yield Finding(
            "error",
            f"GPU {i} asks for a reset: stop its programs and reset it, or restart the node.",
            line("reset_required"),
        )


def _slot(i: int, gpu: QueriedGPU, line: Callable[[str], str]) -> Iterator[Finding]:
    width, most = gpu.pcie_width, gpu.pcie_width_max
    if width and most and width < most:
        yield Finding(
            "warning",
            f"GPU {i} runs on {width} PCIe lanes of {most}: copies to it take {most / width:g} times as long. Reseat "
            "card or riser, and look at the slot's wiring and the BIOS's bifurcation setting.",
            line("pcie_width"),
        )
    now, best = gpu.pcie_generation, gpu.pcie_generation_max
    if now and best and now < best and (gpu.utilization_percent or 0) >= 50:
        yield Finding(
            "warning",
            f"GPU {i} is busy and yet its PCIe link runs at generation {now} of {best}. Look at slot, riser and BIOS. "
            "(An idle card lowers its link by itself.)",
            line("pcie_generation"),
        )


def _fabric(i: int, gpu: QueriedGPU, line: Callable[[str], str]) -> Iterator[Finding]:
    if (gpu.fabric_state or "").lower() in ("in progress", "not started"):
        yield Finding(
            "error",
            f"GPU {i} has not joined its NVLink fabric: CUDA fails with error 802 until it has. Run "
            "'systemctl status nvidia-fabricmanager' next; its version must be the driver's.",
            line("fabric_state"),
        )


def _listed(smi: SmiTable, gpu: TableGPU) -> Iterator[Finding]:
    key = f"gpu{gpu.index}"
    if gpu.error:
        yield Finding("error", f"GPU {gpu.index} ({gpu.bus_id}) {LOST}", smi.quote(f"{key}.error", key))
    if gpu.ecc_errors:
        text = (
            f"GPU {gpu.index} has met {gpu.ecc_errors} uncorrectable memory errors. "
            "Run 'nvidia-smi -q -d ECC,ROW_REMAPPER' next."
        )
        yield Finding("error", text, smi.quote(key))
    if (
        gpu.mig_mode == "Enabled"
        and smi.mig_devices is not None
        and gpu.index not in {s.gpu for s in smi.mig_devices}
    ):
        text = (
            f"GPU {gpu.index} is in MIG mode without a single slice: no program can use it. Run 'nvidia-smi mig "
            "-lgip' next."
        )
        yield Finding("warning", text, smi.quote(f"{key}.mig", key))
    yield from _held(smi, gpu)


def _held(smi: SmiTable, gpu: TableGPU) -> Iterator[Finding]:
    """Memory that somebody holds while the GPU is idle, and memory whose holder does not show."""
    used, total = gpu.memory_used_MiB, gpu.memory_total_MiB
    if not used or not total or used < 0.1 * total or smi.processes is None:
        return
    line = smi.quote(f"gpu{gpu.index}.readings", f"gpu{gpu.index}")
    holders = sorted((p for p in smi.processes if p.gpu == gpu.index), key=lambda p: -(p.memory_MiB or 0))
    if not holders and used > 1000 and not smi.cut:
        yield Finding(
            "warning",
            f"{used} of {total} MiB of GPU {gpu.index} are held by a process that does not show: one of another "
            "container or user, or one that died badly. Run 'sudo fuser -v /dev/nvidia*' on the host next.",
            line,
        )
    elif holders and used > 0.5 * total and (gpu.utilization_percent or 0) == 0:
        first = holders[0]
        yield Finding(
            "note",
            f"GPU {gpu.index} is idle, but process {first.pid} ({first.name}) holds memory on it, {used} of "
            f"{total} MiB "
            "in all. Another program that needs more than the rest fails with out of memory.",
            smi.quote(f"process{first.pid}"),
        )


def _slow_gpu(
    readings: list[tuple[int, float | None, float | None]], report: SmiTable | SmiQuery, key: str
) -> Iterator[Finding]:
    """Among GPUs that all read busy, one that draws far less power than its peers."""
    busy = [(i, power) for i, load, power in readings if load is not None and load >= 90 and power]
    if len(busy) < 3:
        return
    usual = median(power for _, power in busy)
    slow = [(i, power) for i, power in busy if power < 0.6 * usual]
    if 0 < len(slow) <= len(busy) // 3:
        i, power = slow[0]
        yield Finding(
            "warning",
            f"GPU {i} reads as busy as the others but draws {power:g} W where they draw {usual:g} W: a rank "
            "that waits, or "
            f"a card that is held back. Run 'nvidia-smi -q -d PERFORMANCE,CLOCK -i {i}' next.",
            report.quote(f"gpu{i}.{key}", f"gpu{i}"),
        )
