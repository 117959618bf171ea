"""Output of nccl-tests (``all_reduce_perf`` and its kin), with the columns of every version."""

from __future__ import annotations

import re
from dataclasses import dataclass

from labkit.hardware.reports.base import Reader, Report, Table, number, show, whole, word

COLLECTIVES = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "reduce",
    "alltoall",
    "alltoallv",
    "sendrecv",
    "scatter",
    "gather",
    "hypercube",
)
_NAME = re.compile(rf"\b({'|'.join(COLLECTIVES)})_perf\b")
_SETTINGS = re.compile(r"#?\s*nThread\s+\d+\s+nGpus\s+\d+")
_SETTING = re.compile(r"(nThread|nGpus|minBytes|maxBytes|iters|warmup iters|validation)\s*:?\s+(\d+)")
_RANK = re.compile(
    r"#?\s*Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+(\d+)\s+on\s+(\S+)\s+device\s+(\d+)\s+\[([^\]]*)\]\s*(.*)"
)
_AVERAGE = re.compile(r"#?\s*Avg bus bandwidth\s*:\s*(\S+)")
_BOUNDS = re.compile(r"#?\s*Out of bounds values\s*:\s*(\d+)\s*(\w*)")
_VERSION = re.compile(r"nccl-tests version\s+(\S+)")
_LIBRARY = re.compile(r"nccl-library=(\d+)|NCCL version\s+([\d.]+)")
_COLUMNS = re.compile(r"\bsize\s+count\s+type\b")
# A row that can be nothing else, for tables whose heading is gone.
_ROW = re.compile(
    r"\d+\s+\d+\s+(?:float|half|double|bfloat16|fp8_\w+|u?int\d+)\s+(?:sum|prod|max|min|avg|none)\s+-?\d"
)
_ENDED = re.compile(r"#?\s*Collective test concluded")
_VALUE = re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|N/A|nan|inf|-nan", re.IGNORECASE)
_MOST_ROWS = 10_000


@dataclass(frozen=True)
class Measurement:
    """One size, one way: microseconds, GB/s (10^9), and the number of wrong values, None where N/A.

    `error` is what versions before 2.13 print instead: the largest relative error.
    """

    time_us: float | None
    algbw_GBps: float | None
    busbw_GBps: float | None
    wrong: int | None = None
    error: float | None = None


@dataclass(frozen=True)
class SizeRow:
    """One size of message. `in_place` None: not printed."""

    size_bytes: int
    count: int
    type: str
    redop: str | None
    root: int | None
    out_of_place: Measurement
    in_place: Measurement | None

    @property
    def best_GBps(self) -> float | None:
        """The better of the two bus bandwidths."""
        rates = [way.busbw_GBps for way in (self.out_of_place, self.in_place) if way]
        known = [rate for rate in rates if rate is not None]
        return max(known) if known else None


@dataclass(frozen=True)
class TestRank:
    """A rank of the test: on which host and device, and the card's name."""

    rank: int
    pid: int
    host: str
    device: int
    bus_id: str
    name: str | None


@dataclass(frozen=True, kw_only=True, repr=False)
class NcclTests(Report):
    """A run. `collective` is None when its name was not printed or pasted."""

    kind = "nccl_tests"
    title = "nccl-tests"
    collective: str | None
    version: str | None
    nccl_version: str | None
    settings: dict[str, int]
    ranks: tuple[TestRank, ...]
    rows: tuple[SizeRow, ...]
    avg_busbw_GBps: float | None
    out_of_bounds: int | None
    failed: bool | None

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(rank.host for rank in self.ranks))

    @property
    def peak_GBps(self) -> float | None:
        """The highest bus bandwidth of any size."""
        rates = [rate for row in self.rows if (rate := row.best_GBps) is not None]
        return max(rates) if rates else None

    def headline(self) -> str:
        where = f"{len(self.ranks)} ranks on {len(self.hosts)} hosts" if self.ranks else "ranks not shown"
        return f"{self.title}: {self.collective or 'collective not named'}, {where}, {len(self.rows)} sizes"

    def table(self) -> Table:
        head = ("size B", "type", "time us", "algbw GB/s", "busbw GB/s", "wrong", "in place: busbw GB/s")
        rows = []
        for row in self.rows:
            way, other = row.out_of_place, row.in_place
            bad = way.wrong if way.wrong is not None else way.error
            cells = (row.size_bytes, row.type, way.time_us, way.algbw_GBps, way.busbw_GBps, bad)
            rows.append((*map(show, cells), show(other.busbw_GBps if other else None)))
        return head, tuple(rows)


class NcclTestsReader(Reader):
    kind = "nccl_tests"

    def __init__(self) -> None:
        super().__init__()
        self.collective: str | None = None
        self.version: str | None = None
        self.library: str | None = None
        self.settings: dict[str, int] = {}
        self.ranks: list[TestRank] = []
        self.rows: list[SizeRow] = []
        self.old_columns = False
        self.average: float | None = None
        self.bounds: tuple[int, str] | None = None
        self.partial: list[str] = []
        self.held: tuple[SizeRow, str] | None = None
        self.ways = 1
        self.rooted: bool | None = None
        self.table_seen = self.ended = self.lost = False

    @classmethod
    def starts(cls, line: str) -> bool:
        return bool(
            _SETTINGS.search(line) or _NAME.search(line) or _COLUMNS.search(line) or _VERSION.search(line)
        )

    def take(self, line: str) -> bool:
        text = line.strip()
        if not text or text == "#":
            return True
        if not self.table_seen and _ROW.match(text):
            self.table_seen = self.lost = True
        tokens = text.lstrip("# ").split()
        if self.table_seen and tokens and (tokens[0].isdecimal() or self.partial) and self._row(tokens, line):
            return True
        return self._summary(text, line) or self._heading(text, line)

    def _heading(self, text: str, line: str) -> bool:
        if name := _NAME.search(text):
            if self.collective and (self.rows or self.ended) and not _ENDED.match(text):
                return False  # the next run
            self.collective = self.collective or name[1]
            self.ended |= bool(_ENDED.match(text))
            self.keep("collective", line)
            return True
        if _SETTINGS.search(text):
            if self.rows:
                return False
            self.settings = self.settings or {key: int(value[:15]) for key, value in _SETTING.findall(text)}
            self.keep("settings", line)
            return True
        if rank := _RANK.match(text):
            self._rank(rank, line)
            return True
        return self._columns(text, line) or self._versions(text)

    def _columns(self, text: str, line: str) -> bool:
        """The heading of the table, which a terminal may have broken into several lines."""
        if self.rows or any(map(str.isdecimal, text.split())):
            return False
        first = bool(_COLUMNS.search(text))
        if first:
            self.table_seen, self.rooted = True, "root" in text
            self.keep("columns", line)
        if "in-place" in text or "in-plac" in text or text.count("busbw") > 1:
            self.ways = 2
        self.old_columns |= " error" in text
        return first or "busbw" in text or "-place" in text

    def _versions(self, text: str) -> bool:
        if version := _VERSION.search(text):
            self.version = version[1]
        if library := _LIBRARY.search(text):
            self.library = library[1] or library[2]
        return text.startswith("#") or bool(version or library)

    def _rank(self, found: re.Match[str], line: str) -> None:
        rank, pid, host, device, bus, name = found.groups()
        if len(self.ranks) < _MOST_ROWS:
            self.ranks.append(
                TestRank(int(rank[:9]), int(pid[:12]), host, int(device[:9]), bus.strip(), word(name))
            )
        self.keep(f"rank{rank}", line)

    def _summary(self, text: str, line: str) -> bool:
        if average := _AVERAGE.match(text):
            self.average = number(average[1])
            self.keep("average", line)
            return True
        if bounds := _BOUNDS.match(text):
            self.bounds = (int(bounds[1][:12]), bounds[2])
            self.keep("bounds", line)
            return True
        return False

    def _row(self, tokens: list[str], line: str) -> bool:
        """A row, or the rest of one that the terminal broke."""
        if self.held and _begins_row(tokens):
            self._flush()
        # A terminal breaks rows between words and inside them; only one way of joining gives the right count.
        ways = (
            self.partial + tokens,
            [*self.partial[:-1], "".join(self.partial[-1:] + tokens[:1]), *tokens[1:]],
        )
        for joined in ways if self.partial else ways[:1]:
            row = parse_row(joined, self.old_columns, self.rooted)
            if row and (row.in_place or self.ways < 2):
                self.partial, self.held = [], None
                self._add(row, line)
                return True
            self.held = (row, line) if row else self.held
        goes_on = _begins_row(ways[0]) and len(ways[0]) < 13
        self.lost |= bool(self.partial) and not goes_on
        self.partial = ways[0] if goes_on else []
        return goes_on

    def _flush(self) -> None:
        """A row of which only the first half is there."""
        if self.held:
            self._add(*self.held)
        self.lost |= bool(self.partial)
        self.held, self.partial = None, []

    def _add(self, row: SizeRow, line: str) -> None:
        if len(self.rows) < _MOST_ROWS:
            self.rows.append(row)
            self.keep(f"size{row.size_bytes}", line)
            if row.out_of_place.wrong or (row.in_place and row.in_place.wrong):
                self.keep("wrong", line)

    def finish(self) -> NcclTests | None:
        self._flush()
        if not (self.rows or self.ranks or self.average is not None or self.settings):
            return None
        return NcclTests(
            collective=self.collective,
            version=self.version,
            nccl_version=self.library,
            settings=self.settings,
            ranks=tuple(self.ranks),
            rows=tuple(self.rows),
            avg_busbw_GBps=self.average,
            out_of_bounds=self.bounds[0] if self.bounds else None,
            failed=self.bounds[1].upper() == "FAILED" if self.bounds and self.bounds[1] else None,
            cut=self.average is None or not self.rows or self.lost,
            quotes=self.quotes,
        )


def _begins_row(tokens: list[str]) -> bool:
    return len(tokens) >= 3 and tokens[0].isdecimal() and tokens[1].isdecimal() and tokens[2].isidentifier()


def parse_row(tokens: list[str], old_columns: bool, rooted: bool | None = None) -> SizeRow | None:
    """A row's tokens: size, count, type, perhaps the operation, perhaps the root, and one or two measurements.

    `rooted`: whether there is a column for the root; None when the heading does not tell.
    """
    if not _begins_row(tokens):
        return None
    size, count = whole(tokens[0]), whole(tokens[1])
    rest = tokens[3:]
    redop = rest.pop(0) if rest and rest[0].isidentifier() and rest[0].lower() not in ("nan", "inf") else None
    if not all(map(_is_value, rest)) or size is None or count is None:
        return None
    if rooted is not None and (len(rest) in (5, 9)) != rooted:
        return None
    root = whole(rest.pop(0)) if len(rest) in (5, 9) else None
    if len(rest) not in (4, 8):
        return None
    first = _measurement(rest[:4], old_columns)
    second = _measurement(rest[4:], old_columns) if len(rest) == 8 else None
    return SizeRow(size, count, tokens[2], None if redop == "none" else redop, root, first, second)


def _is_value(token: str) -> bool:
    return bool(_VALUE.fullmatch(token.lstrip("-")))


def _measurement(tokens: list[str], old_columns: bool) -> Measurement:
    time, algbw, busbw = (number(token) for token in tokens[:3])
    if old_columns:
        return Measurement(time, algbw, busbw, error=number(tokens[3]))
    return Measurement(time, algbw, busbw, wrong=whole(tokens[3]))
