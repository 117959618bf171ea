"""The small net of lesson 04: three linear layers that read handwritten digits, as a plain list of weights.

A list of tensors, not a module, because the lesson casts, copies and updates every weight by hand.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cache

import torch
from torch.nn import functional as F

from labkit.course.datasets import digits

Weights = list[torch.Tensor]
WIDTHS = (64, 128, 128, 10)  # pixels in, two hidden layers, a score for each digit


def start(seed: int = 0, widths: Sequence[int] = WIDTHS) -> Weights:
    """Matrix and bias of each layer, float32, drawn as torch draws them."""
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(a, b) for a, b in itertools.pairwise(widths)]
    return [one.detach() for layer in layers for one in layer.parameters()]


def scores(weights: Sequence[torch.Tensor], images: torch.Tensor) -> torch.Tensor:
    """(batch, 64) pixels to (batch, 10) scores, computed in whatever type both have."""
    x = images
    for layer in range(0, len(weights), 2):
        x = F.linear(x if layer == 0 else F.relu(x), weights[layer], weights[layer + 1])
    return x


def deep_scores(weights: Sequence[torch.Tensor], images: torch.Tensor) -> torch.Tensor:
    """The same with sigmoids between the layers, through which gradients shrink from layer to layer."""
    x = images
    for layer in range(0, len(weights), 2):
        x = F.linear(x if layer == 0 else torch.sigmoid(x), weights[layer], weights[layer + 1])
    return x


@cache
def _learn() -> tuple[torch.Tensor, torch.Tensor]:
    found = digits()
    return torch.from_numpy(found.images).flatten(1), torch.from_numpy(found.labels)


def batches(steps: int, size: int = 128, seed: int = 1) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """``steps`` random batches, the same for the same seed: (size, 64) float32 images, (size,) labels."""
    images, labels = _learn()
    random = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        chosen = torch.randint(len(images), (size,), generator=random)
        yield images[chosen], labels[chosen]


def right(weights: Sequence[torch.Tensor]) -> float:
    """Share of the held-out digits that are read right; evaluated in float32."""
    found = digits()
    whole = [one.float() for one in weights]
    answers = scores(whole, torch.from_numpy(found.test_images).flatten(1)).argmax(1)
    return float((answers == torch.from_numpy(found.test_labels)).float().mean())
