"""NVML through the real ctypes path: a stub of the library, compiled here, scripted case by case."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Reads until the helper threads have brought everything, changes the script, and does so again.
READ = """
import json, os, sys, time
from labkit.telemetry.sources.nvml import NvmlSource
def settled(source, seconds):
    until = time.monotonic() + seconds
    while True:
        found = source.read()
        if time.monotonic() > until or not any("has not answered" in one.reason for one in found):
            return found
        time.sleep(0.02)
source = NvmlSource()
found = settled(source, 2)
for later in sys.argv[1:]:
    with open(os.environ["NVML_STUB_SCRIPT"], "a") as script:
        script.write(later)
    time.sleep(0.01)
    source.read()
    found = settled(source, 2)
source.close()
print(json.dumps([[r.series.key, r.value, r.reason, r.series.of, r.series.limit] for r in found]))
"""


@pytest.fixture(scope="session")
def stub(require: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the stub ``libnvidia-ml.so.1``."""
    require("cc")
    folder = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).with_name("nvml_stub.c")
    library = folder / "libnvidia-ml.so.1"
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture
def with_nvml(stub: Path, tmp_path: Path) -> Callable[..., str]:
    """``with_nvml(program, script, *arguments, visible=None)`` -> what a new Python process prints."""

    def run(program: str, script: str, *arguments: str, visible: str | None = None) -> str:
        path = tmp_path / "script"
        path.write_text(script)
        environment = {**os.environ, "LD_LIBRARY_PATH": str(stub), "NVML_STUB_SCRIPT": str(path)}
        environment.pop("CUDA_VISIBLE_DEVICES", None)
        if visible is not None:
            environment["CUDA_VISIBLE_DEVICES"] = visible
        command = [sys.executable, "-c", program, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


@pytest.fixture
def read(with_nvml: Callable[..., str]) -> Callable[..., dict[str, list[Any]]]:
    """``read(script, *later, visible=None)`` -> ``{key: [value, reason, of, limit]}``, after the last script."""

    def run(script: str, *later: str, visible: str | None = None) -> dict[str, list[Any]]:
        printed = with_nvml(READ, script, *later, visible=visible)
        return {key: rest for key, *rest in json.loads(printed)}

    return run
