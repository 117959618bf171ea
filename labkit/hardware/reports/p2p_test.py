"""``p2pBandwidthLatencyTest`` of the CUDA samples: who reaches whom, how fast and how soon."""

from __future__ import annotations

import re
from dataclasses import dataclass

from labkit.hardware.reports.base import Reader, Report, Table, number, show

Matrix = tuple[tuple[float | None, ...], ...]

_DEVICE = re.compile(r"\s*Device:\s*(\d{1,3}),\s*(.*?),\s*pciBusID:\s*(\w+)(?:,.*)?")
_ACCESS = re.compile(r"\s*Device=(\d{1,3})\s+(CAN|CANNOT)\s+Access Peer Device=(\d{1,3})\s*")
_TITLE = re.compile(
    r"\s*((?:Uni|Bi)directional\s+)?P2P=(Enabled|Disabled)\s+(Bandwidth|Latency)\s*(\(P2P (Writes|Reads)\)\s*)?Matrix.*"
)
_CONNECT = re.compile(r"\s*P2P Connectivity Matrix\s*")
_COLUMNS = re.compile(r"\s*(D\\D|GPU|CPU)((?:\s+\d{1,3})+)\s*")
_ROW = re.compile(r"\s*(\d{1,3})((?:\s+-?[\d.]+(?:e[+-]?\d+)?|\s+nan|\s+inf)+)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class TestedGPU:
    index: int
    name: str
    bus: str


@dataclass(frozen=True, kw_only=True, repr=False)
class P2PTest(Report):
    """`matrices`: name -> rows. Bandwidths in GB/s, latencies in us; the diagonal is a GPU's own memory.

    Names are ``unidirectional_disabled``, ``unidirectional_enabled_writes``, ``bidirectional_enabled``,
    ``latency_disabled_gpu``, ... `peer_access[i][j]`: whether device i can access device j.
    """

    kind = "p2p_test"
    title = "p2pBandwidthLatencyTest"
    gpus: tuple[TestedGPU, ...]
    peer_access: tuple[tuple[bool | None, ...], ...] | None
    matrices: dict[str, Matrix]

    def bandwidth(self, direction: str = "unidirectional", enabled: bool = True) -> Matrix | None:
        """The first matrix of that direction, with or without peer access."""
        start = f"{direction}_{'enabled' if enabled else 'disabled'}"
        return next((matrix for name, matrix in self.matrices.items() if name.startswith(start)), None)

    def headline(self) -> str:
        return f"{self.title}: {len(self.gpus)} GPUs, {len(self.matrices)} matrices"

    def table(self) -> Table:
        matrix = self.bandwidth() or self.bandwidth(enabled=False) or ()
        head = ("one way, GB/s", *(f"to {j}" for j in range(len(matrix))))
        return head, tuple((f"from {i}", *map(show, row)) for i, row in enumerate(matrix))


class P2PReader(Reader):
    kind = "p2p_test"

    def __init__(self) -> None:
        super().__init__()
        self.gpus: dict[int, TestedGPU] = {}
        self.access: dict[tuple[int, int], bool] = {}
        self.rows: dict[str, list[tuple[float | None, ...]]] = {}
        self.width: dict[str, int] = {}
        self.title = self.name = ""

    @classmethod
    def starts(cls, line: str) -> bool:
        return "P2P (Peer-to-Peer)" in line or bool(
            _TITLE.fullmatch(line) or _CONNECT.fullmatch(line) or _ACCESS.fullmatch(line)
        )

    def take(self, line: str) -> bool:
        if (
            not line.strip()
            or "***NOTE" in line
            or line.startswith("So you can see")
            or "P2P (Peer-to-Peer)" in line
        ):
            self.keep("first", line)
            return True
        if device := _DEVICE.fullmatch(line):
            self.gpus.setdefault(int(device[1]), TestedGPU(int(device[1]), device[2], device[3]))
            self.keep(f"gpu{device[1]}", line)
            return True
        if access := _ACCESS.fullmatch(line):
            can = access[2] == "CAN"
            self.access.setdefault((int(access[1]), int(access[3])), can)
            self.keep("can" if can else "cannot", line)
            return True
        return self._matrix(line)

    def _matrix(self, line: str) -> bool:
        if _CONNECT.fullmatch(line):
            self.title = self.name = "connectivity"
            return "connectivity" not in self.rows
        if title := _TITLE.fullmatch(line):
            direction, state, what, _, way = title.groups()
            words = (direction or what, state, way)
            self.title = self.name = "_".join(part.strip().lower() for part in words if part)
            self.keep(self.name, line)
            return self.name not in self.rows
        if self.title and (columns := _COLUMNS.fullmatch(line)):
            side = "" if columns[1] == "D\\D" else f"_{columns[1].lower()}"
            self.name = self.title + side
            self.rows[self.name] = []
            self.width[self.name] = len(columns[2].split())
            return True
        return self._row(line)

    def _row(self, line: str) -> bool:
        row = _ROW.fullmatch(line)
        if row is None or self.name not in self.rows or len(self.rows[self.name]) >= self.width[self.name]:
            return False
        values = [number(token) for token in row[2].split()][: self.width[self.name]]
        missing = self.width[self.name] - len(values)
        self.keep(f"{self.name}.{len(self.rows[self.name])}", line)
        self.rows[self.name].append((*values, *(None,) * missing))
        return True

    def finish(self) -> P2PTest | None:
        matrices = {name: tuple(rows) for name, rows in self.rows.items() if rows}
        if not matrices and not self.access:
            return None
        connectivity = matrices.pop("connectivity", None)
        whole = all(
            len(rows) == self.width[name] and None not in rows[-1] for name, rows in self.rows.items()
        )
        return P2PTest(
            gpus=tuple(self.gpus[index] for index in sorted(self.gpus)),
            peer_access=self._access(connectivity),
            matrices=matrices,
            cut=not whole or not any(name.startswith("latency_enabled") for name in matrices),
            quotes=self.quotes,
        )

    def _access(self, connectivity: Matrix | None) -> tuple[tuple[bool | None, ...], ...] | None:
        if connectivity:
            return tuple(tuple(None if cell is None else cell == 1 for cell in row) for row in connectivity)
        if not self.access:
            return None
        count = 1 + max(max(pair) for pair in self.access)
        return tuple(
            tuple(True if i == j else self.access.get((i, j)) for j in range(count)) for i in range(count)
        )
