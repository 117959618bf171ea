"""``nvidia-smi topo -m``: how every GPU and NIC reaches every other, and which CPUs are near."""

from __future__ import annotations

import re
from dataclasses import dataclass

from labkit.hardware.reports.base import Reader, Report, Table, show, word

# Near to far. SOC is what drivers before 384 called SYS.
DISTANCES = ("X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC")
_LINK = re.compile(r"X|NV[1-9]\d?|PIX|PXB|PHB|NODE|SYS|SOC|C2C")
_GPU = re.compile(r"GPU\d{1,3}")
_LABEL = re.compile(
    r"GPU\d{1,3}|NIC\d{1,3}|(?:mlx[45]_|hfi1_|i40iw|irdma|bnxt_re|qedr|efa_|hns_|erdma_|ocrdma|rocep|ibp"
    r"|rdmap|roce)[\w.-]*"
)
_LEGEND = re.compile(r"\s*(?:X|SYS|SOC|NODE|PHB|PXB|PIX|NV#|C2C)\s+=\s")
_NIC_NAME = re.compile(r"\s*(NIC\d{1,3})\s*:\s*(\S+)")
_WORDS = frozenset(("CPU", "NUMA", "GPU", "Affinity", "ID"))
_COLUMNS = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")


@dataclass(frozen=True, kw_only=True, repr=False)
class Topology(Report):
    """A matrix of connections. `matrix[i][j]` joins `devices[i]` to `devices[j]`: ``"X"`` (itself), ``"NV12"``
    (that many NVLinks), ``"PIX"``, ``"PXB"``, ``"PHB"``, ``"NODE"``, ``"SYS"``; None where it was cut away.

    `cpu_affinity`, `numa_affinity` and `gpu_numa_id` have an entry a GPU. `nic_names` is the legend's.
    """

    kind = "topo"
    title = "nvidia-smi topo -m"
    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    devices: tuple[str, ...]
    matrix: tuple[tuple[str | None, ...], ...]
    cpu_affinity: tuple[str | None, ...]
    numa_affinity: tuple[str | None, ...]
    gpu_numa_id: tuple[str | None, ...]
    nic_names: dict[str, str]

    def link(self, one: str, other: str) -> str | None:
        """The connection of two devices; the transposed entry stands in for one that was cut away."""
        if one not in self.devices or other not in self.devices:
            return None
        i, j = self.devices.index(one), self.devices.index(other)
        return self.matrix[i][j] or self.matrix[j][i]

    def headline(self) -> str:
        return f"{self.title}: {len(self.gpus)} GPUs, {len(self.nics)} NICs"

    def table(self) -> Table:
        head = ("", *self.devices, "CPUs", "NUMA")
        rows = []
        for i, name in enumerate(self.devices):
            near = (self.cpu_affinity[i], self.numa_affinity[i]) if i < len(self.gpus) else (None, None)
            shown = self.nic_names.get(name)
            rows.append(
                (f"{name} ({shown})" if shown else name, *map(show, self.matrix[i]), *map(show, near))
            )
        return head, tuple(rows)


class TopoReader(Reader):
    """Reads tokens, not columns, so that tabs, spaces and wrapped lines all do."""

    kind = "topo"

    def __init__(self) -> None:
        super().__init__()
        self.header: list[str] = []
        self.rows: list[tuple[str, list[str]]] = []
        self.nic_names: dict[str, str] = {}

    @classmethod
    def starts(cls, line: str) -> bool:
        tokens = line.split(maxsplit=3)[:3]
        if not tokens or not _GPU.fullmatch(tokens[0]):
            return False
        second = tokens[1] if len(tokens) > 1 else ""
        return bool(_LINK.fullmatch(second) or _LABEL.fullmatch(second) or second == "CPU")

    def take(self, line: str) -> bool:
        if not line.strip():
            return True
        if _LEGEND.match(line) or line.strip().rstrip(":") in ("Legend", "NIC Legend"):
            return True
        if name := _NIC_NAME.fullmatch(line):
            self.nic_names.setdefault(name[1], name[2])
            return True
        return self._tokens(line.split(), line)

    def _tokens(self, tokens: list[str], line: str) -> bool:
        if len(tokens) > 1 and self._is_label(tokens[0]) and _LINK.fullmatch(tokens[1]):
            if not all(_LINK.fullmatch(token) or _is_tail([token]) for token in tokens[1:]):
                return False  # a matrix of something else, such as "topo -p2p"
            if any(label == tokens[0] for label, _ in self.rows):
                return False  # the same row again: another table
            self.rows.append((tokens[0], tokens[1:]))
            self.keep(tokens[0], line)
            return True
        if self.rows:
            return self._wrapped(tokens)
        if self.header:
            tokens = _mended(self.header, tokens)
        if self._is_header(tokens):
            self.header += tokens
            self.keep("header", line)
            return True
        return False

    def _is_label(self, token: str) -> bool:
        return token in self.header or bool(_LABEL.fullmatch(token))

    @staticmethod
    def _is_header(tokens: list[str]) -> bool:
        return all(
            token in _WORDS or (len(token) < 32 and re.fullmatch(r"[A-Za-z][\w.-]*", token))
            for token in tokens
        )

    def _wrapped(self, tokens: list[str]) -> bool:
        """The rest of a row that the terminal broke, perhaps in the middle of a word."""
        row = self.rows[-1][1]
        joined = (row[-1] if row else "") + tokens[0]
        broken = len(row) <= self._width() and not _LINK.fullmatch(tokens[0]) and _LINK.fullmatch(joined)
        whole = [*row[:-1], joined, *tokens[1:]] if broken else [*row, *tokens]
        known = all(_LINK.fullmatch(token) or _is_tail([token]) for token in whole)
        if known and len(whole) <= self._width() + len(_COLUMNS) + 1:
            row[:] = whole
            return True
        return False

    def _width(self) -> int:
        return len(self._labels()) or len(self.rows)

    def _labels(self) -> list[str]:
        text = self.header
        end = next(
            (
                i
                for i, token in enumerate(text)
                if text[i : i + 2] in (["CPU", "Affinity"], ["NUMA", "Affinity"])
            ),
            None,
        )
        return list(dict.fromkeys(text if end is None else text[:end]))

    def finish(self) -> Topology | None:
        if not self.rows:
            return None
        rows = dict(self.rows)
        named = self._labels()
        devices = tuple(named or rows)
        matrix, tails = [], {}
        for label in devices:
            tokens = rows.get(label, [])
            links = [token for token in tokens[: len(devices)] if _LINK.fullmatch(token)]
            matrix.append(tuple(links) + (None,) * (len(devices) - len(links)))
            tails[label] = tokens[len(links) :]
        gpus = tuple(label for label in devices if _GPU.fullmatch(label))
        near = [self._near(tails[gpu]) for gpu in gpus]
        return Topology(
            gpus=gpus,
            nics=tuple(label for label in devices if not _GPU.fullmatch(label)),
            devices=devices,
            matrix=tuple(matrix),
            cpu_affinity=tuple(entry[0] for entry in near),
            numa_affinity=tuple(entry[1] for entry in near),
            gpu_numa_id=tuple(entry[2] for entry in near),
            nic_names=self.nic_names,
            cut=not named or any(None in row for row in matrix),
            quotes=self.quotes,
        )

    def _near(self, tail: list[str]) -> tuple[str | None, str | None, str | None]:
        """The affinity columns of a GPU's row, as far as the header names them."""
        joined = " ".join(self.header)
        columns = [name for name in _COLUMNS if name in joined] or ([_COLUMNS[0]] if tail else [])
        merged = re.sub(r",\s+", ",", " ".join(tail)).split()
        if len(merged) > len(columns):
            return None, None, None  # broken by the terminal: which token is which would be a guess
        found = dict(zip(columns, merged, strict=False))
        cpu, numa, gpu = (word(found.get(name)) for name in _COLUMNS)
        return cpu, numa, gpu


def _mended(header: list[str], tokens: list[str]) -> list[str]:
    """Tokens of a further line of the header, the first joined to a word that the terminal broke."""
    whole = header[-1] + tokens[0]
    broken = not _LABEL.fullmatch(tokens[0]) and tokens[0] not in _WORDS
    if broken and (_LABEL.fullmatch(whole) or whole in _WORDS):
        header.pop()
        return [whole, *tokens[1:]]
    return tokens


def _is_tail(tokens: list[str]) -> bool:
    return all(re.fullmatch(r"[\d,-]+|N/A", token) for token in tokens)
