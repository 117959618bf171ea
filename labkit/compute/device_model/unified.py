"""Unified memory: one address for both sides, and pages that move to whichever side touches them.

The counts are exact for the rules stated here; the times are modelled. A page lives on the host or on the device. A
touch from the other side is a page fault: the toucher stops, the driver moves the page, and with it those of its
``group`` of neighbours (pages 0 to 7, 8 to 15, ...) that the same touch wants. Prefetching moves all pages at
once, without a fault.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from itertools import groupby

from labkit.compute.device_model.moves import host_copy
from labkit.errors import LabkitError
from labkit.hardware.catalog import gpu
from labkit.hardware.html import facts_table
from labkit.hardware.records import GPU, Record
from labkit.hardware.units import parse, show_bytes, show_time

PAGE = 64 * 2**10
FAULT_S = 30e-6
"""Seconds from a fault until the page can be used, besides moving its bytes. Assumed: the order of magnitude, tens of
microseconds, of faults on cards behind PCIe."""
GROUP = 8
SIDES = ("host", "device")


@dataclass(frozen=True, repr=False)
class Touch(Record):
    """What one touch or prefetch cost: faults and bytes exact by the rules above, ``seconds`` modelled on ``on``.

    ``evicted`` counts pages that had to leave the device to make room.
    """

    what: str
    faults: int
    pages: int
    evicted: int
    bytes: int
    seconds: float
    on: str

    def __repr__(self) -> str:
        faults = f"{self.faults} fault{'' if self.faults == 1 else 's'}"
        return f"Touch({self.what}: {faults}, {show_bytes(self.bytes)} moved, {show_time(self.seconds)} modelled)"

    def _repr_html_(self) -> str:
        facts = {"faults": self.faults, "pages moved": self.pages, "pages evicted": self.evicted}
        moved = {
            "bytes moved": show_bytes(self.bytes),
            "time": f"{show_time(self.seconds)}, modelled on {self.on}",
        }
        return facts_table({**facts, **moved}, self.what)


class Managed:
    """One array in unified memory, at first on the host. Made by :func:`managed`."""

    def __init__(self, size: int, card: GPU, page: int, group: int, room: int):
        self.size, self.card, self.page, self.group = size, card, page, group
        self._room = max(1, room // page)  # pages that fit on the device
        self._resident: OrderedDict[int, None] = (
            OrderedDict()
        )  # pages on the device, least recently used first
        self._link = host_copy(card)

    def __repr__(self) -> str:
        return f"Managed({show_bytes(self.size)}, pages of {show_bytes(self.page)}, {self.card.id})"

    @property
    def pages(self) -> int:
        return -(-self.size // self.page)

    def touch(
        self, side: str, start: float | str = 0, size: float | str | None = None, step: int = 1
    ) -> Touch:
        """``side`` (``"host"`` or ``"device"``) reads or writes ``size`` bytes from ``start``, page after page; with
        ``step`` only every so many pages."""
        wanted = self._pages(side, start, size, step)
        faults = moved = evicted = 0
        for _, near in groupby(wanted, key=lambda page: page // self.group):
            pages = list(near)
            absent = sum((page in self._resident) != (side == "device") for page in pages)
            faults += bool(absent)
            moved += absent
            evicted += self._use(pages, side)
        return self._cost(f"{side} touches {len(wanted)} pages", faults, moved, evicted, faults * FAULT_S)

    def prefetch(self, side: str) -> Touch:
        """Move everything to ``side`` in one go, before it is touched."""
        wanted = self._pages(side, 0, None, 1)
        absent = [page for page in wanted if (page in self._resident) != (side == "device")]
        evicted = self._use(absent, side)
        start = self._link.alpha_s if absent else 0.0
        return self._cost(f"prefetch to the {side}", 0, len(absent), evicted, start)

    def _pages(self, side: str, start: float | str, size: float | str | None, step: int) -> list[int]:
        if side not in SIDES:
            raise LabkitError(f"{side!r} touches no memory here: it is 'host' or 'device'.")
        first = int(parse(start, "size"))
        count = self.size - first if size is None else int(parse(size, "size"))
        if first + count > self.size or count <= 0 or step < 1:
            raise LabkitError(
                f"The array has {show_bytes(self.size)}: touch bytes within it, by steps of 1 or more."
            )
        return list(range(first // self.page, (first + count - 1) // self.page + 1, step))

    def _use(self, pages: list[int], side: str) -> int:
        """Have these pages on ``side``, as the most recently used; returns how many others had to leave."""
        evicted = 0
        for page in pages:
            self._resident.pop(page, None)
            if side == "device":
                self._resident[page] = None
                if len(self._resident) > self._room:
                    self._resident.popitem(last=False)
                    evicted += 1
        return evicted

    def _cost(self, what: str, faults: int, moved: int, evicted: int, waits: float) -> Touch:
        count = (moved + evicted) * self.page
        return Touch(
            what, faults, moved, evicted, count, waits + count / self._link.bytes_per_s, self.card.id
        )


def managed(
    size: float | str,
    card: str | GPU = "A100",
    page: float | str = PAGE,
    group: int = GROUP,
    device_memory: float | str | None = None,
) -> Managed:
    """An array in unified memory of a modelled card.

    Parameters
    ----------
    size, page : float or str
        Bytes, or ``"64MiB"``.
    group : int
        Neighbouring pages, one or more, of which one fault brings all that are wanted.
    device_memory : optional
        Room on the device; by default all of the card's. With less than ``size``, pages leave again, the least
        recently used first.

    Raises
    ------
    LabkitError
        For a card that is not in the catalogue, and sizes that hold no page.
    """
    known, count, each = gpu(card), int(parse(size, "size")), int(parse(page, "size"))
    if count < 1 or each < 1 or group < 1:
        raise LabkitError(
            "Unified memory needs at least one byte, pages of at least one, and a group of one or more."
        )
    room = int(known.memory_GB * 1e9 if device_memory is None else parse(device_memory, "size"))
    return Managed(count, known, each, group, room)
