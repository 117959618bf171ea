"""The benchmark under other launchers: srun's variables, and torchrun."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from labkit.errors import LabkitError

WORDS = [
    *("--maxbytes", "1KiB", "--stepfactor", "64", "--repeats", "2", "--warmup", "1"),
    *("--operation", "all_reduce", "--json"),
]


def test_who_is_who(require: Callable[..., None]) -> None:
    require("torch")
    from labkit.network.benchmark.join import place

    slurm = {"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1", "SLURM_JOB_NODELIST": "node7"}
    assert place({**slurm, "SLURM_JOB_ID": "40123"}) == {
        "RANK": "3",
        "WORLD_SIZE": "8",
        "LOCAL_RANK": "1",
        "MASTER_ADDR": "node7",
        "MASTER_PORT": "10123",
    }
    assert place({**slurm, "RANK": "0", "WORLD_SIZE": "2"}) == {"RANK": "0", "WORLD_SIZE": "2"}
    assert "MASTER_ADDR" not in place({**slurm, "MASTER_ADDR": "elsewhere"})
    with pytest.raises(LabkitError, match="torchrun or srun"):
        place({})


def test_processes_as_srun_starts_them_meet_without_a_port(
    require: Callable[..., None], tmp_path: Path
) -> None:
    require("torch")
    command = [
        sys.executable,
        "-m",
        "labkit.network.benchmark",
        *WORDS,
        "--rendezvous",
        str(tmp_path / "meet"),
    ]
    slurm = {
        "SLURM_NTASKS": "2",
        "GLOO_SOCKET_IFNAME": "lo",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
    }
    ranks = [
        subprocess.Popen(
            command,
            env={**os.environ, **slurm, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0]
    assert said[1] == ""
    data = json.loads(said[0])
    assert {row["implementation"] for row in data["rows"]} == {"torch", "ring", "tree", "halving-doubling"}
    assert all(row["wrong"] == 0 and row["ranks"] == 2 for row in data["rows"])


@pytest.mark.slow
def test_torchrun(require: Callable[..., None]) -> None:
    """In a network namespace of its own, where torchrun's open port reaches nobody."""
    require("torch")
    inside = 'ip link set lo up && exec "$@"'
    alone = ["unshare", "-Urn", "sh", "-c", inside, "sh"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs network namespaces of an ordinary user (unshare -Urn)")
    torchrun = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--master-port",
        "29411",
    ]
    found = subprocess.run(
        [*alone, *torchrun, "-m", "labkit.network.benchmark", *WORDS],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["ranks"] == 2


def test_without_a_launcher_it_says_what_to_do() -> None:
    bare = {key: value for key, value in os.environ.items() if not key.startswith(("RANK", "WORLD", "SLURM"))}
    found = subprocess.run(
        [sys.executable, "-m", "labkit.network.benchmark"],
        env=bare,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 2
    assert "torchrun --nproc-per-node 4" in found.stderr
