"""Which gradients travel together: few large messages instead of many small ones.

Backward reaches the last layer first, so buckets are filled from the last parameter on: the first bucket is
full, and on its way, while backward still works on the layers before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from labkit.network.collectives import chunks


@dataclass
class Bucket:
    """Parameters whose gradients lie one after the other in one flat tensor.

    Attributes
    ----------
    index : int
        Buckets are sent in this order, on all ranks.
    parameters, names : list
    places : list of slice
        Where each one's gradient lies in `flat`.
    waiting : set of int
        Positions whose gradients backward has still to bring.
    """

    index: int
    parameters: list[torch.nn.Parameter] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    places: list[slice] = field(default_factory=list)
    waiting: set[int] = field(default_factory=set)
    flat: Any = None
    handle: Any = None

    @property
    def elements(self) -> int:
        return self.places[-1].stop if self.places else 0

    @property
    def nbytes(self) -> int:
        return self.elements * self.parameters[0].element_size()

    def add(self, name: str, parameter: torch.nn.Parameter) -> None:
        start = self.elements
        self.names.append(name)
        self.parameters.append(parameter)
        self.places.append(slice(start, start + parameter.numel()))

    def begin(self) -> None:
        """A backward pass starts: no gradient is there yet."""
        self.waiting = set(range(len(self.parameters)))
        self.handle = None
        if self.flat is None:
            first = self.parameters[0]
            self.flat = torch.empty(self.elements, dtype=first.dtype, device=first.device)

    def take(self, position: int) -> None:
        """Copy one gradient in; a parameter that has none brings zeros."""
        gradient = self.parameters[position].grad
        place = self.flat[self.places[position]]
        if gradient is None:
            place.zero_()
        else:
            place.copy_(gradient.reshape(-1))
        self.waiting.discard(position)

    def give(self, position: int) -> None:
        """Copy the sum of all ranks back out."""
        parameter = self.parameters[position]
        if parameter.grad is None:
            parameter.grad = torch.empty_like(parameter)
        parameter.grad.copy_(self.flat[self.places[position]].view_as(parameter))

    def bytes_sent(self, rank: int, ranks: int) -> int:
        """What a ring all-reduce of this bucket makes a rank send: all chunks twice, but for two.

        In the reduce-scatter a rank sends every chunk but its own, in the all-gather every one but its right
        neighbour's.
        """
        sizes = [part.stop - part.start for part in chunks(self.elements, ranks)]
        kept = sizes[rank] + sizes[(rank + 1) % ranks]
        return (2 * self.elements - kept) * self.parameters[0].element_size() if ranks > 1 else 0


class HookBucket:
    """A bucket as torch's communication hooks see theirs (``torch.distributed.GradBucket``)."""

    def __init__(self, bucket: Bucket, buckets: int):
        self._bucket, self._last = bucket, bucket.index == buckets - 1

    def index(self) -> int:
        return self._bucket.index

    def is_last(self) -> bool:
        return self._last

    def buffer(self) -> torch.Tensor:
        """All gradients of the bucket, flat."""
        return self._bucket.flat

    def parameters(self) -> list[torch.nn.Parameter]:
        return self._bucket.parameters

    def gradients(self) -> list[torch.Tensor]:
        """Each parameter's, in its shape."""
        pairs = zip(self._bucket.places, self._bucket.parameters, strict=True)
        return [self._bucket.flat[place].view_as(parameter) for place, parameter in pairs]


class Hooked:
    """What a communication hook has begun, to be waited for like a handle."""

    def __init__(self, future: Any, flat: torch.Tensor):
        self._future, self._flat = future, flat

    def wait(self) -> None:
        self._flat.copy_(self._future.wait())


def assign(named: Iterable[tuple[str, torch.nn.Parameter]], limit: float) -> list[Bucket]:
    """Buckets of at most ``limit`` bytes (a larger parameter has one alone), last parameter first.

    Frozen parameters are left out; one that is shared under two names comes once. A bucket has one type.
    """
    chosen = _trainable(named)
    buckets: list[Bucket] = []
    for name, parameter in reversed(chosen):
        last = buckets[-1] if buckets else None
        size = parameter.numel() * parameter.element_size()
        if last is None or last.nbytes + size > limit or last.parameters[0].dtype != parameter.dtype:
            last = Bucket(len(buckets))
            buckets.append(last)
        last.add(name, parameter)
    return buckets


def _trainable(named: Iterable[tuple[str, torch.nn.Parameter]]) -> Sequence[tuple[str, torch.nn.Parameter]]:
    seen: dict[int, tuple[str, torch.nn.Parameter]] = {}
    for name, parameter in named:
        if parameter.requires_grad:
            seen.setdefault(id(parameter), (name, parameter))
    return list(seen.values())
