"""The table that ``nvidia-smi`` prints without arguments, from driver 384 to the 600s."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from labkit.hardware.reports.base import Reader, Report, Table, number, show, whole, word

_VERSION = re.compile(r"NVIDIA-SMI\s+([\d.]+)")
# Drivers from 610 on call the driver KMD, and the CUDA of the driver UMD.
_DRIVER = re.compile(r"(?:Driver|KMD) Version:\s*([\d.]+)")
_CUDA = re.compile(r"CUDA (?:UMD )?Version:\s*([\d.]+)")
_BUS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d"
_FIRST = re.compile(r"(\d{1,3})\s+(.+?)(?:\s+(On|Off|N/A|WDDM|TCC|MCDM|ERR!))?")
_PLACE = re.compile(rf"({_BUS})\s*(On|Off|N/A|ERR!)?")
_SECOND = re.compile(
    r"(\d+\s*%|N/A|ERR!|\[?Unknown Error\]?)\s+(\d+\s*C|N/A|ERR!)\s+(P\d+|N/A|ERR!)\s+(\S+)\s*/\s*(\S+)"
)
_MEMORY = re.compile(r"(\d{1,12})\s*MiB\s*/\s*(\d{1,12})\s*MiB")
_LOAD = re.compile(r"(\d+\s*%|N/A|ERR!)\s+(\S.*)")
_SLICE = re.compile(r"(\d{1,4})\s+(\d{1,4})\s+(\d{1,4})\s+(\d{1,4})")
_PROCESS = re.compile(
    r"(\d{1,4})(?:\s+(N/A|\d{1,4})\s+(N/A|\d{1,4}))?\s+(\d{1,12})\s+([CGM](?:\+[CGM])*)\s+(.*?)(?:\s+(\d+\s*MiB|N/A))?"
)


@dataclass(frozen=True)
class TableGPU:
    """One GPU of the table. Memory in MiB, power in W, temperature in degrees C; None where it says N/A or ERR!."""

    index: int
    name: str
    bus_id: str | None
    persistence: str | None
    ecc_errors: int | None
    fan_percent: float | None = None
    temperature_C: float | None = None
    performance_state: str | None = None
    power_W: float | None = None
    power_limit_W: float | None = None
    memory_used_MiB: int | None = None
    memory_total_MiB: int | None = None
    utilization_percent: float | None = None
    compute_mode: str | None = None
    mig_mode: str | None = None
    error: bool = False


@dataclass(frozen=True)
class Slice:
    """One MIG device: GPU, GPU instance, compute instance, device number, memory in MiB, multiprocessors."""

    gpu: int
    gpu_instance: int
    compute_instance: int
    device: int
    memory_used_MiB: int | None
    memory_total_MiB: int | None
    multiprocessors: int | None


@dataclass(frozen=True)
class Process:
    """A process on a GPU; type C computes, G draws. The name may be shortened by the tool."""

    gpu: int
    gpu_instance: int | None
    compute_instance: int | None
    pid: int
    type: str
    name: str
    memory_MiB: int | None


@dataclass(frozen=True, kw_only=True, repr=False)
class SmiTable(Report):
    """The table: versions, GPUs, MIG devices, processes. `processes` None: the section is not there."""

    kind = "smi_table"
    title = "nvidia-smi"
    smi_version: str | None
    driver_version: str | None
    cuda_version: str | None
    gpus: tuple[TableGPU, ...]
    mig_devices: tuple[Slice, ...] | None
    processes: tuple[Process, ...] | None

    def headline(self) -> str:
        versions = f"driver {show(self.driver_version)}, CUDA {show(self.cuda_version)}"
        return f"{self.title}: {versions}, {len(self.gpus)} GPUs"

    def table(self) -> Table:
        head = ("GPU", "name", "busy %", "memory MiB", "power W", "temperature C", "processes")
        rows = []
        for gpu in self.gpus:
            count = (
                None
                if self.processes is None
                else sum(process.gpu == gpu.index for process in self.processes)
            )
            memory = f"{show(gpu.memory_used_MiB)} of {show(gpu.memory_total_MiB)}"
            power = f"{show(gpu.power_W)} of {show(gpu.power_limit_W)}"
            cells = (gpu.index, gpu.name, gpu.utilization_percent, memory, power, gpu.temperature_C, count)
            rows.append(tuple(map(show, cells)))
        return head, tuple(rows)


@dataclass
class _Draft:
    """A GPU whose rows are still coming in."""

    values: dict[str, Any]
    rows: int = 1


@dataclass
class _State:
    section: str = "head"
    partial: str = ""
    closed: bool = False
    wrap: int = 0
    width: int = 0
    versions: dict[str, str | None] = field(default_factory=dict)


class SmiTableReader(Reader):
    kind = "smi_table"

    def __init__(self) -> None:
        super().__init__()
        self.state = _State()
        self.drafts: list[_Draft] = []
        self.slices: list[Slice] | None = None
        self.processes: list[Process] | None = None

    @classmethod
    def starts(cls, line: str) -> bool:
        return ("NVIDIA-SMI" in line and "ersion" in line) or ("| GPU " in line and "Bus-Id" in line)

    def take(self, line: str) -> bool:
        text = line.strip()
        if not text:
            return True
        if "NVIDIA-SMI" in text and self.state.versions:
            return False  # the next table
        if set(text) <= set("|=+-") and not (text == "|" and self.state.partial):
            self._border(text)
            return True
        if text.startswith("|") or self.state.partial:
            self._unwrap(text, line)
            return True
        return False

    def _border(self, text: str) -> None:
        """A line between rows. If the terminal broke it, its pieces tell the terminal's width and the table's."""
        self.state.partial = ""
        self.state.closed = text.startswith("+") or text.endswith("+")
        if text.startswith(("+", "|")):
            self.state.width = len(text)
            if not text.endswith(("+", "|")):
                self.state.wrap = len(text)
        else:
            self.state.width += len(text)

    def _versions(self, text: str) -> None:
        for name, pattern in (("smi", _VERSION), ("driver", _DRIVER), ("cuda", _CUDA)):
            match = pattern.search(text)
            self.state.versions[name] = match[1] if match else None
        self.keep("versions", text)

    def _unwrap(self, text: str, line: str) -> None:
        """Join a row that the terminal broke; it ends where its last bar is."""
        for border in () if self.state.versions or self.state.partial else self.before:
            if border and set(border) <= set("+-"):
                self._border(border)
        partial, width = self.state.partial, self.state.wrap
        row = (partial + line.rstrip() if width else f"{partial} {text}").strip()
        whole_row = row.endswith("|") and len(row) > 1 and (not width or len(row) >= self.state.width)
        if not whole_row and len(row) < 400:
            # Spaces at the end of a line were lost: the next piece began at a multiple of the width.
            self.state.partial = row.ljust(-(-len(row) // width) * width) if width else row
            return
        self.state.partial = ""
        self.state.closed = False
        if "NVIDIA-SMI" in row:
            self._versions(row)
        else:
            self._row([cell.strip() for cell in row.strip("|").split("|")], row)

    def _row(self, cells: list[str], line: str) -> None:
        if cells[0].startswith("Processes"):
            self.state.section, self.processes = "processes", self.processes or []
        elif cells[0].startswith("MIG devices"):
            self.state.section, self.slices = "mig", self.slices or []
        elif self.state.section == "processes":
            self._process(cells[0], line)
        elif self.state.section == "mig":
            self._slice(cells)
        else:
            self._gpu(cells, line)

    def _gpu(self, cells: list[str], line: str) -> None:
        if len(cells) < 3:
            return
        place, first = _PLACE.search(cells[1]), _FIRST.fullmatch(cells[0])
        if place and first:
            name = first[2]
            values = {
                "index": int(first[1]),
                "name": name,
                "bus_id": place[1],
                "persistence": word(first[3]),
                "ecc_errors": whole(cells[2]),
                "error": "ERR!" in line,
            }
            self.drafts.append(_Draft(values))
            self.keep(f"gpu{first[1]}", line)
        elif self.drafts:
            self._more(self.drafts[-1], cells, line)

    def _more(self, draft: _Draft, cells: list[str], line: str) -> None:
        """The second row of a GPU, with its readings, or the third, with its MIG mode."""
        index = draft.values["index"]
        if draft.rows == 1:
            draft.rows = 2
            draft.values.update(_readings(cells))
            draft.values["error"] |= "ERR!" in line or "Unknown Error" in line or "GPU is lost" in line
            self.keep(f"gpu{index}.readings", line)
            if draft.values["error"]:
                self.keep(f"gpu{index}.error", line)
        elif draft.rows == 2 and cells[2] and not cells[0]:
            draft.rows = 3
            draft.values["mig_mode"] = word(cells[2])
            self.keep(f"gpu{index}.mig", line)

    def _slice(self, cells: list[str]) -> None:
        found = _SLICE.fullmatch(cells[0])
        if found is None or self.slices is None or len(cells) < 3:
            return
        memory = _MEMORY.search(cells[1])
        used, total = (int(memory[1]), int(memory[2])) if memory else (None, None)
        gpu, gi, ci, device = map(int, found.groups())
        self.slices.append(Slice(gpu, gi, ci, device, used, total, whole(cells[2])))

    def _process(self, text: str, line: str) -> None:
        found = _PROCESS.fullmatch(text)
        if found is None or self.processes is None:
            return
        gpu, gi, ci, pid, kind, name, memory = found.groups()
        self.processes.append(
            Process(int(gpu), whole(gi), whole(ci), int(pid), kind, name.strip(), whole(memory))
        )
        self.keep(f"process{pid}", line)

    def finish(self) -> SmiTable | None:
        versions = self.state.versions
        if not self.drafts and not versions.get("driver"):
            return None
        unfinished = any(draft.rows < 2 for draft in self.drafts) or not self.drafts
        return SmiTable(
            smi_version=versions.get("smi"),
            driver_version=versions.get("driver"),
            cuda_version=versions.get("cuda"),
            gpus=tuple(TableGPU(**draft.values) for draft in self.drafts),
            mig_devices=None if self.slices is None else tuple(self.slices),
            processes=None if self.processes is None else tuple(self.processes),
            cut=bool(unfinished or self.state.partial or not self.state.closed),
            quotes=self.quotes,
        )


def _readings(cells: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if left := _SECOND.fullmatch(cells[0]):
        fan, temperature, state, power, limit = left.groups()
        found = {
            "fan_percent": number(fan),
            "temperature_C": number(temperature),
            "performance_state": word(state),
            "power_W": number(power),
            "power_limit_W": number(limit),
        }
    if memory := _MEMORY.search(cells[1]):
        found |= {"memory_used_MiB": int(memory[1]), "memory_total_MiB": int(memory[2])}
    if load := _LOAD.fullmatch(cells[2]):
        found |= {"utilization_percent": number(load[1]), "compute_mode": word(load[2])}
    return found
