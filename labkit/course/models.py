"""Two real networks, small enough to learn something within seconds on two cores: one sees, one writes."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F


class ConvNet(nn.Module):
    """Which digit is it? Two convolutions and a linear layer, about 10,000 weights.

    Takes images of shape (batch, 1, 8, 8), float, and returns scores of shape (batch, 10).
    """

    def __init__(self, channels: int = 16):
        super().__init__()
        self.first = nn.Conv2d(1, channels, kernel_size=3, padding=1)
        self.second = nn.Conv2d(channels, 2 * channels, kernel_size=3, padding=1)
        self.scores = nn.Linear(2 * channels * 4 * 4, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        seen = F.relu(self.second(F.relu(self.first(images))))
        return self.scores(F.max_pool2d(seen, 2).flatten(1))


class Transformer(nn.Module):
    """Which character comes next? A decoder as large models are, with 30,000 weights a layer instead of billions.

    Takes codes of shape (batch, length), int64, and returns scores of shape (batch, length, alphabet). With
    ``tied=True`` the last layer uses the embedding's own weights: one parameter in two places.
    """

    def __init__(
        self,
        alphabet: int,
        width: int = 48,
        heads: int = 4,
        layers: int = 2,
        length: int = 64,
        tied: bool = False,
    ):
        super().__init__()
        self.characters = nn.Embedding(alphabet, width)
        self.places = nn.Embedding(length, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.scores = nn.Linear(width, alphabet, bias=False)
        for table in (self.characters, self.places):
            nn.init.normal_(table.weight, std=1 / math.sqrt(width))
        if tied:
            self.scores.weight = self.characters.weight

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        places = torch.arange(codes.shape[1], device=codes.device)
        x = self.characters(codes) + self.places(places)
        for layer in self.layers:
            x = layer(x)
        return self.scores(self.norm(x))


class Layer(nn.Module):
    """Attention, then two linear layers, each added to what came in."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_linear = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.joined = nn.Linear(width, width)
        self.wider, self.narrower = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.before_attention(x))
        return x + self.narrower(F.gelu(self.wider(self.before_linear(x))))

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        # (batch, length, 3 * width) -> three of (batch, heads, length, width a head)
        shape = (batch, length, 3, self.heads, width // self.heads)
        q, k, v = self.queries_keys_values(x).view(shape).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.joined(seen.transpose(1, 2).reshape(batch, length, width))
