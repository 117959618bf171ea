"""Every further metric of NVML, many GPUs, slow ones, and processes in containers: against the stub."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labkit.telemetry.sources.nvml.processes import FOREIGN, HOST_PIDS, in_host_pids

Read = Callable[..., dict[str, list[Any]]]
FULL = """
{0} utilization 90 40
{0} memory_v2 1073741824 4294967296
{0} power 300000
{0} limit 400000
{0} temperature 70
{0} slowdown 87
{0} sm_clock 1980
{0} memory_clock 2619
{0} reasons 0
{0} encoder 12
{0} decoder 34
{0} pcie_tx 1500000
{0} pcie_rx 250000
{0} field138 1000
{0} field139 2000
{0} field3 5
{0} field4 0
"""


def value(found: dict[str, list[Any]], metric: str, gpu: int = 0) -> Any:
    return found[f"gpu.{gpu}.{metric}"][0]


def test_clocks_video_and_slowdown_threshold(read: Read) -> None:
    found = read("devices 1" + FULL.format(0))
    assert (value(found, "sm_clock"), value(found, "memory_clock")) == (1980, 2619)
    assert (value(found, "encoder"), value(found, "decoder")) == (12, 34)
    assert found["gpu.0.temperature"] == [70, "", "slows down at 87 °C", 87]


@pytest.mark.parametrize(
    ("bits", "slowed"),
    [
        (0x00, (0, 0, 0)),
        (0x01, (0, 0, 0)),  # idle is no reason to worry
        (0x04, (0, 100, 0)),
        (0x20, (100, 0, 0)),
        (0x48, (100, 0, 100)),
        (0x80, (0, 0, 100)),
    ],
)
def test_reasons_for_low_clocks(read: Read, bits: int, slowed: tuple[int, int, int]) -> None:
    found = read(f"devices 1{FULL.format(0)}0 reasons {bits}\n")
    names = ("slowed_by_heat", "at_power_limit", "slowed_by_hardware")
    assert tuple(value(found, name) for name in names) == slowed


def test_pcie_in_megabytes_a_second(read: Read) -> None:
    found = read("devices 1" + FULL.format(0))
    assert (value(found, "pcie_sent"), value(found, "pcie_received")) == (1500, 250)


RATE = """
import os, time
from labkit.telemetry.sources.nvml import NvmlSource
source = NvmlSource()
def nvlink():
    return [r for r in source.read() if "nvlink" in r.series.key]
print([one.reason for one in nvlink()])
time.sleep(0.2)
with open(os.environ["NVML_STUB_SCRIPT"], "a") as script:
    script.write("0 field138 201000\\n0 field139 1000\\n")
print([one.value and 50 < one.value < 1.1e3 or one.reason for one in nvlink()])
source.close()
"""


def test_nvlink_is_a_rate_and_a_counter_that_restarts_is_a_gap(with_nvml: Callable[..., str]) -> None:
    first, second = with_nvml(RATE, "devices 1" + FULL.format(0)).splitlines()
    assert first == str(["a rate needs two readings"] * 2)
    assert second == str([True, "the counter has started anew"])  # 200,000 KiB in some 0.2 s


def test_memory_errors_are_counts(read: Read) -> None:
    found = read("devices 1" + FULL.format(0))
    assert (value(found, "ecc_corrected"), value(found, "ecc_uncorrected")) == (5, 0)


def test_a_field_that_is_not_supported_leaves_the_others(read: Read) -> None:
    found = read("devices 1" + FULL.format(0) + "0 field138 error 3\n")
    assert found["gpu.0.nvlink_sent"][:2] == [None, "this GPU does not report it"]
    assert value(found, "ecc_corrected") == 5


def test_no_permission_is_said_of_each_metric(read: Read) -> None:
    metrics = ("utilization", "power", "pcie_tx", "reasons", "process")
    found = read("devices 1" + FULL.format(0) + "".join(f"0 {metric} error 4\n" for metric in metrics))
    for metric in ("utilization", "power", "pcie_sent", "slowed_by_heat", "processes", "own_memory"):
        assert found[f"gpu.0.{metric}"][:2] == [None, "no permission to read it"]
    assert value(found, "temperature") == 70


def test_sixteen_gpus_keep_their_order(read: Read) -> None:
    script = "devices 16" + "".join(FULL.format(i) + f"{i} utilization {i} 0\n" for i in range(16))
    found = read(script)
    assert [value(found, "utilization", i) for i in range(16)] == list(range(16))
    assert all(value(found, "pcie_sent", i) == 1500 for i in range(16))


SLOW = """
import json, time
from labkit.telemetry.sources.nvml import NvmlSource
source = NvmlSource()
found = []
for _ in range(6):
    began = time.monotonic()
    readings = {r.series.key: (r.value, r.reason) for r in source.read()}
    took = time.monotonic() - began
    found.append((took, *(readings[f"gpu.{i}.utilization"] for i in (0, 1, 2))))
    time.sleep(max(0, 0.25 - took))
print(json.dumps(found))
"""


def test_a_call_that_takes_300_ms_holds_up_nobody(with_nvml: Callable[..., str]) -> None:
    script = "devices 3" + "".join(FULL.format(i) for i in range(3)) + "1 utilization sleep 300\n"
    rounds = json.loads(with_nvml(SLOW, script))
    assert all(first[0] == last[0] == 90 for _, first, _, last in rounds)
    assert rounds[0][2] == [None, "the driver has not answered yet"]
    assert rounds[-1][2][0] == 90  # it comes late, but it comes
    assert rounds[0][0] < 0.3
    assert statistics.median(took for took, *_ in rounds[1:]) < 0.1


HANGS = """
import time
from labkit.telemetry.sources.nvml import NvmlSource
source = NvmlSource()
began = time.monotonic()
for _ in range(4):
    readings = {r.series.key: r for r in source.read()}
    time.sleep(0.1)
print(readings["gpu.0.utilization"].reason, readings["gpu.1.utilization"].value)
source.close()
print(time.monotonic() - began < 3)
"""


def test_a_call_that_never_returns_hides_its_gpu_only(with_nvml: Callable[..., str]) -> None:
    script = "devices 2" + FULL.format(0) + FULL.format(1) + "0 temperature sleep 9000\n"
    assert with_nvml(HANGS, script).splitlines() == ["the driver has not answered yet 90", "True"]


OWN = """
import os, sys, time
from labkit.telemetry.sources.nvml import processes, NvmlSource
processes.in_host_pids = lambda: sys.argv[1] == "host"
with open(os.environ["NVML_STUB_SCRIPT"], "a") as script:
    script.write(f"0 process {os.getpid()} 1073741824\\n0 process 1 2147483648\\n")
source = NvmlSource()
def read():
    source.read()
    time.sleep(0.1)
    return [(r.value, r.reason) for r in source.read() if r.series.key.split(".")[-1] in ("processes", "own_memory")]
print(read())
with open(os.environ["NVML_STUB_SCRIPT"], "a") as script:
    script.write("0 process 7 1\\n")
print(read())
"""


def test_processes_are_counted_and_matched_where_ids_are_the_same(with_nvml: Callable[..., str]) -> None:
    first, _ = with_nvml(OWN, "devices 1" + FULL.format(0), "host").splitlines()
    assert first == str([(2, ""), (1.0, "")])


def test_in_a_container_no_process_is_taken_for_this_one(with_nvml: Callable[..., str]) -> None:
    first, _ = with_nvml(OWN, "devices 1" + FULL.format(0), "container").splitlines()
    assert first == str([(2, ""), (None, FOREIGN)])


def test_the_list_of_processes_is_asked_for_every_two_seconds_at_most(with_nvml: Callable[..., str]) -> None:
    first, second = with_nvml(OWN, "devices 1" + FULL.format(0), "host").splitlines()
    assert second == first  # although a third process has come in between


def test_ids_are_the_drivers_only_in_the_first_namespace(tmp_path: Path) -> None:
    namespace = tmp_path / "pid"
    os.symlink(HOST_PIDS, namespace)
    assert in_host_pids(str(namespace))
    namespace.unlink()
    os.symlink("pid:[4026532201]", namespace)
    assert not in_host_pids(str(namespace))
    assert not in_host_pids(str(tmp_path / "not there"))


def test_a_slice_of_a_gpu_has_no_figures_of_the_whole(read: Read) -> None:
    found = read("devices 1" + FULL.format(0) + FULL.format(5) + "5 uuid MIG-7\n", visible="MIG-7")
    gaps = {key for key, (_, reason, *_) in found.items() if reason == "n/a (MIG)"}
    assert {key for key in found if key not in gaps} == {"gpu.0.memory"}
