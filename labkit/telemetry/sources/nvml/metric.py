"""One metric of a GPU: how it is named, grouped and drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Metric:
    """``limit`` is asked once, with NVML and the handle, and gives the limit in words and as a number."""

    key: str
    suffix: str
    unit: str
    group: str
    limit: Callable[[Any, Any], tuple[str, float | None]] | None = None
    hidden: bool = True
    whole_gpu: bool = True  # a figure of the whole GPU says nothing about a MIG slice
