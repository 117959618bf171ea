"""labkit read, labkit doctor --from and labkit.read, through the doors that people use."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time

import pytest
from reports.conftest import SAMPLES

import labkit
from labkit import cli
from labkit.bench import readers as bench
from labkit.hardware.diagnosis import diagnose


class Pipe(io.StringIO):
    """Standard input with bytes in it."""

    def __init__(self, data: bytes):
        super().__init__()
        self.buffer = io.BytesIO(data)


@pytest.fixture
def run(capsys):
    def call(*arguments: object):
        status = cli.main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return status, out, err

    return call


def test_json_has_exactly_the_documented_form(run):
    status, out, _ = run("read", SAMPLES / "smi_q_570.txt", "--json")
    answer = json.loads(out)
    assert status == 0
    assert list(answer) == ["reports", "findings"]
    (report,) = answer["reports"]
    assert list(report) == ["kind", "facts", "cut"]
    assert (report["kind"], report["cut"]) == ("smi_q", False)
    assert report["facts"]["gpus"][0]["remap_pending"] is True
    assert {tuple(finding) for finding in answer["findings"]} == {("severity", "message", "evidence")}


def test_standard_input(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Pipe((SAMPLES / "topo_2022_pcie.txt").read_bytes()))
    status, out, _ = run("read", "--json")
    assert status == 0
    assert json.loads(out)["reports"][0]["kind"] == "topo"


def test_table_and_bars_on_the_terminal(run):
    _, out, _ = run("read", SAMPLES / "nccl_all_reduce_h100.txt")
    assert "reported by nccl-tests, not measured here" in out
    assert "450, NVLink of the H100 SXM5, one way (catalogue)" in out
    assert "1 GiB" in out
    assert "Nothing wrong was found" in out
    _, out, _ = run("read", SAMPLES / "topo_2024_h100.txt")
    assert "NIC7 (mlx5_7)" in out


def test_findings_quote_their_line(run):
    _, out, _ = run("read", SAMPLES / "error_arch.txt")
    assert "    > NVIDIA GeForce RTX 5090 with CUDA capability sm_120" in out


def test_a_page_of_its_own(run, tmp_path, require):
    require("lab")
    page = tmp_path / "page.html"
    status, _, _ = run("read", SAMPLES / "topo_2024_h100.txt", "--html", page)
    assert status == 0
    text = page.read_text(encoding="utf-8")
    assert "Plotly.newPlot" in text
    assert "reported by nvidia-smi topo -m, not measured here" in text
    assert 'src="http' not in text  # it needs no network


@pytest.mark.parametrize("data", [b"", b"\x7fELF" + bytes(5000), b"hello\n", b"\xff\xfeh\x00i\x00"])
def test_what_is_no_report_says_so(run, tmp_path, data):
    file = tmp_path / "file"
    file.write_bytes(data)
    status, out, _ = run("read", file, "--json")
    answer = json.loads(out)
    assert status == 1
    assert answer["reports"] == []
    assert [finding["severity"] for finding in answer["findings"]] == ["note"]


@pytest.mark.parametrize("command", [["read"], ["doctor", "--from"]])
def test_files_that_cannot_be_opened(run, tmp_path, command):
    for path in (tmp_path / "missing", tmp_path):
        status, _, err = run(*command, path)
        assert status == 2
        assert "cannot be read" in err


def test_doctor_from_a_file(run):
    status, out, _ = run("doctor", "--from", SAMPLES / "collect_env_2.9.txt")
    assert status == 2
    assert "535.183.01 is older than 580.65.06" in out
    status, out, _ = run("doctor", "--from", SAMPLES / "nvlink_v100.txt", "--json")
    assert status == 0
    assert json.loads(out)["findings"] == []
    assert run("doctor", "--from", SAMPLES / "nvlink_a100.txt")[0] == 1


def test_in_a_notebook(require):
    require("lab")
    view = labkit.read(SAMPLES / "nccl_old_v100.txt")
    assert repr(view).startswith("nccl-tests: all_reduce")
    assert len(view.figures()) == 1
    assert view.to_dict() == labkit.read((SAMPLES / "nccl_old_v100.txt").read_text()).to_dict()
    with pytest.raises(labkit.LabkitError, match="cannot be read"):
        labkit.read("no such file")


def test_the_readers_need_nothing_heavy():
    program = (
        "import sys; from labkit.hardware.diagnosis import diagnose; diagnose(open(sys.argv[1]).read()); "
        "sys.exit(bool({'numpy', 'numba', 'torch', 'plotly', 'IPython'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program, SAMPLES / "nccl_log_2.27.txt"], check=True)


@pytest.mark.parametrize("make", [bench.nccl_log, bench.nccl_tests, bench.training_log, bench.endless])
def test_time_grows_with_the_length_and_no_faster(make):
    """A log of 100 MB is 100 times one of 1 MB: tried at a size that is quick, with room for a busy machine."""
    text = make(2_000_000)
    small, large = (min(_seconds(part) for _ in range(2)) for part in (text[:500_000], text))
    assert large < 4 * small * 2.5 + 0.2
    assert len(text) / 1e6 / large > 1 / 3  # 1 MB/s is asked of an idle machine: labkit bench readers


def _seconds(text: str) -> float:
    start = time.perf_counter()
    diagnose(text)
    return time.perf_counter() - start


def test_the_benchmark_refuses_a_reading_that_found_nothing(monkeypatch):
    monkeypatch.setattr(bench, "nccl_log", bench.training_log)
    with pytest.raises(labkit.LabkitError, match="means nothing"):
        list(bench.figures(quick=True))
