"""NVIDIA's management library: the only module that talks to it.

Every metric of every GPU is asked for by itself, so that one that is unsupported is a gap with a reason and
a GPU that fell off the bus hides only itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labkit.telemetry.series import Reading, Series
from labkit.telemetry.sources.visible import visible_uuids

GIB = 1024**3
NOT_AVAILABLE = 2**32 - 1  # what NVML writes for a figure it does not have
IN_MIG = "n/a (MIG)"


@dataclass(frozen=True)
class Metric:
    """How one metric is named, and asked for."""

    key: str
    suffix: str
    unit: str
    group: str
    read: Callable[[Any, Any], float]
    limit: Callable[[Any, Any], str] | None = None
    hidden: bool = False
    whole_gpu: bool = True  # a figure of the whole GPU says nothing about a MIG slice


@dataclass(frozen=True)
class Gpu:
    """One visible GPU (or MIG slice): its NVML handle, or the reason why there is none."""

    label: str
    handle: Any
    sliced: bool
    reason: str = ""


class NvmlSource:
    """Utilisation, memory, power and temperature of the GPUs that CUDA shows to this process.

    GPUs are numbered as CUDA numbers them (``GPU 0`` is ``cuda:0``). Without the library or the driver there
    are no series at all; with a driver that answers with an error there is one gap that says so.
    """

    def __init__(self) -> None:
        self._nvml: Any = None
        self._failure = ""
        self._plan: list[tuple[Gpu, list[tuple[Metric, Series]]]] = []
        try:
            import pynvml
        except ImportError:
            return
        self._open(pynvml)

    def read(self) -> list[Reading]:
        if self._failure:
            series = Series("gpu.utilization", "GPU", "%", "measured", "gpu")
            return [Reading(series, None, self._failure)]
        return [self._ask(gpu, metric, series) for gpu, plan in self._plan for metric, series in plan]

    def close(self) -> None:
        if self._nvml is not None:
            nvml, self._nvml, self._plan = self._nvml, None, []
            try:
                nvml.nvmlShutdown()
            except nvml.NVMLError:
                pass  # the driver is gone already, and so is what would be let go

    def _open(self, nvml: Any) -> None:
        absent = (nvml.NVML_ERROR_LIBRARY_NOT_FOUND, nvml.NVML_ERROR_DRIVER_NOT_LOADED)
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            if error.value not in absent:
                self._failure = why(nvml, error)
            return
        self._nvml = nvml
        try:
            self._plan = [(gpu, self._series_of(gpu)) for gpu in visible_gpus(nvml)]
        except nvml.NVMLError as error:
            self._failure = why(nvml, error)

    def _series_of(self, gpu: Gpu) -> list[tuple[Metric, Series]]:
        return [(metric, self._series(gpu, metric)) for metric in METRICS]

    def _series(self, gpu: Gpu, metric: Metric) -> Series:
        number = gpu.label.removeprefix("GPU ")
        of = ""
        if metric.limit is not None and gpu.handle is not None and not (gpu.sliced and metric.whole_gpu):
            try:
                of = metric.limit(self._nvml, gpu.handle)
            except self._nvml.NVMLError:
                of = ""  # the value can be read without its limit
        return Series(
            f"gpu.{number}.{metric.key}",
            f"{gpu.label}{metric.suffix}",
            metric.unit,
            "measured",
            metric.group,
            of=of,
            hidden=metric.hidden,
        )

    def _ask(self, gpu: Gpu, metric: Metric, series: Series) -> Reading:
        if gpu.handle is None:
            return Reading(series, None, gpu.reason)
        if gpu.sliced and metric.whole_gpu:
            return Reading(series, None, IN_MIG)
        try:
            return Reading(series, metric.read(self._nvml, gpu.handle))
        except self._nvml.NVMLError as error:
            return Reading(series, None, why(self._nvml, error))


def visible_gpus(nvml: Any) -> list[Gpu]:
    """The GPUs and MIG slices visible to this process, in CUDA's order."""
    every = [_uuid(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
    uuids = visible_uuids(os.environ.get("CUDA_VISIBLE_DEVICES"), every)
    return [_gpu(nvml, number, uuid) for number, uuid in enumerate(uuids)]


def _uuid(nvml: Any, index: int) -> str:
    """UUID of a GPU; for one that cannot be asked the reason, so that the others keep their place."""
    try:
        return str(nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByIndex(index)))
    except nvml.NVMLError as error:
        return f"GPU {index} cannot be reached: {why(nvml, error)}"


def _gpu(nvml: Any, number: int, uuid: str) -> Gpu:
    label = f"GPU {number}"
    if not uuid.startswith(("GPU-", "MIG-")):
        return Gpu(label, None, False, uuid)
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
    except nvml.NVMLError as error:
        return Gpu(label, None, False, why(nvml, error))
    return Gpu(label, handle, uuid.startswith("MIG-") or _mig_enabled(nvml, handle))


def _mig_enabled(nvml: Any, handle: Any) -> bool:
    try:
        return int(nvml.nvmlDeviceGetMigMode(handle)[0]) == nvml.NVML_DEVICE_MIG_ENABLE
    except nvml.NVMLError:
        return False  # cards without MIG, and drivers that do not know it


def why(nvml: Any, error: Any) -> str:
    """A sentence for a learner from an NVML error."""
    known = {
        nvml.NVML_ERROR_NOT_SUPPORTED: "this GPU does not report it",
        nvml.NVML_ERROR_FUNCTION_NOT_FOUND: "the installed driver is too old to report it",
        nvml.NVML_ERROR_NO_PERMISSION: "no permission to read it",
        nvml.NVML_ERROR_GPU_IS_LOST: "the GPU is lost: it fell off the bus, restart the machine",
        nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
            "the driver was updated but not reloaded: restart the machine (driver/library version mismatch)"
        ),
    }
    return known.get(error.value, str(error))


def _utilization(nvml: Any, handle: Any) -> float:
    """Share of time in which at least one kernel ran: not how full the GPU was."""
    return float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)


def _memory_info(nvml: Any, handle: Any) -> Any:
    """Version 2 leaves out what the driver reserves for itself; older drivers know version 1 only."""
    old = (
        nvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        nvml.NVML_ERROR_NOT_SUPPORTED,
        nvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
    )
    try:
        return nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    except nvml.NVMLError as error:
        if error.value not in old:
            raise
    return nvml.nvmlDeviceGetMemoryInfo(handle)


def _memory(nvml: Any, handle: Any) -> float:
    info = _memory_info(nvml, handle)
    if not info.total:  # unified memory: the GPU has none of its own to report
        raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
    return 100.0 * info.used / info.total


def _memory_total(nvml: Any, handle: Any) -> str:
    total = _memory_info(nvml, handle).total
    return f"{total / GIB:.1f} GiB" if total else ""


def _power(nvml: Any, handle: Any) -> float:
    milliwatts = nvml.nvmlDeviceGetPowerUsage(handle)
    if milliwatts == NOT_AVAILABLE:
        raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
    return float(milliwatts) / 1000.0


def _power_limit(nvml: Any, handle: Any) -> str:
    return f"{nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000:.0f} W"


def _temperature(nvml: Any, handle: Any) -> float:
    return float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))


METRICS = (
    Metric("utilization", "", "%", "gpu", _utilization),
    Metric("memory", " memory", "%", "gpu memory", _memory, _memory_total, whole_gpu=False),
    Metric("power", " power", "W", "gpu power", _power, _power_limit),
    Metric("temperature", " temperature", "°C", "gpu temperature", _temperature, hidden=True),
)
