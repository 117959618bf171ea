"""Asking for the backend costs milliseconds and loads neither the catalogue nor anything built on it."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import json, sys, time
import typing, ctypes  # what every Python that has numpy has anyway
before = set(sys.modules)
start = time.perf_counter()
import labkit.hardware
labkit.hardware.backend()
seconds = time.perf_counter() - start
loaded = sorted(set(sys.modules) - before)
print(json.dumps([seconds, loaded, labkit.hardware.why_no_gpu()]))
"""
HEAVY = {"yaml", "numpy", "numba", "torch", "platform", "subprocess", "dataclasses", "inspect", "plotly"}


def ask():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_backend_is_light():
    runs = [ask() for _ in range(5)]
    if runs[0][2]:  # starting the driver of a real GPU takes longer
        assert min(seconds for seconds, _, _ in runs) < 0.010
    loaded = set(runs[0][1])
    assert not loaded & HEAVY
    assert {name for name in loaded if name.startswith("labkit")} == {
        "labkit",
        "labkit.errors",
        "labkit.hardware",
        "labkit.hardware.devices",
        "labkit.hardware.driver",
    }


def test_importing_labkit_loads_no_hardware():
    program = "import sys, labkit; sys.exit('labkit.hardware' in sys.modules or 'yaml' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_names_stay_functions_after_their_modules_are_imported():
    program = (
        "import labkit.hardware.devices, labkit.hardware.catalog, labkit.hardware.doctor as d; "
        "import labkit.hardware as h; h.devices(); h.gpu('A100'); d.doctor(); "
        "assert set(h.__all__) <= set(dir(h)) and all(hasattr(h, name) for name in h.__all__)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
