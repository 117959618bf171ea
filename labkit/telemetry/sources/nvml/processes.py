"""Who uses a GPU: how many processes, and the memory of this one where that can be known."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from labkit.telemetry.sources.nvml.metric import Metric

GIB = 1024**3
HOST_PIDS = "pid:[4026531836]"  # Linux gives the first namespace of process ids always this number
FOREIGN = "in a container the driver's process ids are not this system's"


class Processes:
    """Processes with a CUDA context; the list is asked for every 2 s at most, as it is dear."""

    metrics = (
        Metric("processes", " processes", "", "gpu processes"),
        Metric("own_memory", " memory of this kernel", "GiB", "gpu own memory"),
    )
    EVERY = 2.0

    def __init__(self, nvml: Any):
        self._nvml = nvml
        self._same_ids = in_host_pids()
        self._last: tuple[float, Sequence[float | str | None]] = (-self.EVERY, ())

    def read(self, handle: Any) -> Sequence[float | str | None]:
        now = time.monotonic()
        if now - self._last[0] >= self.EVERY:
            listed = self._list(handle)
            self._last = now, (len(listed), self._own(listed))
        return self._last[1]

    def _list(self, handle: Any) -> list[Any]:
        nvml = self._nvml
        try:
            return list(nvml.nvmlDeviceGetComputeRunningProcesses(handle))
        except nvml.NVMLError as error:
            if error.value != nvml.NVML_ERROR_FUNCTION_NOT_FOUND:
                raise
        return list(nvml.nvmlDeviceGetComputeRunningProcesses_v2(handle))

    def _own(self, listed: list[Any]) -> float | str | None:
        if not self._same_ids:
            return FOREIGN
        mine = [one.usedGpuMemory for one in listed if one.pid == os.getpid()]
        return None if None in mine else sum(mine) / GIB


def in_host_pids(namespace: str = "/proc/self/ns/pid") -> bool:
    """Whether this process counts process ids as the driver does: not in a container's own namespace."""
    try:
        return os.readlink(namespace) == HOST_PIDS
    except OSError:
        return os.name == "nt"  # Windows has one; elsewhere it is not known, so nothing is matched
