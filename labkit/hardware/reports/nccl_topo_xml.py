"""The topology that NCCL detects, as ``NCCL_TOPO_DUMP_FILE`` writes it: a tree of CPUs, PCIe bridges, GPUs, NICs."""

from __future__ import annotations

from dataclasses import dataclass

from labkit.hardware.reports.base import Reader, Report, Table, number, show, whole
from labkit.hardware.reports.xml_events import events

_DEEPEST = 64


@dataclass(frozen=True)
class XmlGPU:
    """A GPU: its CPU's NUMA node, the PCIe bridges above it (outermost first), its own slot, its NVLinks."""

    dev: int | None
    rank: int | None
    sm: int | None
    bus_id: str | None
    numa: str | None
    bridges: tuple[str, ...]
    link_speed: str | None
    link_width: int | None
    nvlinks: int
    gdr: bool | None


@dataclass(frozen=True)
class XmlNIC:
    """A network port; `speed_Gbps` in Gbit/s."""

    name: str
    dev: int | None
    port: int | None
    speed_Gbps: float | None
    bus_id: str | None
    numa: str | None
    bridges: tuple[str, ...]
    link_speed: str | None
    link_width: int | None
    gdr: bool | None


@dataclass(frozen=True, kw_only=True, repr=False)
class NcclTopology(Report):
    """GPUs and NICs with their place in the machine."""

    kind = "nccl_topo_xml"
    title = "NCCL topology"
    version: str | None
    cpus: tuple[dict[str, str], ...]
    gpus: tuple[XmlGPU, ...]
    nics: tuple[XmlNIC, ...]

    def headline(self) -> str:
        return f"{self.title}: {len(self.cpus)} CPUs, {len(self.gpus)} GPUs, {len(self.nics)} network ports"

    def table(self) -> Table:
        head = ("device", "bus", "NUMA node", "PCIe", "NVLinks", "network Gbit/s")
        rows = []
        for gpu in self.gpus:
            slot = f"x{show(gpu.link_width)} at {show(gpu.link_speed)}"
            rows.append(
                (f"GPU {show(gpu.dev)}", show(gpu.bus_id), show(gpu.numa), slot, str(gpu.nvlinks), "")
            )
        for nic in self.nics:
            slot = f"x{show(nic.link_width)} at {show(nic.link_speed)}"
            rows.append((nic.name, show(nic.bus_id), show(nic.numa), slot, "", show(nic.speed_Gbps)))
        return head, tuple(rows)

    def distance(self, gpu: XmlGPU, nic: XmlNIC) -> str:
        """How near they are, in nvidia-smi's words: PIX, PXB (bridges only), NODE (one CPU), SYS."""
        shared = [bridge for bridge in gpu.bridges if bridge in nic.bridges]
        if shared:
            return "PIX" if shared[-1] == gpu.bridges[-1] == nic.bridges[-1] else "PXB"
        return "NODE" if gpu.numa is not None and gpu.numa == nic.numa else "SYS"


_Place = tuple[str | None, tuple[str, ...], dict[str, str]]


@dataclass
class _DraftGPU:
    attributes: dict[str, str]
    place: _Place
    nvlinks: int = 0


class NcclTopoReader(Reader):
    kind = "nccl_topo_xml"

    def __init__(self) -> None:
        super().__init__()
        self.version: str | None = None
        self.cpus: list[dict[str, str]] = []
        self.gpus: list[_DraftGPU] = []
        self.nics: list[XmlNIC] = []
        self.stack: list[tuple[str, dict[str, str]]] = []
        self.ended = False

    @classmethod
    def starts(cls, line: str) -> bool:
        return "<system" in line or "<cpu " in line

    def take(self, line: str) -> bool:
        if self.ended:
            return False
        found = False
        for what, name, attributes, _ in events(line):
            found = True
            if what == "close":
                self._close(name)
            else:
                self._open(name, attributes, line)
                if what == "open" and len(self.stack) < _DEEPEST:
                    self.stack.append((name, attributes))
        return found or "<" not in line or line.lstrip().startswith("<?xml")

    def _close(self, name: str) -> None:
        names = [entry[0] for entry in self.stack]
        if name in names:
            del self.stack[len(names) - 1 - names[::-1].index(name) :]
        self.ended |= name == "system"

    def _open(self, name: str, attributes: dict[str, str], line: str) -> None:
        if name == "system":
            self.version = attributes.get("version")
            self.keep("first", line)
        elif name == "cpu":
            self.cpus.append(attributes)
        elif name == "pci":
            self.keep(f"pci {attributes.get('busid')}", line)
        elif name == "gpu":
            self.gpus.append(_DraftGPU(attributes, self._place()))
            self.keep(f"gpu{len(self.gpus) - 1}", line)
        elif name == "nvlink" and self.gpus:
            self.gpus[-1].nvlinks += whole(attributes.get("count")) or 0
        elif name == "net":
            self._nic(attributes, line)

    def _place(self) -> _Place:
        """The CPU's NUMA node, the bridges from it downwards, and the device's own slot."""
        numa = next((entry.get("numaid") for name, entry in reversed(self.stack) if name == "cpu"), None)
        slots = [entry for name, entry in self.stack if name == "pci"]
        bridges = tuple(entry.get("busid", "?") for entry in slots[:-1])
        return numa, bridges, slots[-1] if slots else {}

    def _nic(self, attributes: dict[str, str], line: str) -> None:
        numa, bridges, slot = self._place()
        speed = number(attributes.get("speed"))
        self.keep(f"nic{len(self.nics)}", line)
        self.nics.append(
            XmlNIC(
                name=attributes.get("name", "?"),
                dev=whole(attributes.get("dev")),
                port=whole(attributes.get("port")),
                speed_Gbps=None if speed is None else speed / 1000,
                bus_id=slot.get("busid"),
                numa=numa,
                bridges=bridges,
                link_speed=slot.get("link_speed"),
                link_width=whole(slot.get("link_width")),
                gdr=_yes(attributes.get("gdr")),
            )
        )

    def finish(self) -> NcclTopology | None:
        if not self.gpus and not self.nics:
            return None
        return NcclTopology(
            version=self.version,
            cpus=tuple(self.cpus),
            gpus=tuple(map(_gpu, self.gpus)),
            nics=tuple(self.nics),
            cut=not self.ended or self.version is None,
            quotes=self.quotes,
        )


def _gpu(draft: _DraftGPU) -> XmlGPU:
    numa, bridges, slot = draft.place
    text = draft.attributes
    return XmlGPU(
        dev=whole(text.get("dev")),
        rank=whole(text.get("rank")),
        sm=whole(text.get("sm")),
        bus_id=slot.get("busid"),
        numa=numa,
        bridges=bridges,
        link_speed=slot.get("link_speed"),
        link_width=whole(slot.get("link_width")),
        nvlinks=draft.nvlinks,
        gdr=_yes(text.get("gdr")),
    )


def _yes(text: str | None) -> bool | None:
    return {"1": True, "0": False}.get(text or "")
