"""The nvidia-smi table: layouts of 2018, 2021, 2024 and 2026."""

from __future__ import annotations

import pytest

from labkit.hardware.reports import read
from labkit.hardware.reports.smi_table import SmiTable


def only(text) -> SmiTable:
    (report,) = read(text)
    assert isinstance(report, SmiTable)
    return report


def test_driver_384_knows_no_cuda_version(sample):
    report = only(sample("smi_table_384.txt"))
    assert (report.driver_version, report.cuda_version) == ("384.111", None)
    first = report.gpus[0]
    assert first.name == "Tesla V100-SXM2..."
    assert (first.memory_used_MiB, first.memory_total_MiB) == (10452, 16152)
    assert (first.power_W, first.power_limit_W, first.temperature_C) == (58, 300, 41)
    assert first.mig_mode is None
    assert first.ecc_errors == 0
    (process,) = report.processes
    assert (process.pid, process.type, process.name, process.memory_MiB) == (21874, "C", "python", 10437)
    assert process.gpu_instance is None


def test_mig_section(sample):
    report = only(sample("smi_table_470_mig.txt"))
    assert report.gpus[0].mig_mode == "Enabled"
    assert report.gpus[0].utilization_percent is None
    half, quarter = report.mig_devices
    assert (half.gpu_instance, half.device, half.multiprocessors) == (2, 0, 42)
    assert (quarter.memory_used_MiB, quarter.memory_total_MiB) == (5, 9984)
    assert report.processes == ()


def test_wide_layout(sample):
    report = only(sample("smi_table_550.txt"))
    assert report.cuda_version == "12.4"
    assert [gpu.name for gpu in report.gpus] == ["NVIDIA H100 80GB HBM3"] * 4
    assert report.gpus[2].power_W == 231
    assert report.processes[3].name == "/opt/conda/bin/python3.11"
    assert report.mig_devices is None
    assert not report.cut


def test_new_words_for_driver_and_cuda_and_a_dead_card(sample):
    report = only(sample("smi_table_610.txt"))
    assert (report.driver_version, report.cuda_version) == ("610.43.02", "13.3")
    good, dead = report.gpus
    assert not good.error
    assert dead.error
    assert (dead.temperature_C, dead.power_W, dead.ecc_errors, dead.utilization_percent) == (None,) * 4


@pytest.mark.parametrize(
    "file", ["smi_table_384.txt", "smi_table_470_mig.txt", "smi_table_550.txt", "smi_table_610.txt"]
)
@pytest.mark.parametrize("width", [60, 70, 80, 90])
def test_wrapped_by_a_terminal(sample, file, width):
    text = sample(file)
    lines = [line[i : i + width] for line in text.split("\n") for i in range(0, len(line) or 1, width)]
    wrapped = only("\n".join(lines))
    assert wrapped.to_dict() == only(text).to_dict()


def test_collapsed_spaces(sample):
    text = sample("smi_table_550.txt")
    collapsed = "\n".join(" ".join(line.split()) for line in text.split("\n"))
    assert only(collapsed).to_dict() == only(text).to_dict()


def test_half_a_table_says_so_and_knows_its_half(sample):
    text = sample("smi_table_550.txt")
    report = only(text[: text.index("|   1  NVIDIA") + 200])
    assert report.cut
    assert report.gpus[0].power_W == 690
    assert report.processes is None


def test_two_tables_are_two_reports(sample):
    kinds = [
        report.driver_version for report in read(sample("smi_table_384.txt") + sample("smi_table_610.txt"))
    ]
    assert kinds == ["384.111", "610.43.02"]


def test_windows_names_the_driver_model_and_hides_memory_of_processes(sample):
    report = only(sample("smi_table_windows.txt"))
    (gpu,) = report.gpus
    assert (gpu.name, gpu.persistence, gpu.fan_percent) == ("NVIDIA GeForce RTX 3080", "WDDM", 0)
    assert (gpu.ecc_errors, gpu.mig_mode) == (None, None)
    assert [(process.type, process.memory_MiB) for process in report.processes] == [("C+G", None)] * 2
    assert report.processes[0].name == "C:\\Windows\\explorer.exe"
