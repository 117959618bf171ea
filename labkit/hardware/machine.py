"""What a device and a machine are, as records that show themselves."""

from __future__ import annotations

from dataclasses import dataclass

from labkit.errors import LabkitError
from labkit.hardware import cpu, driver
from labkit.hardware.records import GPU, Record
from labkit.hardware.units import show_bytes


@dataclass(frozen=True)
class Device(Record):
    """A CUDA GPU or the CPU. None: not known, or it has no meaning for this kind.

    `memory_bytes` and `cores` of a CPU are what this process may use: affinity and container limits count.
    """

    kind: str
    name: str
    memory_bytes: int | None = None
    index: int | None = None
    uuid: str | None = None
    compute_capability: str | None = None
    cores: float | None = None
    physical_cores: int | None = None

    def catalogued(self) -> GPU | None:
        """The catalogue's entry for this GPU, or None when it has none that is surely this card."""
        from labkit.hardware.catalog import gpu

        try:
            return gpu(self.name, self.memory_bytes) if self.kind == "gpu" else None
        except LabkitError:
            return None

    def __str__(self) -> str:
        memory = "" if self.memory_bytes is None else f", {show_bytes(self.memory_bytes)}"
        return f"{self.name}{self._cores()}{memory}"

    def _cores(self) -> str:
        if self.cores is None:
            return ""
        word = "CPU" if self.cores == 1 else "CPUs"
        physical = f" on {self.physical_cores} cores" if self.physical_cores else ""
        return f", {self.cores:g} {word}{physical}"


@dataclass(frozen=True)
class Machine(Record):
    """This machine: its CPU, its GPUs, which backend kernels use, and why it is not the GPU."""

    cpu: Device
    gpus: tuple[Device, ...]
    backend: str
    reason: str

    @property
    def headline(self) -> str:
        """One sentence: what will these lessons use, and how are its figures to be read."""
        if self.backend == "gpu":
            return f"Kernels run on {self.gpus[0].name}: times are measured there."
        return (
            f"Kernels run on the emulator, on {self.cpu.name}: results are emulated, GPU times are modelled, "
            "CPU times are measured."
        )

    def __repr__(self) -> str:
        cards = "; ".join(map(str, self.gpus)) or "no GPU"
        return f"{self.headline} ({self.cpu}; {cards})"

    def _repr_html_(self) -> str:
        from labkit.hardware.html import facts_table

        cards = {f"GPU {device.index}": str(device) for device in self.gpus}
        why = self.reason if self.backend == "emulator" else ""
        return facts_table(
            {"CPU": str(self.cpu), **cards, "backend": self.backend, "why": why}, self.headline
        )


def gpu_device(card: driver.Card) -> Device:
    """The record for what the driver said of one GPU."""
    return Device("gpu", card.name, card.memory_bytes, card.index, card.uuid, card.compute_capability)


def cpu_device() -> Device:
    """The record for this machine's processor, as far as this process may use it."""
    return Device(
        "cpu", cpu.name(), memory_bytes=cpu.memory(), cores=cpu.usable(), physical_cores=cpu.physical_cores()
    )
