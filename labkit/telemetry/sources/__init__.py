"""Where readings come from. A source reads every metric of every device it knows, each on its own.

A source is any object with ``read() -> list[Reading]`` and ``close()``. ``read`` is called by the sampler's
thread only, never twice at once. A metric that cannot be read is a reading without a value and with a
reason; it is never zero, and never takes the others with it.
"""

from __future__ import annotations

from typing import Protocol

from labkit.telemetry.series import Reading


class Source(Protocol):
    """Reads all metrics of all its devices."""

    def read(self) -> list[Reading]:
        """One reading for each series, over the time since the last call where it is a rate."""
        ...

    def close(self) -> None:
        """Let go of what the source holds open."""
        ...


def default_sources() -> list[Source]:
    """The sources of this machine: GPUs, processor and memory, disks and networks, the emulator, ranks, clusters."""
    from labkit.telemetry.sources.cluster import ClusterSource
    from labkit.telemetry.sources.emulator import EmulatorSource
    from labkit.telemetry.sources.host import HostSource
    from labkit.telemetry.sources.links import LinksSource
    from labkit.telemetry.sources.nvml import NvmlSource
    from labkit.telemetry.sources.ranks import RanksSource
    from labkit.telemetry.sources.traffic import TrafficSource

    return [
        NvmlSource(),
        HostSource(),
        TrafficSource(),
        LinksSource(),
        EmulatorSource(),
        RanksSource(),
        ClusterSource(),
    ]
