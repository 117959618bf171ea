"""The first cell of the lesson: one text for all machines, a table for this one."""

from __future__ import annotations

import pytest

import labkit
from labkit import hardware
from labkit.course.header import Header, lesson
from labkit.errors import LabkitError
from labkit.hardware.machine import Device, Machine


def test_without_a_gpu_kernels_are_emulated_and_gpu_times_modelled(monkeypatch):
    monkeypatch.setenv("LABKIT_BACKEND", "emulator")
    header = labkit.lesson("01")
    assert header.backend == "emulator"
    how = dict(header.rows)
    assert how["results of the kernels you write"].startswith("emulated")
    assert how["times of a GPU"].startswith("modelled")
    assert hardware.here().cpu.name in how["times of the CPU and of its worker processes"]


def test_with_a_gpu_they_are_measured_on_it(monkeypatch):
    card = Device("gpu", "NVIDIA H100 80GB HBM3", memory_bytes=80 * 10**9, index=0)
    machine = Machine(cpu=hardware.here().cpu, gpus=(card,), backend="gpu", reason="")
    monkeypatch.setattr(hardware, "here", lambda: machine)
    header = lesson("01")
    assert dict(header.rows)["times of a GPU"] == "measured, on NVIDIA H100 80GB HBM3"
    assert header.reason == ""


def test_the_text_is_the_same_everywhere_and_the_table_escapes():
    header = Header("01", "emulator", "Kernels & CPU", "a <reason>", (("what", "<b>how</b>"),))
    assert repr(header) == "lesson 01: what is measured, emulated and modelled on this machine"
    html = header._repr_html_()
    assert "&lt;b&gt;how" in html
    assert "a &lt;reason&gt;" in html
    assert header.to_dict()["lesson"] == "01"


def test_an_unknown_lesson_is_a_sentence():
    with pytest.raises(LabkitError, match="no lesson '1'"):
        lesson("1")
