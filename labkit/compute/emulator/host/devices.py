"""The devices of the emulator: one card of the catalogue, whose limits and sizes programs may ask for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from labkit.compute.emulator import allocations, limits
from labkit.compute.emulator.host.clock import CLOCK
from labkit.errors import LabkitError


class DeviceName(str):
    """The name, as text; programs that expect bytes may call ``decode``."""

    __slots__ = ()

    def decode(self, *_: Any) -> str:
        return str(self)


class MemoryInfo(NamedTuple):
    """Bytes of the emulated card's memory, by the catalogue, less what device arrays hold."""

    free: int
    total: int


@dataclass(frozen=True)
class EmulatedDevice:
    """What ``cuda.get_current_device()`` returns: the emulator, with the figures of a catalogued card.

    Attributes such as ``MULTIPROCESSOR_COUNT`` are the card's; kernels run on the CPU.
    """

    id: int = 0

    @property
    def name(self) -> DeviceName:
        return DeviceName("labkit emulator")

    @property
    def compute_capability(self) -> tuple[int, int]:
        major, minor = CLOCK.card.spec.compute_capability.split(".")
        return int(major), int(minor)

    @property
    def uuid(self) -> str:
        return "GPU-00000000-0000-0000-0000-000000000000"

    @property
    def supports_float16(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name.isupper():
            found = attributes().get(name)
            if found is not None:
                return found
        raise AttributeError(
            f"the emulated device has no attribute {name!r}; there are name, compute_capability, "
            f"{', '.join(sorted(attributes()))}"
        )

    def __repr__(self) -> str:
        return f"<emulated CUDA device {self.id} 'labkit emulator', figures of {CLOCK.card.spec.name}>"

    def reset(self) -> None:
        """Nothing to reset."""

    def get_primary_context(self) -> Context:
        return Context()


def attributes() -> dict[str, int]:
    """CUDA's device attributes of the card, by the catalogue and CUDA's limits."""
    from labkit.hardware import sm_resources

    card = CLOCK.card.spec
    sm = sm_resources(card)
    major, minor = card.compute_capability.split(".")
    return {
        "MAX_THREADS_PER_BLOCK": limits.MAX_THREADS_PER_BLOCK,
        **{f"MAX_BLOCK_DIM_{axis}": n for axis, n in zip("XYZ", limits.MAX_BLOCK, strict=True)},
        **{f"MAX_GRID_DIM_{axis}": n for axis, n in zip("XYZ", limits.MAX_GRID, strict=True)},
        "MAX_SHARED_MEMORY_PER_BLOCK": limits.MAX_STATIC_SHARED_BYTES,
        "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": sm.shared_per_block_KiB * 1024,
        "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": sm.shared_KiB * 1024,
        "MAX_REGISTERS_PER_BLOCK": sm.registers,
        "MAX_REGISTERS_PER_MULTIPROCESSOR": sm.registers,
        "MAX_THREADS_PER_MULTI_PROCESSOR": sm.threads,
        "MAX_THREADS_PER_MULTIPROCESSOR": sm.threads,
        "MAX_BLOCKS_PER_MULTIPROCESSOR": sm.blocks,
        "MULTIPROCESSOR_COUNT": card.multiprocessors,
        "WARP_SIZE": 32,
        "CLOCK_RATE": int(card.boost_MHz * 1000),
        "L2_CACHE_SIZE": int(card.l2_MB * 2**20),
        "COMPUTE_CAPABILITY_MAJOR": int(major),
        "COMPUTE_CAPABILITY_MINOR": int(minor),
        "UNIFIED_ADDRESSING": 1,
        "CAN_MAP_HOST_MEMORY": 1,
        "CONCURRENT_KERNELS": 1,
        "ASYNC_ENGINE_COUNT": 2,
        "COOPERATIVE_LAUNCH": 1,
        "MANAGED_MEMORY": 1,
    }


class Context:
    """The context of the emulated device."""

    device = EmulatedDevice()

    def __repr__(self) -> str:
        return "<context of the emulated CUDA device 0>"

    def get_memory_info(self) -> MemoryInfo:
        """Free and total bytes: the catalogue's figure for the card, less the device arrays that are alive."""
        total = int(CLOCK.card.spec.memory_GB * 1e9)
        return MemoryInfo(max(0, total - allocations.allocated_bytes()), total)

    def synchronize(self) -> None:
        CLOCK.wait()

    def push(self) -> None:
        """The one context is always current."""

    pop = reset = push


class Devices:
    """``cuda.gpus``: a list of one; ``with cuda.gpus[0]:`` and ``cuda.gpus.current`` are there too."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, number: int) -> Managed:
        select_device(number)
        return Managed()

    def __iter__(self) -> Iterator[Managed]:
        return iter([Managed()])

    def __repr__(self) -> str:
        return "<Managed Device 0 (emulated)>"

    @property
    def current(self) -> Managed:
        return Managed()

    @property
    def lst(self) -> list[Managed]:
        return [Managed()]


class Managed(EmulatedDevice):
    """A device of ``cuda.gpus``, which a ``with`` block makes the current one."""

    def __enter__(self) -> Managed:
        return self

    def __exit__(self, *_: Any) -> None:
        """The only device stays the current one."""


gpus = Devices()


def select_device(device_id: int) -> Context:
    """Make a device current; the emulator has the one of number 0."""
    if device_id != 0:
        raise LabkitError(
            f"There is no device {device_id}: the emulator is one device, cuda.select_device(0)."
        )
    return Context()


def get_current_device() -> EmulatedDevice:
    """The emulated device."""
    return EmulatedDevice()


def list_devices() -> Devices:
    return gpus


def current_context(devnum: int | None = None) -> Context:
    """The context of the emulated device."""
    return select_device(devnum or 0)


def device_count() -> int:
    return 1
