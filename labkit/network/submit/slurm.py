"""A job as a Slurm batch script: one torchrun agent a node, started by srun."""

from __future__ import annotations

import shlex
import shutil
import subprocess

from labkit.errors import LabkitError
from labkit.network.submit.job import Job

# The port follows from the job's number, so that two jobs that share a node do not meet.
_HEAD = """\
set -euo pipefail
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$(scontrol show node "$first" | sed -n 's/.*NodeAddr=\\([^ ]*\\).*/\\1/p')
port=$((20000 + SLURM_JOB_ID % 10000))
"""
_ENDPOINT = '"$address:$port"'
_MARK = "ENDPOINT"  # stands for the above while words are quoted for the shell


def script(job: Job) -> str:
    """What sbatch is given."""
    asked = {
        "job-name": job.name,
        "nodes": job.nodes,
        "ntasks-per-node": 1,
        "cpus-per-task": job.cpus_per_rank * job.ranks_per_node,
        "gpus-per-node": job.gpus_per_node or None,
        "mem": job.megabytes and f"{job.megabytes}M",
        "time": job.minutes,
        "output": job.output,
    }
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH --{key}={value}" for key, value in asked.items() if value is not None),
    ]
    words = [shlex.quote(word) for word in _agent(job)]
    command = " ".join(words).replace(_MARK, _ENDPOINT)
    threads = f"export OMP_NUM_THREADS={job.cpus_per_rank}"
    # srun of Slurm 22.05 and later does not take over the processors asked of sbatch
    step = f"srun --kill-on-bad-exit=1 --cpus-per-task={asked['cpus-per-task']}"
    return "\n".join([*lines, _HEAD + threads, f"{step} {command}", ""])


def _agent(job: Job) -> list[str]:
    if job.nodes == 1:
        return job.torchrun(None)
    words = job.torchrun(_MARK)
    return [*words[:5], "--rdzv-id=labkit", *words[5:]]


def submit(job: Job, wait: bool) -> int:
    """Hand the script to sbatch; with ``wait`` until the job has ended, and its status.

    Raises
    ------
    LabkitError
        Without Slurm here, or with Slurm's words when it refuses.
    """
    if shutil.which("sbatch") is None:
        raise LabkitError(
            "There is no sbatch here, so no Slurm to submit to: --dry-run shows the script for one."
        )
    command = ["sbatch", "--parsable", *(["--wait"] if wait else [])]
    done = subprocess.run(command, input=script(job), capture_output=True, text=True, check=False)
    number = done.stdout.strip().partition(";")[0]
    if not number:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise LabkitError(f"Slurm refuses the job: {said[-1].removeprefix('sbatch: error: ')}.")
    print(f"job {number}; it prints to {job.output.replace('%j', number).replace('%x', job.name)}")
    return done.returncode
