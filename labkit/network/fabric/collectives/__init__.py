"""Collectives as schedules: an algorithm a function, from a team and a size in bytes to `Steps` or a `Schedule`.

`size` is what nccl-tests calls the size: the bytes of the larger of a rank's two buffers. n is the ranks of a group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labkit.errors import LabkitError
from labkit.network.fabric.collectives import exchange, grid, in_switch, rings, trees

ALGORITHMS: dict[str, dict[str, Callable[..., Any]]] = {
    "all_reduce": {
        "ring": rings.all_reduce,
        "rails": grid.rails,
        "tree": trees.all_reduce,
        "double-tree": trees.double_tree,
        "halving-doubling": exchange.all_reduce,
        "hierarchical": grid.hierarchical,
        "2d": grid.two_dimensional,
        "torus": grid.torus,
        "in-switch": in_switch.all_reduce,
        "nvls": in_switch.nvls,
    },
    "reduce_scatter": {"ring": rings.reduce_scatter, "halving": exchange.reduce_scatter},
    "all_gather": {"ring": rings.all_gather, "doubling": exchange.all_gather},
    "broadcast": {"tree": trees.broadcast, "chain": rings.broadcast},
    "all_to_all": {"pairwise": exchange.all_to_all, "direct": exchange.all_to_all_direct},
}


def algorithm(operation: str, name: str) -> Callable[..., Any]:
    """The function that plans `operation` that way; LabkitError, with those there are, for an unknown name."""
    known = ALGORITHMS[operation]
    if name not in known:
        raise LabkitError(f"There is no {name!r} algorithm for {operation}: use {', '.join(known)}.")
    return known[name]


def bus_factor(operation: str, ranks: int) -> float:
    """Bus bandwidth over algorithm bandwidth, as nccl-tests defines it (its doc/PERFORMANCE.md)."""
    if operation == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return 1.0 if operation == "broadcast" else (ranks - 1) / ranks
