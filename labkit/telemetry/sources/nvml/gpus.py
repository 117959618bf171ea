"""Which GPUs NVML shows to this process, in CUDA's order, and its errors in words."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from labkit.telemetry.sources.visible import visible_uuids

NOT_REPORTED = "this GPU does not report it"
IN_MIG = "n/a (MIG)"


@dataclass(frozen=True)
class Gpu:
    """One visible GPU (or MIG slice): its NVML handle, or the reason why there is none."""

    label: str
    handle: Any
    sliced: bool
    reason: str = ""

    @property
    def number(self) -> str:
        return self.label.removeprefix("GPU ")


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
        nvml.NVML_ERROR_NOT_SUPPORTED: NOT_REPORTED,
        nvml.NVML_ERROR_FUNCTION_NOT_FOUND: "the installed driver is too old to report it",
        nvml.NVML_ERROR_NO_PERMISSION: "no permission to read it",
        nvml.NVML_ERROR_GPU_IS_LOST: "the GPU is lost: it fell off the bus, restart the machine",
        nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
            "the driver was updated but not reloaded: restart the machine (driver/library version mismatch)"
        ),
    }
    return known.get(error.value, str(error))
