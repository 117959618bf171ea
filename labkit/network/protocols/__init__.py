"""What carrying a message costs, besides the wire: copies, system calls, round trips, headers, lost packets.

`eager_rendezvous` and `host_copies` measure and count between two real processes, `incast` and `header_share` on a
cluster's links where there is one; `rdma` says whether the hardware to pass the kernel by is here, `gpu_message`
what it would save (modelled). The drawings are in `labkit.widgets.protocol_views`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.lazy import exports

if TYPE_CHECKING:
    from labkit.network.protocols.channel import Channel, Counts
    from labkit.network.protocols.copies import HostCopies, host_copies
    from labkit.network.protocols.gpudirect import gpu_message, rdma
    from labkit.network.protocols.gpudirect_nccl import measure_gpudirect
    from labkit.network.protocols.headers import HeaderShare, header_share
    from labkit.network.protocols.many_to_one import Incast, incast
    from labkit.network.protocols.message_times import EagerRendezvous, crossover, eager_rendezvous
    from labkit.network.protocols.tcp import tcp_info

_MODULES = {
    "labkit.network.protocols.channel": "Channel Counts",
    "labkit.network.protocols.copies": "HostCopies host_copies",
    "labkit.network.protocols.message_times": "EagerRendezvous crossover eager_rendezvous",
    "labkit.network.protocols.gpudirect": "gpu_message rdma",
    "labkit.network.protocols.gpudirect_nccl": "measure_gpudirect",
    "labkit.network.protocols.headers": "HeaderShare header_share",
    "labkit.network.protocols.many_to_one": "Incast incast",
    "labkit.network.protocols.tcp": "tcp_info",
}
_LAZY = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "Channel",
    "Counts",
    "EagerRendezvous",
    "HeaderShare",
    "HostCopies",
    "Incast",
    "crossover",
    "eager_rendezvous",
    "gpu_message",
    "header_share",
    "host_copies",
    "incast",
    "measure_gpudirect",
    "rdma",
    "tcp_info",
]

__getattr__, __dir__ = exports(__name__, _LAZY)
