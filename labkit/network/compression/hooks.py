"""The communication hook of DDP: called with each bucket of gradients that is full, it returns their average.

It works inside the backward pass and takes buckets one after the other, so it does not overlap with what backward
still computes.
"""

# No "from __future__ import annotations" here: DDP compares the hook's annotations with the classes themselves.
from collections.abc import Sequence
from typing import Protocol

import torch
import torch.distributed as dist


class Method(Protocol):
    """What a hook's state can do: `Plain`, `Fp16`, `TopK`, `Sign`, `PowerSGD`."""

    def average(self, flat: torch.Tensor, parameters: Sequence[torch.Tensor]) -> torch.Tensor:
        """The mean over ranks of a bucket's gradients, which lie in ``flat`` in the order of the parameters."""
        ...


def hook(state: Method, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """For ``ddp_model.register_comm_hook(state, hook)``, torch's DDP or labkit's ``DataParallel``."""
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(state.average(bucket.buffer(), bucket.parameters()))
    return done
