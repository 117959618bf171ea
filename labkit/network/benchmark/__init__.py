"""Collectives measured: labkit's own and torch's, in the layout of nccl-tests.

`measure` runs inside ranks and gives a `BandwidthReport`. As a program it runs under any launcher:
``torchrun --nproc-per-node 4 -m labkit.network.benchmark``, ``srun -n 8 python -m labkit.network.benchmark``,
or on this machine ``labkit bench collectives``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.lazy import exports
from labkit.network.benchmark.fit import Fit, fit
from labkit.network.benchmark.report import BandwidthReport, Row

if TYPE_CHECKING:
    from labkit.network.benchmark.measuring import measure

__all__ = ["BandwidthReport", "Fit", "Row", "fit", "measure"]

# it needs torch, which a notebook that only reads reports does not load
__getattr__, __dir__ = exports(__name__, {"measure": "labkit.network.benchmark.measuring"})
