"""Meet the other ranks under torchrun, srun or by hand, and be ready for labkit's own collectives too."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist

from labkit.errors import LabkitError
from labkit.network import context, p2p
from labkit.network.link import Pace

_PORTS = 10_000, 50_000  # where a job's port lies, by its number


class _Unwatched:
    """There is no notebook that watches these ranks."""

    pacing = False

    def inside(self, name: str) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()


def place(environment: Mapping[str, str]) -> dict[str, str]:
    """RANK, WORLD_SIZE, LOCAL_RANK, and MASTER_ADDR and MASTER_PORT where they follow from a Slurm job.

    Raises
    ------
    LabkitError
        When no launcher has said who is who.
    """
    if "RANK" in environment and "WORLD_SIZE" in environment:
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
        return {name: environment[name] for name in names if name in environment}
    if "SLURM_PROCID" not in environment:
        raise LabkitError(
            "This program is started once a rank by torchrun or srun: torchrun --nproc-per-node 4 -m "
            "labkit.network.benchmark; on this machine alone, 'labkit bench collectives' does it all."
        )
    found = {
        "RANK": environment["SLURM_PROCID"],
        "WORLD_SIZE": environment["SLURM_NTASKS"],
        "LOCAL_RANK": environment.get("SLURM_LOCALID", "0"),
    }
    if "MASTER_ADDR" not in environment and (nodes := environment.get("SLURM_JOB_NODELIST")):
        low, high = _PORTS
        found["MASTER_ADDR"] = _first_host(nodes)
        found["MASTER_PORT"] = str(low + int(environment.get("SLURM_JOB_ID", "0")) % (high - low))
    return found


def _first_host(nodes: str) -> str:
    """Of ``gpu[01-04]``, as scontrol writes it out; a plain name is itself."""
    if not any(sign in nodes for sign in "[,"):
        return nodes
    listing = subprocess.run(
        ["scontrol", "show", "hostnames", nodes], capture_output=True, text=True, check=True
    )
    return listing.stdout.split()[0]


@contextlib.contextmanager
def joined(rendezvous: str | None = None) -> Iterator[context.RankContext]:
    """The process group, up while the body runs.

    Parameters
    ----------
    rendezvous : str, optional
        A file, not there yet, that all ranks reach: then no port is opened to meet.
    """
    os.environ.update(place(os.environ))
    rank, size, local = (int(os.environ.get(name, "0")) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    backend = "nccl" if torch.cuda.device_count() > local and dist.is_nccl_available() else "gloo"
    if backend == "nccl":
        torch.cuda.set_device(local)
    method = f"file://{os.path.abspath(rendezvous)}" if rendezvous else "env://"
    dist.init_process_group(backend, init_method=method, rank=rank, world_size=size)
    here = context.RankContext(rank, size, backend, f"cuda:{local}" if backend == "nccl" else "cpu")
    p2p.open_endpoint(here, Pace(None, 0.0), _Unwatched())  # type: ignore[arg-type]
    try:
        yield here
    finally:
        dist.destroy_process_group()
