"""Many devices: how they are joined, and what they say to each other.

`ranks` runs a function on N ranks; `isend`, `irecv`, `send`, `recv` and the collectives made of them are for
use inside; `play` runs a function that sends and receives on ranks of threads, without starting a process, and
`rehearse` a collective, to be drawn step by step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.lazy import exports

if TYPE_CHECKING:
    from labkit.network.collectives import (
        binomial_all_reduce,
        binomial_broadcast,
        binomial_reduce,
        hierarchical_all_reduce,
        pairwise_all_to_all,
        recursive_halving_doubling,
        ring_all_gather,
        ring_all_reduce,
        ring_reduce_scatter,
    )
    from labkit.network.context import rank_context
    from labkit.network.errors import RankError
    from labkit.network.live import work_done
    from labkit.network.memory_model import training_memory
    from labkit.network.p2p import exchange, irecv, isend, recv, send
    from labkit.network.rehearsal import rehearse
    from labkit.network.splitting import run_split
    from labkit.network.stage import play
    from labkit.network.topology import pairings, ring_order

_MODULES = {
    "labkit.network.collectives": (
        "binomial_all_reduce binomial_broadcast binomial_reduce hierarchical_all_reduce pairwise_all_to_all "
        "recursive_halving_doubling ring_all_gather ring_all_reduce ring_reduce_scatter"
    ),
    "labkit.network.context": "rank_context",
    "labkit.network.errors": "RankError",
    "labkit.network.live": "work_done",
    "labkit.network.p2p": "exchange irecv isend recv send",
    "labkit.network.memory_model": "training_memory",
    "labkit.network.rehearsal": "rehearse",
    "labkit.network.splitting": "run_split",
    "labkit.network.stage": "play",
    "labkit.network.topology": "pairings ring_order",
}
_LAZY = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "RankError",
    "binomial_all_reduce",
    "binomial_broadcast",
    "binomial_reduce",
    "exchange",
    "hierarchical_all_reduce",
    "irecv",
    "isend",
    "pairings",
    "pairwise_all_to_all",
    "play",
    "rank_context",
    "recursive_halving_doubling",
    "recv",
    "rehearse",
    "ring_all_gather",
    "ring_all_reduce",
    "ring_order",
    "ring_reduce_scatter",
    "run_split",
    "send",
    "training_memory",
    "work_done",
]

__getattr__, __dir__ = exports(__name__, _LAZY)
