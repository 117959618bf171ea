"""Which driver runs which CUDA, and which CUDA knows which card."""

from __future__ import annotations

import pytest

from labkit.hardware.diagnosis.drivers import capability, cuda_range, minimum_driver, newest_cuda_major


@pytest.mark.parametrize(
    ("cuda", "driver"),
    [
        ("9.0.176", "384.81"),
        ("10.2", "440.33"),
        ("11.8", "450.80.02"),
        ("12.1", "525.60.13"),
        ("13.1", "580.65.06"),
        ("99.0", None),
    ],
)
def test_minimum_driver(cuda, driver):
    assert minimum_driver(cuda) == driver


def test_windows_has_its_own_numbers():
    assert minimum_driver("12.1", windows=True) == "527.41"


@pytest.mark.parametrize(
    ("driver", "major"), [("384.111", 9), ("470.57.02", 11), ("550.54", 12), ("610.1", 13), ("100.1", None)]
)
def test_newest_cuda_of_a_driver(driver, major):
    assert newest_cuda_major(driver) == major


@pytest.mark.parametrize(
    ("name", "found_capability"),
    [
        ("NVIDIA GeForce RTX 5070 Laptop GPU", "12.0"),
        ("NVIDIA H20", "9.0"),
        ("Tesla V100-SXM2...", "7.0"),
        ("NVIDIA GB10", "12.1"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9"),
        ("Matrox G200", None),
    ],
)
def test_capability_by_name(name, found_capability):
    assert capability(name) == found_capability


def test_cuda_range():
    assert cuda_range("7.0") == ("9.0", "13.0")
    assert cuda_range("7.5") == ("9.0", None)
    assert cuda_range("42.0") == (None, None)
