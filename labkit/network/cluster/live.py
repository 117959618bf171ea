"""What the clusters of this process are doing right now, for those who watch: links and nodes."""

from __future__ import annotations

import contextlib
import weakref
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labkit.network.cluster.machine import Cluster


@dataclass(frozen=True)
class LinkState:
    """One link at one moment; bytes as its devices have counted them since it was laid, each way.

    Attributes
    ----------
    cluster, link : str
    ends : tuple of str
        The nodes or switches that it joins; ``forth`` is from the first to the second.
    shape : str
        Its bandwidth, latency and loss, or ``"cut"``, in words.
    """

    cluster: str
    link: str
    ends: tuple[str, str]
    shape: str
    bandwidth: float | None
    forth: int
    back: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class NodeState:
    """One node at one moment; processor time in seconds, of all its processes so far."""

    cluster: str
    node: str
    alive: bool
    cpu_s: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


_shown: weakref.WeakSet[Cluster] = weakref.WeakSet()


def show(cluster: Cluster) -> None:
    """Make a cluster visible to `links` and `nodes`, until `hide` or its end."""
    _shown.add(cluster)


def hide(cluster: Cluster) -> None:
    _shown.discard(cluster)


def forget_all() -> list[Cluster]:
    """In a forked child: the clusters are the parent's."""
    found = list(_shown)
    _shown.clear()
    return found


def links() -> tuple[LinkState, ...]:
    """The links of this process's clusters; empty when it has none. May be called from any thread."""
    found: list[LinkState] = []
    for cluster in list(_shown):
        with contextlib.suppress(OSError, KeyError):  # it is just going down
            found += cluster.link_states()
    return tuple(found)


def nodes() -> tuple[NodeState, ...]:
    """The nodes of this process's clusters; may be called from any thread."""
    found: list[NodeState] = []
    for cluster in list(_shown):
        with contextlib.suppress(OSError, KeyError):
            found += cluster.node_states()
    return tuple(found)
