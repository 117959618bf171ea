"""Collectives measured: labkit's own and torch's, in the layout of nccl-tests.

`measure` runs inside ranks and gives a `BandwidthReport`. As a program it runs under any launcher:
``torchrun --nproc-per-node 4 -m labkit.network.benchmark``, ``srun -n 8 python -m labkit.network.benchmark``,
or on this machine ``labkit bench collectives``.
"""

from __future__ import annotations

from labkit.network.benchmark.fit import Fit, fit
from labkit.network.benchmark.measure import measure
from labkit.network.benchmark.report import BandwidthReport, Row

__all__ = ["BandwidthReport", "Fit", "Row", "fit", "measure"]
