"""A stub CUDA driver compiled from C, and a Python process that meets it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
H100 = "NVIDIA H100 80GB HBM3"


def clean_environment(**extra: str) -> dict[str, str]:
    """This environment without what would steer the search for GPUs."""
    steering = ("CUDA_VISIBLE_DEVICES", "LABKIT_BACKEND", "LD_LIBRARY_PATH")
    return {key: value for key, value in os.environ.items() if key not in steering} | extra


@pytest.fixture(scope="session")
def stub(require: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the stub ``libcuda.so.1``."""
    require("cc")
    folder = tmp_path_factory.mktemp("driver")
    compiler = shutil.which("cc") or shutil.which("gcc") or "cc"
    source = str(HERE / "libcuda_stub.c")
    command = [compiler, "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(folder / "libcuda.so.1"), source]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture(scope="session")
def numba_cuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder to put on the path where numba-cuda should look installed, whether or not it is."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "numba_cuda.py").touch()
    return folder


@pytest.fixture
def with_driver(stub: Path, numba_cuda: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a Python program against the stub; keywords become environment variables."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        defaults = {"LD_LIBRARY_PATH": str(stub), "PYTHONPATH": str(numba_cuda)}
        environment = clean_environment(**defaults | variables)
        return subprocess.run(
            [sys.executable, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def ask(with_driver: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., Any]:
    """Evaluate an expression over ``labkit.hardware`` (as ``h``) against the stub; gives the JSON value."""

    def evaluate(expression: str, **variables: str) -> Any:
        program = f"import json; import labkit.hardware as h; print(json.dumps({expression}))"
        done = with_driver("-c", program, **variables)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return evaluate
