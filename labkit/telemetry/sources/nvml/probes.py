"""What NVML is asked, one call a probe: which metrics it gives, and their units and limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from labkit.telemetry.sources.nvml.calls import Counters, Number, Pair
from labkit.telemetry.sources.nvml.metric import Metric
from labkit.telemetry.sources.nvml.processes import Processes

GIB = 1024**3
NOT_AVAILABLE = 2**32 - 1  # what NVML writes for a figure it does not have
ALL_LINKS = 2**32 - 1  # as a field's scope: the sum over all NVLinks
TOO_SOON = "a rate needs two readings"
AGAIN = "the counter has started anew"
Found = Sequence[float | str | None]


class Probe(Protocol):
    """One question to the driver. ``read`` may raise NVMLError, which then stands for all its metrics."""

    @property
    def metrics(self) -> tuple[Metric, ...]: ...

    def read(self, handle: Any) -> Found:
        """For each metric its value, why there is none, or None where the GPU does not report it."""
        ...


@dataclass(frozen=True)
class Single:
    """A call that gives one number; None: not reported."""

    metric: Metric
    ask: Callable[[Any], float | None]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return (self.metric,)

    def read(self, handle: Any) -> Found:
        return (self.ask(handle),)


def quick_probes(nvml: Any) -> list[Probe]:
    """Those that a driver answers in microseconds; new ones for each GPU, as some remember."""
    return [
        Single(UTILIZATION, Pair(nvml, "nvmlDeviceGetUtilizationRates")),
        Single(MEMORY, lambda handle: _memory(nvml, handle)),
        Power(nvml),
        Single(TEMPERATURE, Number(nvml, "nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU)),
        Single(SM_CLOCK, Number(nvml, "nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM)),
        Single(MEMORY_CLOCK, Number(nvml, "nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM)),
        Slowed(nvml),
        Single(ENCODER, Number(nvml, "nvmlDeviceGetEncoderUtilization", places=2)),
        Single(DECODER, Number(nvml, "nvmlDeviceGetDecoderUtilization", places=2)),
        Fields(nvml),
    ]


def unhurried_probes(nvml: Any) -> list[Probe]:
    """Those that take their time, and are asked for less often: 20 ms for each direction of PCIe alone."""
    return [PCIe(nvml), Processes(nvml)]


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


def _memory(nvml: Any, handle: Any) -> float | None:
    info = _memory_info(nvml, handle)
    # Without a total the memory is unified with the processor's: the GPU has none of its own to report.
    return 100.0 * info.used / info.total if info.total else None


def _memory_limit(nvml: Any, handle: Any) -> tuple[str, float | None]:
    total = _memory_info(nvml, handle).total
    return (f"{total / GIB:.1f} GiB", 100.0) if total else ("", None)


def _power_limit(nvml: Any, handle: Any) -> tuple[str, float]:
    watts = nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000
    return f"{watts:.0f} W", watts


def _slowdown(nvml: Any, handle: Any) -> tuple[str, float]:
    limit = nvml.nvmlDeviceGetTemperatureThreshold(handle, nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
    return f"slows down at {limit} °C", float(limit)


class Power:
    """Watts, from NVML's milliwatts."""

    metrics = (Metric("power", " power", "W", "gpu power", _power_limit, hidden=False),)

    def __init__(self, nvml: Any):
        self._ask = Number(nvml, "nvmlDeviceGetPowerUsage")

    def read(self, handle: Any) -> Found:
        milliwatts = self._ask(handle)
        return (None if milliwatts == NOT_AVAILABLE else 1e-3 * milliwatts,)


class Slowed:
    """Why the clocks are lower than they could be: 100 % while a reason holds, so that means are shares."""

    metrics = (
        Metric("slowed_by_heat", " slowed by heat", "%", "gpu slowed"),
        Metric("at_power_limit", " at its power limit", "%", "gpu slowed"),
        Metric("slowed_by_hardware", " slowed by hardware", "%", "gpu slowed"),
    )

    def __init__(self, nvml: Any):
        self._bits = (
            nvml.nvmlClocksThrottleReasonSwThermalSlowdown | nvml.nvmlClocksThrottleReasonHwThermalSlowdown,
            nvml.nvmlClocksThrottleReasonSwPowerCap,
            nvml.nvmlClocksThrottleReasonHwSlowdown | nvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
        )
        # The name that all drivers know; newer ones speak of clock event reasons.
        self._ask = Number(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", wide=True)

    def read(self, handle: Any) -> Found:
        reasons = self._ask(handle)
        return [100.0 if reasons & bits else 0.0 for bits in self._bits]


class Fields:
    """NVLink's counters and those of memory errors: one call for all, each with a status of its own."""

    metrics = (
        Metric("nvlink_sent", " NVLink sent", "MB/s", "gpu nvlink"),
        Metric("nvlink_received", " NVLink received", "MB/s", "gpu nvlink"),
        Metric("ecc_corrected", " ECC errors corrected", "", "gpu ecc"),
        Metric("ecc_uncorrected", " ECC errors uncorrected", "", "gpu ecc"),
    )

    def __init__(self, nvml: Any):
        self._ask = Counters(
            nvml,
            (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ALL_LINKS),
            (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ALL_LINKS),
            (nvml.NVML_FI_DEV_ECC_SBE_VOL_TOTAL, 0),
            (nvml.NVML_FI_DEV_ECC_DBE_VOL_TOTAL, 0),
        )
        self._before: tuple[float, list[int | None]] = (0.0, [None, None])

    def read(self, handle: Any) -> Found:
        sent, received, *errors = self._ask(handle)
        now = time.monotonic()
        (then, before), self._before = self._before, (now, [sent, received])
        pairs = zip(before, (sent, received), strict=True)
        return [*(_rate(old, new, now - then) for old, new in pairs), *errors]


def _rate(old: int | None, new: int | None, seconds: float) -> float | str | None:
    """MB/s from a counter of KiB."""
    if new is None:
        return None
    if old is None:
        return TOO_SOON
    return 1024 * (new - old) / seconds / 1e6 if new >= old else AGAIN


class PCIe:
    """Bytes over the slot, as the driver finds them by watching for 20 ms; asked once a second."""

    metrics = (
        Metric("pcie_sent", " PCIe sent", "MB/s", "gpu pcie"),
        Metric("pcie_received", " PCIe received", "MB/s", "gpu pcie"),
    )
    EVERY = 1.0

    def __init__(self, nvml: Any):
        self._nvml = nvml
        self._counters = (nvml.NVML_PCIE_UTIL_TX_BYTES, nvml.NVML_PCIE_UTIL_RX_BYTES)
        self._last: tuple[float, Found] = (-self.EVERY, ())

    def read(self, handle: Any) -> Found:
        now = time.monotonic()
        if now - self._last[0] >= self.EVERY:
            ask = self._nvml.nvmlDeviceGetPcieThroughput
            self._last = now, [ask(handle, counter) * 1e-3 for counter in self._counters]  # from kB/s
        return self._last[1]


UTILIZATION = Metric("utilization", "", "%", "gpu", hidden=False)
MEMORY = Metric("memory", " memory", "%", "gpu memory", _memory_limit, hidden=False, whole_gpu=False)
TEMPERATURE = Metric("temperature", " temperature", "°C", "gpu temperature", _slowdown)
SM_CLOCK = Metric("sm_clock", " SM clock", "MHz", "gpu clock")
MEMORY_CLOCK = Metric("memory_clock", " memory clock", "MHz", "gpu clock")
ENCODER = Metric("encoder", " encoder", "%", "gpu video")
DECODER = Metric("decoder", " decoder", "%", "gpu video")
