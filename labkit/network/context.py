"""Who am I among the ranks: known inside ``labkit.ranks(...).run``, and nowhere else."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from labkit.errors import LabkitError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class RankContext:
    """One rank's place in the world.

    Attributes
    ----------
    rank, world_size : int
        This rank, from 0, and how many there are.
    backend : str
        ``"nccl"`` or ``"gloo"``: what carries ``torch.distributed``'s messages.
    device_name : str
        ``"cuda:1"`` or ``"cpu"``.
    link_rate : float or None
        Bytes/s of the emulated link, each way; None when none was asked for.
    latency : float
        Seconds that the emulated link adds to each message.
    node : str
        The machine of a `labkit.cluster` it is on; empty outside of one.
    """

    rank: int
    world_size: int
    backend: str
    device_name: str
    link_rate: float | None = None
    latency: float = 0.0
    node: str = ""

    @property
    def device(self) -> torch.device:
        """The device this rank computes on, as torch wants it."""
        import torch

        return torch.device(self.device_name)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


_here: RankContext | None = None
_thread = threading.local()


def rank_context() -> RankContext:
    """This rank's place: rank, world size, device, backend.

    Raises
    ------
    LabkitError
        Outside a function that `labkit.ranks(n).run` runs.
    """
    found: RankContext | None = getattr(_thread, "here", None) or _here
    if found is None:
        raise LabkitError(
            "rank_context() is known only inside a function that labkit.ranks(n).run(function) runs."
        )
    return found


def inside_rank() -> bool:
    """Whether this process is a rank."""
    return _here is not None


def enter(context: RankContext) -> None:
    """Called once, by a rank that starts."""
    global _here
    _here = context


@contextlib.contextmanager
def use(other: RankContext) -> Iterator[None]:
    """In this thread, `rank_context` is ``other`` while the body runs."""
    before = getattr(_thread, "here", None)
    _thread.here = other
    try:
        yield
    finally:
        _thread.here = before
