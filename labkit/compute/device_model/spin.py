"""A kernel that only takes time, to stand in for another whose duration is known.

Each thread does ``rounds`` multiplications and additions, each of which needs the one before: no compiler or card can
leave one out or do two at once, so the time grows with ``rounds`` and with nothing else.
"""

from __future__ import annotations

import numpy as np

from labkit.compute import cuda


@cuda.jit
def spin(rounds, out):
    i = cuda.grid(1)
    if i < out.size:
        value = np.float32(i)
        for _ in range(rounds):
            value = value * np.float32(0.999) + np.float32(1)
        out[i] = value


def spin_reference(rounds: int, size: int) -> np.ndarray:
    """What ``out`` holds afterwards, (size,) float32."""
    value = np.arange(size, dtype=np.float32)
    for _ in range(rounds):
        value = value * np.float32(0.999) + np.float32(1)
    return value
