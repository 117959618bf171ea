"""The doctor: three exit states in real processes, and what it says about single things."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from labkit.hardware.doctor import frontend, packages
from labkit.hardware.doctor.report import Finding, Report

H100 = "NVIDIA H100 80GB HBM3"
REPOSITORY = Path(__file__).parents[2]


def doctor(with_driver, *arguments, **variables):
    return with_driver("-m", "labkit", "doctor", *arguments, **variables)


def test_a_gpu_is_status_0(with_driver, require):
    require("lab")
    done = doctor(with_driver, STUB_CUDA_DEVICES=H100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[0] == f"Kernels run on {H100}: times are measured there."


def test_the_emulator_is_status_1(with_driver, require):
    require("lab")
    done = doctor(with_driver, "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["status"], report["backend"]) == (1, 1, "emulator")
    gpu = next(finding for finding in report["findings"] if finding["name"] == "GPU")
    assert gpu["state"] == "missing"
    assert "The driver sees no GPU" in gpu["found"]
    assert gpu["do"]


def test_an_impossible_wish_is_status_2(with_driver):
    done = doctor(with_driver, LABKIT_BACKEND="gpu")
    assert done.returncode == 2
    assert done.stdout.splitlines()[0].startswith("The lessons cannot run yet. To mend first: LABKIT_BACKEND")
    assert "-> unset LABKIT_BACKEND" in done.stdout


def test_without_packages_it_is_status_2():
    """A bare Python without site-packages: the doctor needs none of what it looks for."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-S", "-m", "labkit", "doctor"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    for name in ("NumPy", "JupyterLab", "ipywidgets", "Plotly"):
        assert name in done.stdout.splitlines()[0]
    assert "-> pip install 'gpu-labkit[lab]'" in done.stdout


def test_a_gpu_without_compiler_is_a_warning_with_the_command(with_driver, tmp_path):
    """numba-cuda is hidden, distribution and module."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['numba_cuda'] = None\n")
    hide = (
        "from importlib import metadata; from labkit.hardware.doctor import packages, accelerator; "
        "accelerator.installed = lambda name: None; print(accelerator.compiler())"
    )
    done = with_driver("-c", hide, STUB_CUDA_DEVICES=H100, PYTHONPATH=str(tmp_path))
    assert "state='warning'" in done.stdout
    assert """do="pip install 'gpu-labkit[gpu13]'\"""" in done.stdout


def test_forcing_the_emulator_beside_a_gpu_is_a_warning(with_driver, require):
    require("lab")
    done = doctor(with_driver, "--json", STUB_CUDA_DEVICES=H100, LABKIT_BACKEND="emulator")
    choice = next(f for f in json.loads(done.stdout)["findings"] if f["name"] == "LABKIT_BACKEND")
    assert (done.returncode, choice["state"]) == (1, "warning")


def test_neither_torch_nor_numba_is_imported():
    program = (
        "import sys, labkit; labkit.doctor(); "
        "sys.exit(bool({'torch', 'numba', 'plotly', 'ipywidgets', 'yaml'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder first on the path, into which packages can be put: ``files`` maps module to text."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(distribution, version, files=()):
        info = tmp_path / f"{distribution}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        for name, text in dict(files).items():
            (tmp_path / distribution).mkdir(exist_ok=True)
            (tmp_path / distribution / f"{name}.py").write_text(text)

    return install


def torch_package(site, number, cuda):
    lines = (
        "from typing import Optional",
        f"__version__ = {number!r}",
        f"cuda: Optional[str] = {cuda!r}",
        "hip = None",
    )
    forbid = "raise ImportError('nobody may import this')"
    site("torch", number, files={"__init__": forbid, "version": "\n".join(lines)})


def test_torch_for_the_cpu_beside_a_gpu(site):
    torch_package(site, "9.9.0+cpu", None)
    assert packages.torch(gpu_here=False) == Finding("PyTorch", "ok", "9.9.0+cpu, built for the CPU")
    assert packages.torch(gpu_here=True).state == "warning"


def test_torch_for_cuda(site):
    torch_package(site, "9.9.0", "13.0")
    for gpu_here in (True, False):
        finding = packages.torch(gpu_here)
        assert finding == Finding("PyTorch", "ok", "9.9.0, built for CUDA 13.0")


def test_the_deprecated_package_that_hides_nvml(site):
    site("pynvml", "11.5.0")
    finding = packages.nvml(gpu_here=False)
    assert finding.state == "warning"
    assert "pynvml 11.5.0" in finding.found
    assert finding.do.startswith("pip uninstall -y pynvml")


def test_the_widget_extension_is_looked_for_in_folders(tmp_path):
    missing = frontend.widget_manager((str(tmp_path),))
    assert missing.state == "warning"
    package = tmp_path / frontend.WIDGET_MANAGER
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"version": "5.0.0"}')
    assert frontend.widget_manager((str(tmp_path),)).found == f"{frontend.WIDGET_MANAGER} 5.0.0"
    (package / "package.json").write_text("{")
    assert frontend.widget_manager((str(tmp_path),)).state == "ok"


def test_jupyter_path_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    assert frontend.labextension_folders()[0] == str(tmp_path / "labextensions")


def report(*states):
    findings = tuple(
        Finding(f"thing {i}", state, "<b>", "means", "pip install x") for i, state in enumerate(states)
    )
    return Report("All is well & good.", "gpu", findings)


@pytest.mark.parametrize(("states", "status"), [(("ok", "missing", "warning"), 0), (("ok", "error"), 2)])
def test_only_an_error_stops_the_lessons(states, status):
    assert report(*states).status == status


def test_a_report_shows_itself_three_ways():
    shown = report("ok", "warning")
    assert shown.to_dict()["findings"][1]["state"] == "warning"
    assert repr(shown).splitlines()[0] == shown.headline
    html = shown._repr_html_()
    assert "<details open" in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "All is well &amp; good." in html


def test_when_all_is_well_one_line_is_enough():
    assert "<details open" not in report("ok", "missing")._repr_html_()
