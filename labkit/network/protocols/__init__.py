"""What carrying a message costs, besides the wire: copies, system calls, round trips, headers, lost packets.

`eager_rendezvous` and `host_copies` measure and count between two real processes, `incast` and `header_share` on a
cluster's links where there is one; `gpudirect` says what RDMA would save, and whether it is here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.lazy import exports

if TYPE_CHECKING:
    from labkit.network.protocols.channel import Channel, Counts
    from labkit.network.protocols.crossover import EagerRendezvous, crossover, eager_rendezvous
    from labkit.network.protocols.headers import HeaderShare, header_share

_MODULES = {
    "labkit.network.protocols.channel": "Channel Counts",
    "labkit.network.protocols.crossover": "EagerRendezvous crossover eager_rendezvous",
    "labkit.network.protocols.headers": "HeaderShare header_share",
}
_LAZY = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "Channel",
    "Counts",
    "EagerRendezvous",
    "HeaderShare",
    "crossover",
    "eager_rendezvous",
    "header_share",
]

__getattr__, __dir__ = exports(__name__, _LAZY)
