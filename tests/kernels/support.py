"""Data for the shipped kernels, and launches that must be clean."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import settings

import labkit

few = settings(max_examples=25)


def numbers(seed: int, *shape: int) -> np.ndarray:
    """float32 between 0.05 and 0.95."""
    return np.random.default_rng(seed).uniform(0.05, 0.95, shape).astype(np.float32)


def unset(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """An output in which what is not written shows."""
    return np.full(shape, np.nan if np.dtype(dtype).kind == "f" else 77, dtype)


def inspected(launch: Any, *arguments: Any) -> Any:
    """Run a launch under the sanitizer; it must have no error, and nothing to warn of."""
    inspection = labkit.inspect(launch, *arguments)
    assert [f.message for f in inspection.findings if f.severity != "note"] == []
    return inspection.totals
