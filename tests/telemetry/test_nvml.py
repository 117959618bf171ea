"""NVML through the real ctypes path: which GPUs there are, and what is said where something is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from labkit.telemetry.sources.nvml.processes import in_host_pids
from labkit.telemetry.sources.visible import visible_uuids

HEALTHY = """
{0} utilization 57 31
{0} memory_v2 8589934592 85899345920
{0} power 250500
{0} limit 700000
{0} temperature 61
{0} mig 0
"""
Read = Callable[..., dict[str, list[Any]]]


def test_values_have_units_limits_and_their_words(read: Read) -> None:
    found = read("devices 1" + HEALTHY.format(0))
    assert {key: rest[0] for key, rest in found.items() if rest[0] is not None} == {
        "gpu.0.utilization": 57,
        "gpu.0.memory": 10.0,
        "gpu.0.power": 250.5,
        "gpu.0.temperature": 61,
        "gpu.0.processes": 0,
        **({"gpu.0.own_memory": 0} if in_host_pids() else {}),
    }
    assert found["gpu.0.memory"][2:] == ["80.0 GiB", 100]
    assert found["gpu.0.power"][2:] == ["700 W", 700]


def test_unsupported_metric_is_a_gap_with_a_reason_and_leaves_the_others(read: Read) -> None:
    found = read("devices 1" + HEALTHY.format(0) + "0 power error 3\n0 temperature error 4\n")
    assert found["gpu.0.power"][:2] == [None, "this GPU does not report it"]
    assert found["gpu.0.temperature"][:2] == [None, "no permission to read it"]
    assert found["gpu.0.utilization"][0] == 57


def test_memory_falls_back_to_version_one(read: Read) -> None:
    script = "devices 1" + HEALTHY.format(0) + "0 memory_v2 error 13\n0 memory_v1 25 100\n"
    assert read(script)["gpu.0.memory"][0] == 25.0


def test_unified_memory_without_a_figure_is_a_gap(read: Read) -> None:
    found = read("devices 1" + HEALTHY.format(0) + "0 memory_v2 0 0\n")
    assert found["gpu.0.memory"][:2] == [None, "this GPU does not report it"]


def test_gpu_lost_while_running_hides_only_itself(read: Read) -> None:
    metrics = ("utilization", "memory_v2", "power", "temperature")
    lost = "".join(f"1 {metric} error 15\n" for metric in metrics)
    found = read("devices 2" + HEALTHY.format(0) + HEALTHY.format(1), lost)
    assert all(found[f"gpu.0.{metric}"][0] is not None for metric in ("utilization", "memory", "power"))
    for metric in ("utilization", "memory", "power", "temperature"):
        value, reason = found[f"gpu.1.{metric}"][:2]
        assert value is None
        assert "the GPU is lost" in reason


def test_gpu_that_cannot_be_opened_keeps_the_others_in_place(read: Read) -> None:
    script = (
        "devices 3" + "".join(HEALTHY.format(i) for i in range(3)) + "1 handle error 15\n2 utilization 9 9\n"
    )
    found = read(script)
    assert found["gpu.0.utilization"][0] == 57
    assert "GPU 1 cannot be reached" in found["gpu.1.utilization"][1]
    assert found["gpu.2.utilization"][0] == 9


def test_visible_devices_choose_and_order_by_uuid(read: Read) -> None:
    script = "devices 3" + "".join(HEALTHY.format(i) + f"{i} utilization {10 * i} 0\n" for i in range(3))
    found = read(script, visible="GPU-00000002,0")
    utilization = {key: rest[0] for key, rest in found.items() if key.endswith("utilization")}
    assert utilization == {"gpu.0.utilization": 20, "gpu.1.utilization": 0}


def test_no_visible_device_means_no_series(read: Read) -> None:
    assert read("devices 2" + HEALTHY.format(0) + HEALTHY.format(1), visible="") == {}


def test_mig_slice_has_memory_and_says_why_the_rest_is_missing(read: Read) -> None:
    script = "devices 1" + HEALTHY.format(0) + HEALTHY.format(5) + "5 uuid MIG-7\n"
    found = read(script, visible="MIG-7")
    assert found["gpu.0.memory"][0] == 10.0
    assert found["gpu.0.utilization"][:2] == [None, "n/a (MIG)"]


def test_driver_mismatch_is_one_gap_that_says_what_to_do(read: Read) -> None:
    found = read("init error 18\n")
    ((value, reason, *_),) = found.values()
    assert value is None
    assert "restart the machine" in reason


@pytest.mark.parametrize("code", [9, 12])
def test_machine_without_driver_or_library_has_no_series(read: Read, code: int) -> None:
    assert read(f"init error {code}\n") == {}


@pytest.mark.parametrize(
    ("variable", "chosen"),
    [
        (None, ["GPU-aa1", "GPU-ab2", "GPU-b3"]),
        ("2,0", ["GPU-b3", "GPU-aa1"]),
        ("1,-1,0", ["GPU-ab2"]),
        ("0,7,1", ["GPU-aa1"]),
        ("GPU-ab, 0", ["GPU-ab2", "GPU-aa1"]),
        ("GPU-a", []),
        ("MIG-x,MIG-y", ["MIG-x", "MIG-y"]),
        ("0,0", ["GPU-aa1"]),
        ("", []),
        ("none", []),
    ],
)
def test_rules_of_cuda_visible_devices(variable: str | None, chosen: list[str]) -> None:
    assert visible_uuids(variable, ["GPU-aa1", "GPU-ab2", "GPU-b3"]) == chosen
