"""The Makefile's decisions, tried with stand-ins for Python and nvidia-smi so that nothing is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import labkit

CHECKOUT = Path(labkit.__file__).resolve().parents[1]
SMI = "| NVIDIA-SMI {driver}   Driver Version: {driver}   CUDA Version: {cuda}     |"

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


class Clone:
    """The files that `make` reads, under a path with a space, and a PATH with our stand-ins first."""

    def __init__(self, home: Path):
        self.folder, self.tools = home / "a clone", home / "tools"
        self.tools.mkdir()
        (self.folder / "binder").mkdir(parents=True)
        for name in ("Makefile", "pyproject.toml", "binder/requirements.txt"):
            shutil.copy(CHECKOUT / name, self.folder / name)
        self.stand_in("nvidia-smi", "exit 9")

    def stand_in(self, name: str, script: str) -> None:
        path = self.tools / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def make(self, *words: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.tools}{os.pathsep}{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        return subprocess.run(
            ["make", *words],
            cwd=self.folder,
            env={**kept, "PATH": path},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def with_environment(self) -> Clone:
        """As if .venv existed; its Python shows what it is asked to do, and where pip reads its pins."""
        (self.folder / ".venv" / "bin").mkdir(parents=True)
        shown = 'echo "ran: $*"; cat .venv/constraints.txt | grep -c "^cuda-toolkit" || true'
        self.stand_in("shown", shown)
        shutil.copy(self.tools / "shown", self.folder / ".venv" / "bin" / "python")
        (self.folder / ".venv" / ".made").touch()
        return self


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_a_missing_python_is_a_sentence(clone: Clone) -> None:
    done = clone.make("lab", "PYTHON=python9")
    assert done.returncode == 2
    assert "There is no 'python9' here: install Python 3.11 or newer" in done.stderr


def test_an_old_python_is_a_sentence(clone: Clone) -> None:
    clone.stand_in("python-old", "exit 1")
    assert (
        "needs Python 3.11 or newer and 'python-old' is older"
        in clone.make("test", "PYTHON=python-old").stderr
    )


def test_a_python_without_venv_is_a_sentence(clone: Clone) -> None:
    clone.stand_in("python-bare", 'case "$2" in *ensurepip*) exit 1 ;; esac')
    assert "apt-get install python3-venv" in clone.make("lab", "PYTHON=python-bare").stderr


@pytest.mark.parametrize(
    ("smi", "extras", "cuda_pins"),
    [
        ("exit 9", "lab,train", 1),
        (f"echo '{SMI.format(driver='580.95', cuda='13.0')}'", "lab,train,gpu13", 1),
        (f"echo '{SMI.format(driver='610.10', cuda='14.1')}'", "lab,train,gpu13", 1),
        (f"echo '{SMI.format(driver='550.54', cuda='12.4')}'", "lab,train,gpu12", 0),
        (f"echo '{SMI.format(driver='470.82', cuda='11.4')}'", "lab,train", 1),
        ("echo '| Driver Version: 615.7   CUDA UMD Version: 13.3  |'", "lab,train,gpu13", 1),
        ("echo 'NVIDIA-SMI has failed'; exit 9", "lab,train", 1),
    ],
)
def test_the_driver_chooses_the_extra(clone: Clone, smi: str, extras: str, cuda_pins: int) -> None:
    clone.with_environment().stand_in("nvidia-smi", smi)
    said = clone.make("lab").stdout
    assert f"--editable .[{extras}]\n{cuda_pins}\n" in said
    assert "ran: -m labkit lab\n" in said


def test_tests_compile_kernels_without_a_gpu(clone: Clone) -> None:
    said = clone.with_environment().make("test", "PYTEST=-k door").stdout
    assert ".[test,gpu13]" in said or os.uname().sysname != "Linux"
    assert "ran: -m pytest -k door\n" in said


def test_installs_once_and_again_when_the_pins_change(clone: Clone) -> None:
    clone.with_environment()
    assert "-m pip install" in clone.make("lab").stdout
    assert "-m pip install" not in clone.make("lab").stdout
    pins = clone.folder / "binder" / "requirements.txt"
    later = (clone.folder / ".venv" / ".lab").stat().st_mtime + 10
    os.utime(pins, (later, later))
    assert "-m pip install" in clone.make("lab").stdout


def test_options_reach_labkit_and_pip(clone: Clone) -> None:
    said = clone.with_environment().make(
        "lab", "LABKIT_LAB=--no-browser --port 0", "EXTRAS=lab,train", "TORCH_INDEX=https://wheels.example"
    )
    assert "ran: -m labkit lab --no-browser --port 0\n" in said.stdout
    assert re.search(r"--no-deps .*--index-url https://wheels\.example torch\n", said.stdout)
    assert "--editable .[lab,train]" in said.stdout


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="elsewhere PyPI's PyTorch brings no CUDA libraries")
@pytest.mark.parametrize("goal", ["lab", "test"])
def test_without_a_gpu_pytorch_comes_without_cuda(clone: Clone, goal: str) -> None:
    said = clone.with_environment().make(goal).stdout
    torch, package = said.index("/whl/cpu torch\n"), said.index("--editable .[")
    assert torch < package


@pytest.mark.parametrize("words", [("EXTRAS=lab",), ("TORCH_INDEX=",)])
def test_pytorch_is_not_sought_where_nobody_wants_it(clone: Clone, words: tuple[str, ...]) -> None:
    assert "--no-deps" not in clone.with_environment().make("lab", *words).stdout


def test_with_a_gpu_pytorch_is_the_usual_one(clone: Clone) -> None:
    smi = SMI.format(driver="580.95", cuda="13.0")
    clone.with_environment().stand_in("nvidia-smi", f"echo '{smi}'")
    assert "--no-deps" not in clone.make("lab").stdout


def test_where_the_wheels_cannot_be_reached_installing_goes_on(clone: Clone) -> None:
    clone.with_environment()
    shown = 'case "$*" in *--no-deps*) echo "no route" >&2; exit 1 ;; esac; echo "ran: $*"'
    clone.stand_in("shown", shown)
    shutil.copy(clone.tools / "shown", clone.folder / ".venv" / "bin" / "python")
    done = clone.make("lab", "TORCH_INDEX=https://wheels.example")
    assert done.returncode == 0
    assert "https://wheels.example has no PyTorch for this machine or cannot be reached" in done.stdout
    assert "ran: -m labkit lab\n" in done.stdout
    assert "no route" not in done.stdout + done.stderr


def test_clean_removes_the_environment_and_no_lessons(clone: Clone) -> None:
    clone.with_environment()
    for folder in ("labkit/__pycache__", "tests", "notebooks"):
        (clone.folder / folder).mkdir(parents=True)
    assert clone.make("clean").returncode == 0
    assert sorted(path.name for path in clone.folder.iterdir()) == [
        "Makefile", "binder", "labkit", "notebooks", "pyproject.toml", "tests",
    ]  # fmt: skip
    assert not (clone.folder / "labkit" / "__pycache__").exists()
