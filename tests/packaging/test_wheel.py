"""The wheel, installed elsewhere, is the whole product: the command, the lessons, the door."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.server import LabServer

import labkit
from labkit.course import files

pytestmark = pytest.mark.slow
CHECKOUT = Path(labkit.__file__).resolve().parents[1]


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, require: Callable[..., None]) -> Path:
    require("hatchling")
    out = tmp_path_factory.mktemp("wheel")
    options = ("--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", out)
    run(sys.executable, "-m", "pip", "wheel", *options, CHECKOUT, cwd=out)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment with the wheel in it.

    Its dependencies are those of this environment, seen through a path file, because installing them anew
    takes gigabytes; labkit itself cannot come from there, as the wheel's copy stands first on the path.
    """
    home = tmp_path_factory.mktemp("elsewhere") / "env"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip())
    options = ("--no-deps", "--no-index", "--quiet", "--prefix", home, "--ignore-installed")
    run(sys.executable, "-m", "pip", "install", *options, wheel, cwd=home)
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_the_wheel_carries_every_notebook_and_no_more_than_a_package_should(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for part in ("notebooks", "exercises", "solutions"):
        for path in files.notebooks(part):
            assert f"labkit/course/files/{part}/{path.name}" in names
    assert {name.split("/")[0] for name in names} == {"labkit", f"gpu_labkit-{labkit.__version__}.dist-info"}
    assert wheel.stat().st_size < 10_000_000


def test_the_version_is_said_once(wheel: Path) -> None:
    assert wheel.name.startswith(f"gpu_labkit-{labkit.__version__}-py3-none-any")


def test_the_installed_package_is_the_wheels(installed: Path, tmp_path: Path) -> None:
    where = run(installed, "-c", "import labkit; print(labkit.__file__)", cwd=tmp_path).strip()
    assert Path(where).is_relative_to(installed.parents[1])


def test_the_command_is_installed(installed: Path, tmp_path: Path) -> None:
    said = run(installed.with_name("labkit"), "--version", cwd=tmp_path)
    assert said == f"labkit {labkit.__version__}\n"


def test_the_first_lesson_is_served_out_of_the_wheel(
    installed: Path, tmp_path: Path, require: Callable[..., None]
) -> None:
    require("lab")
    with LabServer(tmp_path, python=str(installed)) as server:
        assert server.address.page == "/lab/tree/notebooks/00_start_here.ipynb"
        served = server.get("/api/contents/notebooks/00_start_here.ipynb")["content"]
        assert served["cells"]
        exercises = server.get("/api/contents/exercises")["content"]
        assert {item["name"] for item in exercises} >= {path.name for path in files.notebooks("exercises")}
        assert os.fspath(CHECKOUT) not in server.output
