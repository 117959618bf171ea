"""Logs that NCCL writes with ``NCCL_DEBUG=INFO`` (or WARN), of many ranks at once and in any order."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from labkit.hardware.reports.base import Reader, Report, Table, show
from labkit.hardware.reports.text import quote

_HEAD = re.compile(r"(?:([\w.-]+):(\d+):(\d+) )?\[(\d+)\] (?:\S+:\d+ )?$")
_VERSION = re.compile(r"NCCL version ([\d.]+)")
_VIA = re.compile(r"(\d+)(?:\[\w+\])? -> (\d+)(?:\[\w+\])?(?: \[(send|receive)\])? via (.+)")
_RING = re.compile(r"(?:Channel|Ring) (\d+)(?:/\d+)? *: +((?:\d+ *)+)")
_RANK = re.compile(r"\brank (\d+) n[rR]anks (\d+)")
_NODES = re.compile(r"\bnNodes (\d+)")
_ENV = re.compile(r"(NCCL_\w+) set (?:by environment )?to (.+)")
_DEVICES = re.compile(r"NET/(\S+) ?: Using (.*)")
_NETWORK = re.compile(r"Using network (.+)")
_CHANNELS = re.compile(
    r"(\d+) coll channels, (?:(\d+) (?:collnet|nvls) channels, )?(?:(\d+) nvls channels, )?(\d+) p2p channels"
)
_TIMING = re.compile(r"Init timings.*?rank (\d+) nranks \d+ total (\d{1,9}(?:\.\d{1,9})?)")
_MOST = 1000  # distinct things of one sort that are kept


@dataclass(frozen=True)
class Warned:
    """A warning, how often it came, and from where first."""

    message: str
    count: int
    host: str | None


@dataclass(frozen=True, kw_only=True, repr=False)
class NcclLog(Report):
    """What the log tells, counted. `transports`: ``"P2P/CUMEM"``, ``"SHM"``, ``"NET/IB/GDRDMA"``, ... -> connections.

    `rings`: channel -> ranks in order. `network`: what carries traffic between nodes. `started` and `complete`:
    ranks that began and ended their initialisation. `init_seconds`: rank -> seconds, where printed.
    """

    kind = "nccl_log"
    title = "NCCL log"
    version: str | None
    hosts: tuple[str, ...]
    nranks: int | None
    nodes: int | None
    started: tuple[int, ...]
    complete: tuple[int, ...]
    network: str | None
    network_devices: tuple[str, ...]
    transports: dict[str, int]
    rings: dict[str, tuple[int, ...]]
    trees: bool
    coll_channels: int | None
    nvls_channels: int | None
    environment: dict[str, str]
    warnings: tuple[Warned, ...]
    init_seconds: dict[str, float]
    lines: int

    def headline(self) -> str:
        return (
            f"{self.title}: version {show(self.version)}, {show(self.nranks)} ranks, "
            f"network {show(self.network)}, {len(self.warnings)} warnings"
        )

    def table(self) -> Table:
        rows = [("version", show(self.version)), ("ranks", show(self.nranks)), ("nodes", show(self.nodes))]
        rows += [("network", show(self.network)), ("network devices", show(self.network_devices))]
        rows += [(f"connections by {name}", str(count)) for name, count in self.transports.items()]
        rows += [(f"ring {name}", " ".join(map(str, ring))) for name, ring in list(self.rings.items())[:4]]
        rows += [(name, value) for name, value in self.environment.items()]
        rows += [(f"warning, {each.count} times", each.message) for each in self.warnings[:20]]
        return ("what", "found"), tuple(rows)


class NcclLogReader(Reader):
    """Every line names itself, so that this reader takes its lines from anywhere in a file."""

    kind = "nccl_log"

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.version: str | None = None
        self.hosts: dict[str, None] = {}
        self.nranks: int | None = None
        self.nodes: int | None = None
        self.started: set[int] = set()
        self.complete: set[int] = set()
        self.network: str | None = None
        self.devices: dict[str, None] = {}
        self.transports: Counter[str] = Counter()
        self.rings: dict[str, tuple[int, ...]] = {}
        self.trees = False
        self.channels: tuple[int | None, int | None] = (None, None)
        self.environment: dict[str, str] = {}
        self.warnings: Counter[str] = Counter()
        self.warned_by: dict[str, str | None] = {}
        self.init_seconds: dict[str, float] = {}
        self.broken = ""

    @classmethod
    def starts(cls, line: str) -> bool:
        return "NCCL INFO " in line or "NCCL WARN " in line or bool(_VERSION.match(line.lstrip()))

    def take(self, line: str) -> bool:
        if "NCCL " not in line:
            return self._rest(line)
        for mark in ("NCCL INFO ", "NCCL WARN "):
            at = line.find(mark)
            if at >= 0:
                self._line(line[:at], mark[5:9], line[at + len(mark) :].strip(), line)
                return True
        if version := _VERSION.match(line.lstrip()):
            self._version(version[1], line)
            return self.count > 0  # before any line of the log it belongs to whatever printed it
        return False

    def _rest(self, line: str) -> bool:
        """The end of a connection's line that the terminal broke before its transport."""
        broken, self.broken = self.broken, ""
        if broken and re.match(r"\s*(?:P2P|SHM|NET|COLLNET|direct|NVLS)\b", line):
            self._info(f"{broken} {line.strip()}", line)
            return True
        return False

    def _line(self, head: str, level: str, message: str, line: str) -> None:
        self.count += 1
        self.keep("first", line)
        found = _HEAD.search(head)
        host = found[1] if found else None
        if host and len(self.hosts) < _MOST:
            self.hosts.setdefault(host)
        if level == "WARN":
            self._warn(message, host, line)
        else:
            self._info(message, line)

    def _warn(self, message: str, host: str | None, line: str) -> None:
        if message in self.warnings or len(self.warnings) < _MOST:
            self.warnings[message] += 1
            self.warned_by.setdefault(message, host)
            self.keep(f"warn:{message}", line)

    def _info(self, message: str, line: str) -> None:
        if " via " in message:
            self._connection(message, line)
        elif message.endswith((" via", " ->")):
            self.broken = message
        elif message.startswith(("Channel ", "Ring ")):
            self._ring(message)
        elif message.startswith("Trees "):
            self.trees = True
        elif message.startswith("NCCL version ") and (version := _VERSION.match(message)):
            self._version(version[1], line)
        elif "NET/" in message or message.startswith("Using network"):
            self._net(message, line)
        elif "NCCL_" in message:
            self._setting(message, line)
        else:
            self._rank(message, line)

    def _connection(self, message: str, line: str) -> None:
        if found := _VIA.search(message):
            name = transport(found[4])
            if name in self.transports or len(self.transports) < _MOST:
                self.transports[name] += 1
                self.keep(f"via:{name}", line)

    def _ring(self, message: str) -> None:
        found = _RING.fullmatch(message)
        if found and len(self.rings) < _MOST:
            ranks = tuple(int(rank[:9]) for rank in found[2].split())
            if len(ranks) > 1:
                self.rings.setdefault(found[1], ranks)

    def _net(self, message: str, line: str) -> None:
        if network := _NETWORK.match(message):
            self.network = self.network or network[1].strip()
            self.keep("network", line)
        elif devices := _DEVICES.search(message):
            if len(self.devices) < _MOST:
                self.devices.setdefault(f"{devices[1]}: {devices[2]}"[:500])
            self.keep("devices", line)
        elif "No device found" in message:
            self.keep("no device", line)
        elif "GPU Direct RDMA Disabled" in message:
            self.keep("no gdr", line)
        elif "NCCL_" in message:
            self._setting(message, line)

    def _setting(self, message: str, line: str) -> None:
        if (found := _ENV.search(message)) and len(self.environment) < _MOST:
            self.environment.setdefault(found[1], found[2].rstrip("."))
            self.keep(f"env:{found[1]}", line)

    def _version(self, version: str, line: str) -> None:
        self.version = self.version or version
        self.keep("version", line)

    def _rank(self, message: str, line: str) -> None:
        if rank := _RANK.search(message):
            self._member(int(rank[1][:9]), int(rank[2][:9]), message, line)
        if nodes := _NODES.search(message):
            self.nodes = max(self.nodes or 0, int(nodes[1][:9]))
        if channels := _CHANNELS.search(message):
            nvls = channels[3] if channels[3] else channels[2] if " nvls" in message else None
            self.channels = (int(channels[1][:6]), int(nvls[:6]) if nvls else None)
            self.keep("channels", line)

    def _member(self, rank: int, nranks: int, message: str, line: str) -> None:
        self.nranks = max(self.nranks or 0, nranks)
        if len(self.started) < 100_000:
            self.started.add(rank)
            self.keep(f"rank{rank}", line)
            if "Init COMPLETE" in message or "Init timings" in message:
                self.complete.add(rank)
        if timing := _TIMING.search(message):
            self.init_seconds.setdefault(timing[1], float(timing[2]))
            self.keep(f"timing{timing[1]}", line)

    def finish(self) -> NcclLog | None:
        if not self.count:
            return None
        return NcclLog(
            version=self.version,
            hosts=tuple(self.hosts),
            nranks=self.nranks,
            nodes=self.nodes,
            started=tuple(sorted(self.started)),
            complete=tuple(sorted(self.complete)),
            network=self.network,
            network_devices=tuple(self.devices),
            transports=dict(self.transports.most_common()),
            rings=self.rings,
            trees=self.trees,
            coll_channels=self.channels[0],
            nvls_channels=self.channels[1],
            environment=self.environment,
            warnings=tuple(
                Warned(quote(text), n, self.warned_by[text]) for text, n in self.warnings.most_common()
            ),
            init_seconds=self.init_seconds,
            lines=self.count,
            cut=bool(self.started) and not self.complete and not self.warnings,
            quotes=self.quotes,
        )


def transport(text: str) -> str:
    """The transport without numbers: ``NET/IB/0/GDRDMA`` is ``NET/IB/GDRDMA``, ``SHM/direct/direct`` is ``SHM``."""
    name = text.split(" comm ")[0].strip()
    if name.startswith(("direct shared memory", "SHM")):
        return "SHM"
    if name.startswith("P2P"):
        kind = name.split("/")[1] if "/" in name else ""
        return "P2P/direct" if kind.startswith("direct") else f"P2P/{kind}" if kind else "P2P"
    if name.startswith("NET"):
        parts = [part for part in name.split("/") if not part.isdecimal()]
        kind = re.sub(r"\(.*", "", parts[1]) if len(parts) > 1 else ""
        return "/".join(filter(None, ("NET", kind, "GDRDMA" if "GDRDMA" in name else "")))
    return re.sub(r"/\d+.*", "", name)[:80]
