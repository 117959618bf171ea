"""Which GPU is which rank, and which ranks work together."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.errors import LabkitError
from labkit.network.fabric.topology import Topology

PLACEMENTS = ("linear", "round-robin", "random")


@dataclass(frozen=True, eq=False)
class Team:
    """`nodes[r]` is the number of rank r's node; each row of `groups` holds the ranks of one group."""

    topology: Topology
    nodes: np.ndarray
    groups: np.ndarray

    @property
    def size(self) -> int:
        """Ranks of one group."""
        return int(self.groups.shape[1])

    def spread(self, local: Any) -> np.ndarray:
        """Numbers within a group -> ranks, of all groups at once."""
        return self.groups[:, np.asarray(local, np.int64)].ravel()


def team(
    topology: Topology, placement: Any = "linear", ranks: int | None = None, groups: Any = None, seed: int = 0
) -> Team:
    """Ranks on the GPUs of a topology.

    Parameters
    ----------
    placement : str or sequence
        ``"linear"``: the order of the GPUs, server after server; ``"round-robin"``: rank r on server r mod servers;
        ``"random"``: shuffled by `seed`; or the GPUs' names or numbers, one a rank.
    ranks : int, optional
        How many; all GPUs by default.
    groups : sequence of sequences of int, optional
        Ranks that work together, each rank in one group at most, all groups of one size; by default one group of all.
    """
    gpus = _placed(topology, placement, seed)
    count = len(gpus) if ranks is None else ranks
    if not isinstance(count, (int, np.integer)) or not 2 <= count <= len(gpus):
        raise LabkitError(f"{ranks!r} ranks cannot be placed: {topology.name} has room for 2 to {len(gpus)}.")
    nodes = np.array([topology.place[gpu] for gpu in gpus[:count]], np.int64)
    return Team(topology, nodes, _grouped(groups, count))


def _placed(topology: Topology, placement: Any, seed: int) -> list[str]:
    gpus = list(topology.gpus)
    if not isinstance(placement, str):
        return _listed(gpus, placement)
    if placement == "linear":
        return gpus
    if placement == "random":
        return random.Random(seed).sample(gpus, len(gpus))
    if placement == "round-robin":
        servers = topology.servers()
        longest = max(map(len, servers))
        return [server[turn] for turn in range(longest) for server in servers if turn < len(server)]
    raise LabkitError(
        f"{placement!r} is no placement: use {', '.join(PLACEMENTS)}, or list the GPU of each rank."
    )


def _listed(gpus: list[str], wanted: Sequence[Any]) -> list[str]:
    found = []
    for gpu in wanted:
        if isinstance(gpu, (int, np.integer)) and 0 <= gpu < len(gpus):
            found.append(gpus[gpu])
        elif gpu in gpus:
            found.append(gpu)
        else:
            raise LabkitError(
                f"{gpu!r} is no GPU of this fabric: they are {gpus[0]} to {gpus[-1]}, or 0 to {len(gpus) - 1}."
            )
    if len(set(found)) < len(found):
        twice = next(gpu for gpu in found if found.count(gpu) > 1)
        raise LabkitError(f"{twice} is given to two ranks: every rank needs a GPU of its own.")
    return found


def _grouped(groups: Any, count: int) -> np.ndarray:
    if groups is None:
        return np.arange(count)[None, :]
    sizes = {len(group) for group in groups}
    ranks = [rank for group in groups for rank in group]
    if len(sizes) != 1 or min(sizes) < 2 or len(set(ranks)) < len(ranks):
        raise LabkitError("Groups must be of one size, two ranks or more, and no rank may be in two of them.")
    if not all(isinstance(rank, (int, np.integer)) and 0 <= rank < count for rank in ranks):
        raise LabkitError(f"Groups name ranks outside 0 to {count - 1}.")
    return np.asarray([list(group) for group in groups], np.int64)
