"""NVIDIA's management library: the only package that talks to it.

Every metric of every GPU is asked for by itself, so that one that is unsupported is a gap with a reason and
a GPU that fell off the bus, or answers slowly, hides only itself.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from labkit.telemetry.series import Reading, Series
from labkit.telemetry.sources.lanes import Lanes
from labkit.telemetry.sources.nvml.gpus import IN_MIG, NOT_REPORTED, Gpu, visible_gpus, why
from labkit.telemetry.sources.nvml.metric import Metric
from labkit.telemetry.sources.nvml.probes import Probe, quick_probes, unhurried_probes

__all__ = ["NvmlSource"]
Plan = list[tuple[Probe, tuple[Series, ...]]]


class NvmlSource:
    """All metrics of the GPUs that CUDA shows to this process.

    GPUs are numbered as CUDA numbers them (``GPU 0`` is ``cuda:0``). Without the library or the driver there
    are no series at all; with a driver that answers with an error there is one gap that says so. The driver
    is asked from helper threads: a GPU that takes long to answer has gaps, and the others do not wait for it.
    """

    def __init__(self) -> None:
        self._nvml: Any = None
        self._failure = ""
        self._plans: list[tuple[Gpu, Plan]] = []
        self._lanes: Lanes[list[Reading]] = Lanes([], [])
        try:
            import pynvml
        except ImportError:
            return
        self._open(pynvml)

    def read(self) -> list[Reading]:
        if self._failure:
            series = Series("gpu.utilization", "GPU", "%", "measured", "gpu")
            return [Reading(series, None, self._failure)]
        answers = zip(self._plans, self._lanes.collect(), strict=True)
        return [reading for (_, plan), found in answers for reading in found or _late(plan)]

    def close(self) -> None:
        if self._nvml is None:
            return
        nvml, self._nvml, self._plans = self._nvml, None, []
        if not self._lanes.close():
            return  # a call is still going on, and needs the library
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
            gpus = visible_gpus(nvml)
        except nvml.NVMLError as error:
            self._failure = why(nvml, error)
            return
        quick = [(gpu, self._plan(gpu, quick_probes(nvml))) for gpu in gpus]
        slow = [(gpu, self._plan(gpu, unhurried_probes(nvml))) for gpu in gpus]
        self._plans = quick + slow
        jobs = [[partial(self._ask_all, gpu, plan) for gpu, plan in plans] for plans in (quick, slow)]
        self._lanes = Lanes(*jobs)

    def _plan(self, gpu: Gpu, probes: list[Probe]) -> Plan:
        return [(probe, tuple(self._series(gpu, metric) for metric in probe.metrics)) for probe in probes]

    def _series(self, gpu: Gpu, metric: Metric) -> Series:
        of, limit = self._limit(gpu, metric)
        return Series(
            f"gpu.{gpu.number}.{metric.key}",
            f"{gpu.label}{metric.suffix}",
            metric.unit,
            "measured",
            metric.group,
            of=of,
            hidden=metric.hidden,
            device=gpu.label,
            limit=limit,
        )

    def _limit(self, gpu: Gpu, metric: Metric) -> tuple[str, float | None]:
        if metric.limit is None or gpu.handle is None or (gpu.sliced and metric.whole_gpu):
            return "", None
        try:
            return metric.limit(self._nvml, gpu.handle)
        except self._nvml.NVMLError:
            return "", None  # the value can be read without its limit

    def _ask_all(self, gpu: Gpu, plan: Plan) -> list[Reading]:
        readings: list[Reading] = []
        for probe, series in plan:
            try:
                found = self._refusal(gpu, probe) or probe.read(gpu.handle)
            except self._nvml.NVMLError as error:
                found = [why(self._nvml, error)] * len(series)
            for one, value in zip(series, found, strict=True):
                readings.append(Reading(one, value) if type(value) in _NUMBERS else _gap(one, value))  # type: ignore[arg-type]
        return readings

    def _refusal(self, gpu: Gpu, probe: Probe) -> list[str] | None:
        """Why this GPU need not be asked, for each of the probe's metrics."""
        if gpu.handle is None:
            return [gpu.reason] * len(probe.metrics)
        if gpu.sliced and all(metric.whole_gpu for metric in probe.metrics):
            return [IN_MIG] * len(probe.metrics)
        return None


_NUMBERS = (int, float)


def _gap(series: Series, found: float | str | None) -> Reading:
    """A probe gives the reason for a metric's absence, or None: not reported."""
    return Reading(series, None, NOT_REPORTED if found is None else str(found))


def _late(plan: Plan) -> list[Reading]:
    return [Reading(one, None, "the driver has not answered yet") for _, series in plan for one in series]
