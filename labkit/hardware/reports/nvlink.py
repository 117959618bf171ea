"""``nvidia-smi nvlink -s``: the state of every NVLink of every GPU."""

from __future__ import annotations

import re
from dataclasses import dataclass

from labkit.hardware.reports.base import Reader, Report, Table, number

_CARD = re.compile(r"\s*GPU\s+(\d{1,3})\s*:\s*(.*?)\s*(?:\(UUID:\s*([^)]*)\)?)?\s*")
_LINK = re.compile(r"\s*Link\s+(\d{1,3})\s*:\s*(?:([\d.]+)\s*GB/s|(<?\s*in-?active\s*>?))\s*", re.IGNORECASE)
_NONE = re.compile(
    r"\s*(?:Unable to retrieve NVLink information|NVML: Unable to retrieve NVLink)", re.IGNORECASE
)


@dataclass(frozen=True)
class NVLinkPort:
    """One link: its rate in GB/s one way, None while it is inactive."""

    link: int
    GBps: float | None


@dataclass(frozen=True)
class LinkedGPU:
    """The links of one GPU; none at all when the driver could not be asked."""

    index: int
    name: str
    uuid: str | None
    links: tuple[NVLinkPort, ...]

    @property
    def active(self) -> int:
        return sum(port.GBps is not None for port in self.links)


@dataclass(frozen=True, kw_only=True, repr=False)
class NVLinkStatus(Report):
    """NVLinks, a GPU at a time; rates in GB/s one way, as the driver prints them."""

    kind = "nvlink_status"
    title = "nvidia-smi nvlink -s"
    gpus: tuple[LinkedGPU, ...]

    def headline(self) -> str:
        active = ", ".join(str(gpu.active) for gpu in self.gpus)
        return f"{self.title}: {len(self.gpus)} GPUs, active links {active}"

    def table(self) -> Table:
        rows = []
        for gpu in self.gpus:
            rates = sorted({port.GBps for port in gpu.links if port.GBps is not None})
            off = ", ".join(str(port.link) for port in gpu.links if port.GBps is None) or "none"
            rows.append(
                (f"GPU {gpu.index}", gpu.name, str(gpu.active), ", ".join(f"{r:g}" for r in rates), off)
            )
        return ("GPU", "name", "active links", "GB/s one way", "inactive"), tuple(rows)


class NVLinkReader(Reader):
    kind = "nvlink_status"

    def __init__(self) -> None:
        super().__init__()
        self.cards: list[tuple[int, str, str | None]] = []
        self.links: list[list[NVLinkPort]] = []
        self.silent: set[int] = set()

    @classmethod
    def starts(cls, line: str) -> bool:
        return "UUID:" in line and bool(_CARD.fullmatch(line))

    def take(self, line: str) -> bool:
        if not line.strip():
            return True
        if self.cards and (link := _LINK.fullmatch(line)):
            port = NVLinkPort(int(link[1]), number(link[2]))
            self.links[-1].append(port)
            card = self.cards[-1][0]
            self.keep(f"{card}.{port.link}" if port.GBps is None else f"{card}.active", line)
            return True
        if self.cards and _NONE.match(line):
            self.silent.add(len(self.cards) - 1)
            self.keep(f"{self.cards[-1][0]}.none", line)
            return True
        return self._card(line)

    def _card(self, line: str) -> bool:
        card = _CARD.fullmatch(line)
        if card is None or "UUID:" not in line or int(card[1]) in (known[0] for known in self.cards):
            return False
        self.cards.append((int(card[1]), card[2], card[3]))
        self.links.append([])
        self.keep(card[1], line)
        return True

    def names(self) -> tuple[str, ...]:
        """The cards listed, as ``nvidia-smi -L`` lists them too, without links."""
        return tuple(name for _, name, _ in self.cards)

    def finish(self) -> NVLinkStatus | None:
        if not any(self.links) and not self.silent:
            return None
        gpus = tuple(
            LinkedGPU(index, name, uuid, tuple(ports))
            for (index, name, uuid), ports in zip(self.cards, self.links, strict=True)
        )
        most = max(len(gpu.links) for gpu in gpus)
        short = any(len(gpu.links) < most and i not in self.silent for i, gpu in enumerate(gpus))
        return NVLinkStatus(gpus=gpus, cut=short, quotes=self.quotes)
