"""Readers of what people paste: reports of nvidia-smi, PyTorch, NCCL and their tests, one format a file.

`read` finds every report in a text, whatever surrounds them. Each is a frozen dataclass; what a report does
not say is None.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from labkit.hardware.reports.base import Reader, Report
from labkit.hardware.reports.collect_env import CollectEnvReader
from labkit.hardware.reports.nccl_log import NcclLogReader
from labkit.hardware.reports.nccl_tests import NcclTestsReader
from labkit.hardware.reports.nccl_topo_xml import NcclTopoReader
from labkit.hardware.reports.nvlink import NVLinkReader
from labkit.hardware.reports.p2p_test import P2PReader
from labkit.hardware.reports.python_error import PythonErrorReader
from labkit.hardware.reports.smi_q import SmiQueryReader, SmiXmlReader
from labkit.hardware.reports.smi_table import SmiTableReader
from labkit.hardware.reports.text import ReportError, decode, lines, quote
from labkit.hardware.reports.topo import TopoReader

__all__ = ["KINDS", "Found", "Report", "ReportError", "decode", "find", "read"]

# Formats that stand as a block, tried in this order at a line that belongs to no open block.
BLOCKS: tuple[type[Reader], ...] = (
    SmiTableReader,
    SmiQueryReader,
    SmiXmlReader,
    NcclTopoReader,
    TopoReader,
    NVLinkReader,
    CollectEnvReader,
    NcclTestsReader,
    P2PReader,
)
# Formats whose lines name themselves and lie anywhere, also inside a block.
STRAYS: tuple[type[Reader], ...] = (NcclLogReader, PythonErrorReader)
KINDS = tuple(dict.fromkeys(reader.kind for reader in (*BLOCKS, *STRAYS)))

# What the first line of a block may hold.
BEGINNINGS = (
    "NVIDIA-SMI",
    "NVSMI LOG",
    "<nvidia_smi_log",
    "<system",
    "PyTorch version",
    "CUDA used to build",
    "Collecting env",
    "nThread",
    "_perf",
    "count",
    "P2P (Peer",
    "GPU0",
    "(UUID:",
)
PATIENCE = 60  # lines of something else inside a block before it counts as over


@dataclass
class Found:
    """The reports of a text, and how far it was understood.

    `lines`: how many there were; `understood`: how many of them (blank ones apart) belonged to a report;
    `last`: number and text of the last such line; `strange`: number and text of the first that did not; `listed`:
    names of GPUs that ``nvidia-smi -L`` gives, which is no report of its own.
    """

    reports: list[Report] = field(default_factory=list)
    lines: int = 0
    understood: int = 0
    last: tuple[int, str] | None = None
    strange: tuple[int, str] | None = None
    listed: tuple[str, ...] = ()


def read(text: str) -> tuple[Report, ...]:
    """Every report in `text`, in order of appearance; none when nothing is recognised.

    Raises
    ------
    ReportError
        When `text` is not a string.
    """
    return tuple(find(text).reports)


def find(text: str) -> Found:
    """Like `read`, with an account of what was not understood."""
    if not isinstance(text, str):
        raise ReportError(f"A report is text, not {type(text).__name__}: pass what the tool printed.")
    return _Pass().run(text)


class _Pass:
    """One walk over the lines; at most one block is open at a time."""

    def __init__(self) -> None:
        self.found = Found()
        self.open: Reader | None = None
        self.foreign = 0
        self.previous: list[str] = []
        self.strays = [reader() for reader in STRAYS]
        self.order: dict[Reader, None] = {}

    def run(self, text: str) -> Found:
        for line in lines(text):
            self.found.lines += 1
            if line and self._understood(line):
                self.found.understood += 1
                self.found.last = (self.found.lines, line)
            elif line and self.found.strange is None and line.strip():
                self.found.strange = (self.found.lines, quote(line))
            self.previous = [*self.previous[-1:], line]
        if self.found.last:
            self.found.last = (self.found.last[0], quote(self.found.last[1]))
        for reader in self.order:
            report = reader.finish()
            if report:
                self.found.reports.append(report)
            elif isinstance(reader, NVLinkReader):
                self.found.listed += reader.names()
        return self.found

    def _understood(self, line: str) -> bool:
        for reader in self.strays:
            if reader.take(line):
                self._note(reader)
                return True
        if self.open and not self._interrupts(line) and self.open.take(line):
            self.foreign = 0
            return True
        return self._begins(line)

    def _interrupts(self, line: str) -> bool:
        """Whether a report of another kind begins here, although the open one might take the line."""
        if not any(map(line.__contains__, BEGINNINGS)):
            return False
        return any(block.starts(line) for block in BLOCKS if not isinstance(self.open, block))

    def _begins(self, line: str) -> bool:
        for block in BLOCKS:
            if block.starts(line):
                reader = block()
                reader.before = tuple(self.previous)
                if reader.take(line):
                    self.open, self.foreign = reader, 0
                    self._note(reader)
                    return True
        self.foreign += 1
        if self.foreign > PATIENCE:
            self.open = None
        return False

    def _note(self, reader: Reader) -> None:
        self.order.setdefault(reader)
