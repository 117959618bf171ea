"""nvidia-smi -q as text and as XML, and the fields that changed their names."""

from __future__ import annotations

import pytest

from labkit.hardware.reports import read
from labkit.hardware.reports.smi_q import SmiQuery


def only(text) -> SmiQuery:
    (report,) = read(text)
    assert isinstance(report, SmiQuery)
    return report


def test_driver_390(sample):
    report = only(sample("smi_q_390.txt"))
    (gpu,) = report.gpus
    assert (report.driver_version, report.cuda_version, report.attached_gpus) == ("390.46", None, 1)
    assert (gpu.name, gpu.bus_id) == ("Tesla P100-PCIE-16GB", "00000000:04:00.0")
    assert (gpu.pcie_generation, gpu.pcie_width, gpu.pcie_width_max) == (3, 4, 16)
    assert gpu.clock_reasons == ("hw_slowdown", "hw_power_brake_slowdown")
    assert (gpu.power_W, gpu.power_limit_W) == (112.41, 250.0)
    assert gpu.ecc_uncorrected == 2
    assert gpu.retirement_pending is True
    assert gpu.remap_pending is None  # no such section yet
    assert (gpu.processes[0].pid, gpu.processes[0].name) == (20114, "./lammps")
    assert not report.cut


def test_driver_570_renamed_reasons_power_and_rows(sample):
    (gpu,) = only(sample("smi_q_570.txt")).gpus
    assert gpu.clock_reasons == ("sw_power_cap",)  # and not the counters of the same names
    assert gpu.power_W == 691.42  # the instant one, where there are two
    assert (gpu.remap_pending, gpu.remap_failed, gpu.remapped_rows_uncorrectable) == (True, False, 1)
    assert gpu.reset_required is None  # deprecated is no answer
    assert gpu.ecc_uncorrected == 0  # volatile, not aggregate
    assert (gpu.sm_clock_MHz, gpu.sm_clock_max_MHz) == (1620, 1980)
    assert gpu.fabric_state == "Completed"


def test_driver_610_deprecates_version_words(sample):
    report = only(sample("smi_q_610_head.txt"))
    assert (report.driver_version, report.cuda_version) == ("610.43.03", "13.3")


def test_xml(sample):
    report = only(sample("smi_q_xml_535.xml"))
    (gpu,) = report.gpus
    assert report.from_xml
    assert (report.driver_version, report.cuda_version) == ("535.86.05", "12.2")
    assert (gpu.pcie_width, gpu.pcie_width_max, gpu.pcie_generation) == (8, 16, 4)
    assert gpu.clock_reasons == ("hw_slowdown", "hw_thermal_slowdown")
    assert (gpu.temperature_C, gpu.slowdown_temperature_C) == (94, 95)
    assert (gpu.remap_pending, gpu.remap_failed) == (False, False)
    assert gpu.processes[0].name == "python & co"
    assert not report.cut


def test_xml_on_one_line(sample):
    text = sample("smi_q_xml_535.xml")
    joined = "".join(line.strip() for line in text.split("\n"))
    assert only(joined).to_dict() == only(text).to_dict()


@pytest.mark.parametrize("file", ["smi_q_390.txt", "smi_q_570.txt"])
def test_lost_indentation(sample, file):
    text = sample(file)
    flat = only("\n".join(line.strip() for line in text.split("\n")))
    assert flat.gpus[0].clock_reasons == only(text).gpus[0].clock_reasons
    assert flat.gpus[0].pcie_width == only(text).gpus[0].pcie_width
    assert flat.gpus[0].remap_pending == only(text).gpus[0].remap_pending
    assert flat.gpus[0].ecc_uncorrected == only(text).gpus[0].ecc_uncorrected


def test_cut_reports(sample):
    text = sample("smi_q_570.txt")
    half = only(text[: text.index("Remapped Rows")])
    assert half.cut
    assert half.gpus[0].remap_pending is None
    xml = sample("smi_q_xml_535.xml")
    assert only(xml[: xml.index("<clocks>")]).cut


def test_a_partial_query_is_not_cut():
    text = (
        "==============NVSMI LOG==============\n\nDriver Version : 550.54.15\nAttached GPUs : 1\n"
        "GPU 00000000:01:00.0\n    GPU Power Readings\n        Power Draw : 61.02 W\n"
    )
    report = only(text)
    assert not report.cut
    assert report.gpus[0].power_W == 61.02


def test_a_card_that_answers_nothing():
    text = (
        "==============NVSMI LOG==============\nAttached GPUs : 1\nGPU 00000000:3B:00.0\n"
        "    Product Name : GPU is lost\n    Temperature\n        GPU Current Temp : GPU is lost\n"
    )
    assert only(text).gpus[0].lost
