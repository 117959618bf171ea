"""What a training step needs of the other ranks: one object, over real ranks or over ranks that are rehearsed.

A function that is given a `World` (as the answers of lesson 07 are) does not know which it has: the same lines run in
``labkit.ranks(n).run``, and on threads where every event is written down (`labkit.network.training.rehearsed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from labkit.network.collectives import binomial_broadcast, pairwise_all_to_all, ring_all_reduce
from labkit.network.p2p import endpoint, flat
from labkit.network.training.background import Handle, StreamHandle, background


class World:
    """The ranks of this run, as seen from one of them. Tensors and NumPy arrays are both taken.

    Parameters
    ----------
    by : str, optional
        ``"labkit"``: own collectives, counted, over the emulated link. ``"torch"``: torch's all-reduce, the default
        on NCCL, where it runs on a stream of its own.

    Attributes
    ----------
    rank, world_size : int
    """

    def __init__(self, by: str | None = None):
        here = endpoint()
        self.rank, self.world_size = here.rank, here.size
        self.by = by or ("torch" if dist.is_initialized() and dist.get_backend() == "nccl" else "labkit")

    def all_reduce(self, data: Any) -> None:
        """The sum over all ranks takes the place of ``data``, everywhere."""
        if self.by == "torch":
            dist.all_reduce(_tensor(data))
        else:
            ring_all_reduce(flat(_tensor(data)))

    def all_reduce_async(self, data: Any) -> Handle | StreamHandle:
        """Start it and go on; ``data`` must not be touched before ``handle.wait()`` has returned."""
        if self.by == "torch":
            return StreamHandle(dist.all_reduce(_tensor(data), async_op=True))
        return background().start(ring_all_reduce, flat(_tensor(data)))

    def broadcast(self, data: Any, root: int = 0) -> None:
        """The root's data takes the place of everybody's."""
        tensor = _tensor(data)
        whole = tensor.contiguous()
        binomial_broadcast(whole, root)
        if whole is not tensor:
            tensor.copy_(whole)

    def all_to_all(self, parts: Sequence[Any]) -> list[Any]:
        """``parts[k]`` goes to rank k; returns what came from each rank, in order of rank.

        Parts may differ in their first dimension and may be empty: 8 bytes a rank say beforehand how long they are.
        """
        tensors = [_tensor(part).contiguous() for part in parts]
        leaving = torch.tensor([len(one) for one in tensors], device=tensors[0].device)
        coming = torch.empty_like(leaving)
        pairwise_all_to_all(list(coming.split(1)), list(leaving.split(1)))
        received = [tensors[0].new_empty(count, *tensors[0].shape[1:]) for count in coming.tolist()]
        pairwise_all_to_all(received, tensors)
        return [one.numpy() for one in received] if isinstance(parts[0], np.ndarray) else received


def _tensor(data: Any) -> torch.Tensor:
    """The same memory as a tensor that autograd does not follow."""
    return torch.from_numpy(data) if isinstance(data, np.ndarray) else data.detach()
