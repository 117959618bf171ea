"""Occupancy: how many warps of a kernel one multiprocessor can hold, and what keeps it from holding more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.catalog import gpu as catalogued
from labkit.hardware.catalog import sm_resources
from labkit.hardware.html import facts_table
from labkit.hardware.records import GPU, Record

WARP_SIZE = 32
# Shared memory is allocated in these steps, and from compute capability 8.0 on the system takes 1 KiB of each block's
# (CUDA C++ Programming Guide, "Shared Memory" of compute capability 8.x and 9.0; NVIDIA's occupancy calculator).
SHARED_UNIT = 128
SYSTEM_SHARED = 1024


@dataclass(frozen=True)
class Occupancy(Record):
    """Resident warps of a kernel on one multiprocessor of a card, by calculation.

    ``limits`` has, for each resource, the number of blocks it allows; ``limited_by`` names the smallest. Registers are
    left out when ``registers`` is None, because nobody has compiled the kernel.
    """

    gpu: str
    threads_per_block: int
    shared_bytes: int
    registers: int | None
    blocks: int
    warps: int
    max_warps: int
    limits: dict[str, int]
    limited_by: str

    @property
    def fraction(self) -> float:
        """Resident warps as a share of what the multiprocessor can hold."""
        return self.warps / self.max_warps

    def __repr__(self) -> str:
        known = "" if self.registers is not None else ", registers not known"
        return (
            f"Occupancy({self.fraction:.0%} on {self.gpu}: {self.blocks} blocks, {self.warps} of {self.max_warps} "
            f"warps, limited by {self.limited_by}{known}; modelled)"
        )

    def to_dict(self) -> dict[str, Any]:
        return {"label": f"modelled on {self.gpu}", **super().to_dict(), "fraction": self.fraction}

    def _repr_html_(self) -> str:
        facts = {
            "occupancy": f"{self.fraction:.0%} ({self.warps} of {self.max_warps} warps, {self.blocks} blocks)",
            "limited by": self.limited_by,
            "blocks each resource allows": self.limits,
            "registers a thread": self.registers or "not known: nobody has compiled this kernel",
            "shared memory a block": f"{self.shared_bytes:,} bytes",
        }
        return facts_table(facts, f"modelled on {self.gpu}")


def occupancy(
    threads_per_block: int, shared_bytes: int = 0, registers: int | None = None, gpu: str | GPU = "A100"
) -> Occupancy:
    """Occupancy of a launch on a catalogued NVIDIA card.

    Parameters
    ----------
    threads_per_block : int
        1 to 1024.
    shared_bytes : int
        Static and dynamic shared memory of a block.
    registers : int or None
        Registers a thread, as the compiler reports them; None leaves them out of the calculation.

    Raises
    ------
    LabkitError
        For an unknown card, or a block that no multiprocessor of it can hold.
    """
    card = catalogued(gpu)
    limit = sm_resources(card)
    if not 1 <= threads_per_block <= 1024:
        raise LabkitError(f"A block has 1 to 1024 threads, not {threads_per_block}.")
    warps = -(-threads_per_block // WARP_SIZE)
    limits = {"threads": limit.warps // warps, "blocks": limit.blocks}
    taken = shared_taken(shared_bytes, limit.compute_capability)
    if shared_bytes > limit.shared_per_block_KiB * 1024:
        raise LabkitError(
            f"{shared_bytes:,} bytes of shared memory are more than a block on {card.id} can have "
            f"({limit.shared_per_block_KiB} KiB): use a smaller tile."
        )
    if taken:
        limits["shared memory"] = limit.shared_KiB * 1024 // taken
    if registers is not None:
        per_warp = -(-registers * WARP_SIZE // limit.register_unit) * limit.register_unit
        limits["registers"] = limit.registers // (per_warp * warps) if per_warp else limit.blocks
    blocks = min(limits.values())
    if blocks == 0:
        raise LabkitError(
            f"{registers} registers a thread in blocks of {threads_per_block} do not fit on {card.id}."
        )
    limited_by = min(limits, key=lambda name: limits[name])
    return Occupancy(
        card.id,
        threads_per_block,
        shared_bytes,
        registers,
        blocks,
        blocks * warps,
        limit.warps,
        limits,
        limited_by,
    )


def shared_taken(shared_bytes: int, capability: str) -> int:
    """Shared memory that a block occupies, the system's part and rounding included."""
    system = SYSTEM_SHARED if float(capability) >= 8 else 0
    return -(-(shared_bytes + system) // SHARED_UNIT) * SHARED_UNIT
