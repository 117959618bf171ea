"""All reports of one file together: what they say of the machine, whichever of them says it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from labkit.errors import LabkitError
from labkit.hardware.catalog import gpu as catalogued
from labkit.hardware.records import GPU
from labkit.hardware.reports.base import Report
from labkit.hardware.reports.collect_env import Environment
from labkit.hardware.reports.nccl_tests import NcclTests
from labkit.hardware.reports.nvlink import NVLinkStatus
from labkit.hardware.reports.p2p_test import P2PTest
from labkit.hardware.reports.smi_q import SmiQuery
from labkit.hardware.reports.smi_table import SmiTable

R = TypeVar("R", bound=Report)


@dataclass(frozen=True)
class Case:
    """The reports, and questions that several of them can answer. `listed`: names of GPUs from ``nvidia-smi -L``."""

    reports: tuple[Report, ...]
    listed: tuple[str, ...] = ()

    def all(self, kind: type[R]) -> Iterator[R]:
        return (report for report in self.reports if isinstance(report, kind))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the machine's GPUs, from the first report that tells them."""
        for report in self.reports:
            found = tuple(name for name in _names(report) if name and "ERR!" not in name)
            if found:
                return found
        return self.listed

    @cached_property
    def card(self) -> GPU | None:
        """The catalogue's entry, when all GPUs are of one known kind."""
        return card_of(self.names)

    @cached_property
    def driver(self) -> tuple[str, str] | None:
        """The driver's version and the line that says so."""
        for report in self.reports:
            if isinstance(report, (SmiTable, SmiQuery, Environment)) and report.driver_version:
                return report.driver_version, report.quote("driver_version", "kmd_version", "versions")
        return None


def card_of(names: tuple[str, ...]) -> GPU | None:
    if len(set(names)) != 1:
        return None
    try:
        return catalogued(names[0])
    except LabkitError:
        return None


def _names(report: Report) -> Iterator[str | None]:
    if isinstance(report, (SmiTable, SmiQuery, NVLinkStatus, P2PTest)):
        yield from (gpu.name for gpu in report.gpus)
    elif isinstance(report, Environment):
        yield from report.gpus
    elif isinstance(report, NcclTests):
        yield from (rank.name for rank in report.ranks)
