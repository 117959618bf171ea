"""What is installed beside labkit: read from metadata, nothing is imported."""

from __future__ import annotations

import os
import re
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from labkit.hardware.doctor.report import Finding

OLDEST_PYTHON = (3, 11)
LAB = "pip install 'gpu-labkit[lab]'"


def installed(distribution: str) -> str | None:
    """Version of an installed distribution, or None."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return Finding("Python", "ok", found)
    oldest = ".".join(map(str, OLDEST_PYTHON))
    return Finding(
        "Python", "error", found, "labkit is not tested here.", f"Install Python {oldest} or newer."
    )


def required(distribution: str, name: str, means: str, do: str = LAB) -> Finding:
    """A package without which lessons stop."""
    found = installed(distribution)
    return Finding(name, "ok", found) if found else Finding(name, "error", "not installed", means, do)


def nvml(gpu_here: bool) -> Finding:
    """nvidia-ml-py, and the deprecated package that takes its import name."""
    name = "NVML (nvidia-ml-py)"
    found, shadow = installed("nvidia-ml-py"), installed("pynvml")
    if shadow:
        return Finding(
            name,
            "warning",
            f"the PyPI package pynvml {shadow} is installed",
            "It is deprecated and may hide nvidia-ml-py, whose import name is pynvml too.",
            "pip uninstall -y pynvml && pip install --force-reinstall nvidia-ml-py",
        )
    if found:
        return Finding(name, "ok", found)
    state = "warning" if gpu_here else "missing"
    return Finding(name, state, "not installed", "The live plot cannot show what a GPU does.", LAB)


def torch(gpu_here: bool) -> Finding:
    """PyTorch, and whether it was built for CUDA; its version file is read, not run."""
    found = installed("torch")
    if found is None:
        means = "Lesson 04 and the lessons on many GPUs need it; the others do not."
        return Finding("PyTorch", "missing", "not installed", means, "pip install 'gpu-labkit[train]'")
    cuda = torch_cuda()
    if cuda:
        return Finding("PyTorch", "ok", f"{found}, built for CUDA {cuda}")
    if not gpu_here:
        return Finding("PyTorch", "ok", f"{found}, built for the CPU")
    return Finding(
        "PyTorch",
        "warning",
        f"{found}, built for the CPU",
        "There is a GPU, and this build cannot use it.",
        "pip install --force-reinstall torch",
    )


def torch_cuda() -> str | None:
    """The CUDA version in torch's version file; None for a CPU build, or when there is no such file."""
    spec = find_spec("torch")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        try:
            with open(os.path.join(folder, "version.py"), encoding="utf-8") as stream:
                match = re.search(r"^cuda\b[^=\n]*=\s*['\"]([\d.]+)['\"]", stream.read(), re.MULTILINE)
        except OSError:
            continue
        return match[1] if match else None
    return None
