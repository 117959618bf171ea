"""``labkit cluster`` and ``labkit submit`` as a shell sees them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import needs, slurm

from labkit.errors import LabkitError
from labkit.network.cluster import members, state
from labkit.network.submit.cli import main as submit
from labkit.network.submit.job import Job

_SCRIPT = """
import os, socket, sys
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1) * dist.get_rank()
dist.all_reduce(total)
print("sum", int(total), "rank", dist.get_rank(), sys.argv[1:], flush=True)
dist.destroy_process_group()
sys.exit(3 if "fail" in sys.argv and os.environ["RANK"] == "1" else 0)
"""


def labkit(*words: str, limit_s: float = 90) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "labkit", *words], capture_output=True, text=True, timeout=limit_s, check=False
    )


@pytest.fixture
def script(tmp_path: Path) -> str:
    needs.require("torch")
    path = tmp_path / "train.py"
    path.write_text(_SCRIPT)
    return str(path)


@pytest.fixture
def lab(private_folder: Path) -> Iterator[str]:
    """A cluster of two nodes that is up and belongs to nobody."""
    needs.require("netns")
    done = labkit("cluster", "up", "--nodes", "2", "--bandwidth", "1Gbit/s", "--name", "tests")
    assert done.returncode == 0, done.stderr
    assert "tests: 2 nodes, one switch, up in " in done.stdout
    yield "tests"
    labkit("cluster", "down", "tests")


@pytest.mark.slow
def test_up_run_status_link_down(lab: str, script: str) -> None:
    done = labkit("cluster", "run", "--name", lab, "--ranks-per-node", "1", script, "a b", "--flag")
    assert done.returncode == 0, done.stdout
    sums = [line.partition(" ") for line in done.stdout.splitlines() if "sum" in line]
    assert {node for node, _, _ in sums} == {"[n0]", "[n1]"}
    assert {words for _, _, words in sums} == {f"sum 1 rank {rank} ['a b', '--flag']" for rank in range(2)}
    shown = labkit("cluster", "link", "--name", lab, "n0", "--cut").stdout
    assert shown == "Link(n0-s0: cut)\n"
    assert labkit("cluster", "call", "--name", lab, "n0", "hostname").stdout == "n0\n"
    (status,) = json.loads(labkit("cluster", "status", "--json").stdout)
    assert status["name"] == lab
    assert [link["shape"] for link in status["links"]] == ["cut", "1 Gbit/s"]
    assert "n0-s0          cut" in labkit("cluster", "status").stdout
    again = labkit("cluster", "up", "--name", lab)
    assert again.returncode == 2
    assert f"named '{lab}' already" in again.stderr
    keeper = state.Place(state.folder() / f"{lab}-{status['owner']}").read()["keeper"]
    assert keeper == status["owner"]
    assert labkit("cluster", "down", lab).stdout == f"{lab} is down.\n"
    assert labkit("cluster", "status").stdout.startswith("No cluster is up")
    assert labkit("cluster", "down", lab).returncode == 2
    assert not members._runs(keeper)


@pytest.mark.slow
def test_a_script_that_fails_gives_its_status_and_nothing_is_left(lab: str, script: str) -> None:
    done = labkit("cluster", "run", "--name", lab, script, "fail")
    assert done.returncode == 1
    assert "exitcode  : 3" in done.stdout
    (place,) = [place for place in state.places() if place.name == lab]
    assert members.marked(place.id) == []


def test_a_killed_keeper_of_nobody_is_swept(lab: str) -> None:
    (place,) = [place for place in state.places() if place.name == lab]
    sleeper = subprocess.Popen(
        [sys.executable, "-m", "labkit", "cluster", "call", "--name", lab, "n0", "sleep", "600"]
    )
    while not (inside := members.marked(place.id)):
        time.sleep(0.02)
    os.kill(place.owner, 9)
    while place.alive():
        time.sleep(0.02)
    assert "dead; 'labkit cluster clean'" in labkit("cluster", "status").stdout
    assert labkit("cluster", "clean").stdout == f"swept {place.id}\n"
    assert sleeper.wait(5) == -9
    assert not any(members._runs(process) for process in inside)
    assert labkit("cluster", "clean").stdout == "There was nothing to sweep.\n"


def test_submit_shows_torchruns_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        submit(
            ["--nodes", "2", "--ranks-per-node", "4", "--dry-run", "train.py", "--lr", "1e-3", "two words"]
        )
        == 0
    )
    note, command = capsys.readouterr().out.splitlines()
    assert note.startswith("# on each of the 2 nodes; HOST is the first one's name")
    words = shlex.split(command)
    assert words[1:3] == ["-m", "torch.distributed.run"]
    assert {"--nnodes=2", "--nproc-per-node=4", "--rdzv-endpoint=HOST:29400"} < set(words)
    assert words[-4:] == ["train.py", "--lr", "1e-3", "two words"]
    submit(["--dry-run", "train.py"])
    assert "--standalone" in capsys.readouterr().out
    submit(["--nodes", "2", "--endpoint", "node01:1234", "--dry-run", "train.py"])
    assert "--rdzv-endpoint=node01:1234" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "nodes", "theirs"),
    [
        ("train.py --nodes 2 --via torchrun --dry-run", 2, ""),
        ("train.py data.csv --nodes 2 --steps 5 --dry-run", 2, "data.csv --steps 5"),
        ("train.py --dry-run -- --nodes 3 --steps 5", 1, "--nodes 3 --steps 5"),
        (
            "--nodes 2 --dry-run train.py --nodes 7",
            2,
            "--nodes 7",
        ),  # as with torchrun: all behind it is the script's
    ],
)
def test_a_script_may_come_first(
    words: str, nodes: int, theirs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    submit(words.split())
    command = capsys.readouterr().out.splitlines()[-1]
    assert command.endswith(f"train.py {theirs}".rstrip())
    assert f"--nnodes={nodes}" in command


def test_submit_shows_slurms_script(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--nodes 4 --ranks-per-node 8 --gpus-per-node 8 --cpus-per-rank 6 --memory 1.5GiB --time 90s --via slurm"
    submit([*words.split(), "--restarts", "2", "--dry-run", "train.py", "it's"])
    lines = capsys.readouterr().out.splitlines()
    asked = dict(line.removeprefix("#SBATCH --").split("=") for line in lines if line.startswith("#SBATCH"))
    assert asked == {
        "job-name": "train",
        "nodes": "4",
        "ntasks-per-node": "1",
        "cpus-per-task": "48",
        "gpus-per-node": "8",
        "mem": "1536M",
        "time": "2",
        "output": "%x-%j.out",
    }
    assert lines[0] == "#!/bin/bash"
    assert '--rdzv-endpoint="$address:$port"' in lines[-1]
    assert "--max-restarts=2" in lines[-1]
    assert shlex.split(lines[-1])[-2:] == ["train.py", "it's"]
    assert subprocess.run(["bash", "-n"], input="\n".join(lines), text=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nodes", "0", "x.py"], "nodes = 0: it is at least 1"),
        (["--ranks-per-node", "4", "--gpus-per-node", "2", "x.py"], "4 ranks cannot share 2 GPUs"),
        (["--time", "0min", "x.py"], "time limit of 0"),
        (["--time", "5GiB", "x.py"], "is a size, and a time is wanted"),
        (["--name", "a\nb", "x.py"], "single lines"),
        (["--nodes", "2", "--endpoint", "node:x", "--dry-run", "x.py"], "is not HOST or HOST:PORT"),
        (["missing.py"], "no script 'missing.py' here"),
        (["--nodes", "2", "--cluster", "nosuch", __file__], "no cluster named 'nosuch'"),
    ],
)
def test_submit_says_what_is_wrong(words: list[str], said: str, private_folder: Path) -> None:
    with pytest.raises(LabkitError, match=said):
        submit(words)


@pytest.mark.slow
def test_submit_makes_a_cluster_for_the_job_and_takes_it_down(script: str, private_folder: Path) -> None:
    needs.require("netns")
    done = labkit("submit", "--nodes", "2", "--topology", "ring", "--bandwidth", "1Gbit/s", script, "x")
    assert done.returncode == 0, done.stdout
    assert sorted(line.partition("] ")[2] for line in done.stdout.splitlines() if "sum" in line) == [
        f"sum 1 rank {rank} ['x']" for rank in range(2)
    ]
    assert not [place for place in state.places() if place.name == "train"]


@pytest.fixture(scope="module")
def real_slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm.Slurm]:
    needs.require("slurm")
    with slurm.Slurm(tmp_path_factory.mktemp("slurm")) as one:
        yield one


@pytest.mark.slow
def test_submit_runs_a_job_on_a_real_slurm(real_slurm: slurm.Slurm, script: str, tmp_path: Path) -> None:
    words = [
        "--nodes",
        "2",
        "--gpus-per-node",
        "1",
        "--memory",
        "500MiB",
        "--time",
        "5min",
        "--via",
        "slurm",
        "--wait",
    ]
    command = [sys.executable, "-m", "labkit", "submit", *words]
    done = real_slurm.run([*command, script, "two words"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr + real_slurm.logs()
    number = done.stdout.split()[1].rstrip(";")
    assert done.stdout == f"job {number}; it prints to train-{number}.out\n"
    printed = (tmp_path / f"train-{number}.out").read_text()
    assert [f"sum 1 rank {rank} ['two words']" in printed for rank in range(2)] == [True, True]
    told = real_slurm.run(["scontrol", "show", "job", number]).stdout
    assert "NumNodes=2" in told
    assert "TimeLimit=00:05:00" in told
    assert "mem=1000M" in told
    assert "TresPerNode=gres:gpu:1" in told


def test_a_job_that_slurm_refuses_is_told_in_its_words(real_slurm: slurm.Slurm, script: str) -> None:
    done = real_slurm.run(
        [
            sys.executable,
            "-m",
            "labkit",
            "submit",
            "--nodes",
            "2",
            "--gpus-per-node",
            "9",
            "--via",
            "slurm",
            script,
        ]
    )
    assert done.returncode == 2
    assert done.stderr.startswith("labkit submit: Slurm refuses the job: ")
    assert "Requested node configuration is not available" in done.stderr


def test_without_slurm_submit_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "x.py").touch()
    with pytest.raises(LabkitError, match="no sbatch here"):
        submit(["--via", "slurm", str(tmp_path / "x.py")])


def test_a_job_knows_its_units() -> None:
    job = Job("x.py", memory=1.5 * 2**20, time=61)
    assert (job.megabytes, job.minutes) == (2, 2)
    assert Job(**{**job.to_dict(), "arguments": ()}) == job
