"""``nvidia-smi -q`` and ``nvidia-smi -q -x``: everything the driver tells of every GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from labkit.hardware.reports.base import Reader, Report, Table, show, word
from labkit.hardware.reports.smi_q_gpu import QueriedGPU, RawGPU, build
from labkit.hardware.reports.xml_events import events

_CARD = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s*")
_PAIR = re.compile(r"(\s*)([A-Za-z][^:]{0,70}?)\s*(?::\s(.*)|:)")
_SECTION = re.compile(r"(\s*)([A-Za-z][\w /.()-]{1,60})")
_DEEPEST = 12
# Sections inside sections, for reports that lost their indentation.
_PARENTS = {
    "pcie_generation": "pci.gpu_link_info",
    "link_width": "pci.gpu_link_info",
    "volatile": "ecc_errors",
    "double_bit": "ecc_errors.volatile",
    "aggregate": "ecc_errors",
}


@dataclass(frozen=True, kw_only=True, repr=False)
class SmiQuery(Report):
    """The long report. `from_xml`: it came as XML."""

    kind = "smi_q"
    title = "nvidia-smi -q"
    timestamp: str | None
    driver_version: str | None
    cuda_version: str | None
    attached_gpus: int | None
    gpus: tuple[QueriedGPU, ...]
    from_xml: bool

    def headline(self) -> str:
        way = f"{self.title} -x" if self.from_xml else self.title
        return f"{way}: driver {show(self.driver_version)}, CUDA {show(self.cuda_version)}, {len(self.gpus)} GPUs"

    def table(self) -> Table:
        head = ("GPU", "name", "PCIe now", "PCIe at most", "power W", "temperature C", "slowed down by")
        rows = []
        for i, gpu in enumerate(self.gpus):
            now = f"gen {show(gpu.pcie_generation)} x{show(gpu.pcie_width)}"
            most = f"gen {show(gpu.pcie_generation_max)} x{show(gpu.pcie_width_max)}"
            power = f"{show(gpu.power_W)} of {show(gpu.power_limit_W)}"
            cells = (i, gpu.name, now, most, power, gpu.temperature_C, gpu.clock_reasons)
            rows.append(tuple(map(show, cells)))
        return head, tuple(rows)


class _QueryReader(Reader):
    """What both spellings share: facts of the whole, and of each GPU, under paths such as ``pci.bus_id``."""

    kind = "smi_q"
    from_xml = False

    def __init__(self) -> None:
        super().__init__()
        self.head: dict[str, str] = {}
        self.cards: list[RawGPU] = []
        self.ended = False

    def _value(self, path: str, value: str, line: str) -> None:
        if not self.cards:
            self.head.setdefault(path, value)
            self.keep(path, line)
        else:
            self.cards[-1].add(path, value, line)

    def _card(self, bus: str, line: str) -> None:
        self.keep(f"gpu{len(self.cards)}", line)
        self.cards.append(RawGPU(bus))

    def finish(self) -> SmiQuery | None:
        if not self.cards:
            return None
        count = word(self.head.get("attached_gpus"))
        attached = int(count) if count and count.isdecimal() and len(count) < 6 else None
        gpus = []
        for i, raw in enumerate(self.cards):
            gpu, quotes = build(raw)
            gpus.append(gpu)
            self.quotes |= {f"gpu{i}.{key}": line for key, line in quotes.items()}
        return SmiQuery(
            timestamp=word(self.head.get("timestamp")),
            driver_version=_version(self.head, "driver_version", "kmd_version"),
            cuda_version=_version(self.head, "cuda_version", "cuda_umd_version"),
            attached_gpus=attached,
            gpus=tuple(gpus),
            from_xml=self.from_xml,
            cut=self._is_cut(attached),
            quotes=self.quotes,
        )

    def _is_cut(self, attached: int | None) -> bool:
        return attached is not None and attached != len(self.cards)


class SmiQueryReader(_QueryReader):
    """Indentation makes the path; the name of a section stands alone on its line."""

    def __init__(self) -> None:
        super().__init__()
        self.path: list[tuple[int, str]] = []
        self.flat = False

    @classmethod
    def starts(cls, line: str) -> bool:
        return "NVSMI LOG" in line or bool(_CARD.fullmatch(line.strip()))

    def take(self, line: str) -> bool:
        text = line.strip()
        if not text:
            return True
        if "NVSMI LOG" in text:
            self.keep("first", line)
            return not self.cards
        if card := _CARD.fullmatch(text):
            self.path = []
            self._card(card[1], line)
            return True
        if self.cards and not line[0].isspace():
            return self._flat_line(text, line)
        if pair := _PAIR.fullmatch(line):
            self._pair(len(pair[1].expandtabs()), _key(pair[2]), (pair[3] or "").strip(), line)
            return True
        if section := _SECTION.fullmatch(line):
            self._enter(len(section[1].expandtabs()), _key(section[2]))
            return True
        return False

    def _flat_line(self, text: str, line: str) -> bool:
        """A line of a report that lost its indentation: then the names of the sections must do."""
        if not self.cards[-1].values:
            self.flat = True
        if not self.flat:
            return False
        if pair := _PAIR.fullmatch(text):
            key, value = _key(pair[2]), (pair[3] or "").strip()
            self._value(key, value, line)
            if self.path:
                self._value(f"{self.path[-1][1]}.{key}", value, line)
        elif section := _SECTION.fullmatch(text):
            key = _key(section[2])
            self.path = [(0, f"{_PARENTS[key]}.{key}" if key in _PARENTS else key)]
        return True

    def _enter(self, indent: int, key: str) -> None:
        while self.path and self.path[-1][0] >= indent:
            self.path.pop()
        if len(self.path) < _DEEPEST:
            self.path.append((indent, key))

    def _pair(self, indent: int, key: str, value: str, line: str) -> None:
        # A line with a value may have children too: HW Slowdown has its causes below it.
        self._enter(indent, key)
        self._value(".".join(name for _, name in self.path), value, line)

    def _is_cut(self, attached: int | None) -> bool:
        # A whole report names the product first and the processes last; one of "-q -d POWER" names neither.
        last = self.cards[-1].values
        unfinished = "product_name" in last and not any("processes" in key for key in last)
        return super()._is_cut(attached) or not last or unfinished


class SmiXmlReader(_QueryReader):
    from_xml = True

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []

    @classmethod
    def starts(cls, line: str) -> bool:
        return "<nvidia_smi_log" in line or ("<gpu id=" in line and ":" in line)

    def take(self, line: str) -> bool:
        if self.ended:
            return False
        found = False
        for what, name, attributes, text in events(line):
            found = True
            self._event(what, name, attributes, text, line)
        return (
            found or not line.strip() or line.lstrip().startswith(("<?xml", "<!DOCTYPE")) or "<" not in line
        )

    def _event(self, what: str, name: str, attributes: dict[str, str], text: str, line: str) -> None:
        if what == "close":
            self._close(name)
            return
        if name == "nvidia_smi_log":
            self.keep("first", line)
            return
        if name == "gpu" and "id" in attributes:
            self.stack = []
            self._card(attributes["id"], line)
            return
        if len(self.stack) < _DEEPEST and what == "open":
            self.stack.append(name)
        if text:
            self._value(".".join(self.stack), text, line)

    def _close(self, name: str) -> None:
        self.ended |= name == "nvidia_smi_log"
        if name in self.stack:
            del self.stack[len(self.stack) - 1 - self.stack[::-1].index(name) :]

    def _is_cut(self, attached: int | None) -> bool:
        return super()._is_cut(attached) or not self.ended


def _key(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _version(head: dict[str, str], *names: str) -> str | None:
    """A version by its old or new name; the old one may only say that it is deprecated."""
    for value in _candidates(head, names):
        if value and re.fullmatch(r"\d[\d.]*", value):
            return value
    return None


def _candidates(head: dict[str, str], names: tuple[str, ...]) -> Iterator[str | None]:
    for name in names:
        yield word((head.get(name) or "").split(" ")[0])
