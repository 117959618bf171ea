"""What is to be run, and on how much: the one description from which every launcher's words are made."""

from __future__ import annotations

import math
import sys
from dataclasses import asdict, dataclass
from typing import Any

from labkit.errors import LabkitError

PORT = 29400


@dataclass(frozen=True)
class Job:
    """A script under torchrun on some nodes.

    Attributes
    ----------
    script : str
    arguments : tuple of str
    nodes, ranks_per_node, gpus_per_node, cpus_per_rank : int
    memory : float or None
        Bytes a node; None leaves it to the scheduler.
    time : float or None
        Seconds; None leaves it to the scheduler.
    restarts : int
    name : str
    output : str
        File for what it prints, for schedulers that write one; ``%j`` is the job's number.
    python : str
        The interpreter, which must be found under this name on every node.
    """

    script: str
    arguments: tuple[str, ...] = ()
    nodes: int = 1
    ranks_per_node: int = 1
    gpus_per_node: int = 0
    cpus_per_rank: int = 1
    memory: float | None = None
    time: float | None = None
    restarts: int = 0
    name: str = "labkit"
    output: str = "%x-%j.out"
    python: str = sys.executable

    def __post_init__(self) -> None:
        for field, least in (("nodes", 1), ("ranks_per_node", 1), ("cpus_per_rank", 1)):
            self._at_least(field, least)
        for field in ("gpus_per_node", "restarts"):
            self._at_least(field, 0)
        if self.gpus_per_node and self.ranks_per_node > self.gpus_per_node:
            raise LabkitError(
                f"{self.ranks_per_node} ranks cannot share {self.gpus_per_node} GPUs of a node: NCCL wants one for "
                "each rank."
            )
        if self.time is not None and self.time <= 0:
            raise LabkitError(
                "A job with a time limit of 0 never runs: give minutes or hours, such as '30min'."
            )
        if "\n" in self.name + self.output + self.script:
            raise LabkitError("The name, the output file and the script of a job are single lines.")

    def _at_least(self, field: str, least: int) -> None:
        value = getattr(self, field)
        if value < least:
            raise LabkitError(f"{field.replace('_', ' ')} = {value}: it is at least {least}.")

    @property
    def minutes(self) -> int | None:
        """The time limit as schedulers take it, rounded up."""
        return None if self.time is None else math.ceil(self.time / 60)

    @property
    def megabytes(self) -> int | None:
        """Memory a node in MiB, rounded up."""
        return None if self.memory is None else math.ceil(self.memory / 2**20)

    def torchrun(self, endpoint: str | None) -> list[str]:
        """The command for each of the nodes.

        Parameters
        ----------
        endpoint : str or None
            ``host:port`` on which the first node holds the rendezvous; None for one node alone.
        """
        meeting = (
            ["--standalone"] if endpoint is None else ["--rdzv-backend=c10d", f"--rdzv-endpoint={endpoint}"]
        )
        return [
            *(self.python, "-m", "torch.distributed.run"),
            f"--nnodes={self.nodes}",
            f"--nproc-per-node={self.ranks_per_node}",
            *meeting,
            *([f"--max-restarts={self.restarts}"] if self.restarts else []),
            self.script,
            *self.arguments,
        ]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
