"""The memory instructions of one warp, lane by lane: which lane wants which bytes, and what that costs.

One block is run, and the arrays are put back afterwards: a trace looks, and leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from labkit.compute.emulator.arguments import leaves
from labkit.compute.emulator.geometry import WARP_SIZE, Chunk, Dim3, Launch
from labkit.compute.emulator.group import Group
from labkit.compute.emulator.inspection import as_configured
from labkit.compute.emulator.kernel import Configured
from labkit.compute.emulator.memory import Array, per_lane
from labkit.compute.emulator.observers import Observer, observed
from labkit.compute.emulator.program import Site
from labkit.compute.emulator.source import Source
from labkit.compute.emulator.traffic import BANK_BYTES, BANKS, SECTOR_BYTES, lanes_together
from labkit.compute.emulator.warp import warps_of
from labkit.errors import LabkitError

MOST = 64  # instructions that are kept: a slider with more is not read


@dataclass(frozen=True)
class WarpAccess:
    """One memory instruction of one warp: emulated, exact.

    Attributes
    ----------
    kind : str
        ``"read"``, ``"write"`` or ``"atomic"``.
    array, space : str
        The array's name in the kernel, and the memory it is in: ``"global"``, ``"constant"`` or ``"shared"``.
    line : int
        The line in the learner's cell or file.
    lanes : tuple of int
        The active lanes, 0 to 31.
    addresses : tuple of int
        The first byte that each of them wants, counted from the start of the array (of the block's own in shared
        memory).
    item_bytes, origin : int
        Size of an element, and where the array starts in its sector.
    """

    kind: str
    array: str
    space: str
    line: int
    lanes: tuple[int, ...]
    addresses: tuple[int, ...]
    item_bytes: int
    origin: int = 0

    @cached_property
    def sectors(self) -> tuple[int, ...]:
        """The 32-byte sectors touched, in order, numbered from the one in which the array starts."""
        spans = [self.bytes_of(k, SECTOR_BYTES) for k in range(len(self.lanes))]
        return tuple(sorted({n for span in spans for n in span}))

    @cached_property
    def passes(self) -> int:
        """How many passes shared memory needs: 1 without conflicts."""
        return sum(max(map(len, part.values())) for part in self.banks)

    @property
    def banks(self) -> tuple[dict[int, tuple[int, ...]], ...]:
        """For each part of the warp that is served together: bank -> the different 4-byte words wanted from it."""
        together = lanes_together(self.item_bytes)
        parts: dict[int, dict[int, set[int]]] = {}
        for k, lane in enumerate(self.lanes):
            for word in self.bytes_of(k, BANK_BYTES):
                parts.setdefault(lane // together, {}).setdefault(word % BANKS, set()).add(word)
        return tuple({b: tuple(sorted(w)) for b, w in sorted(p.items())} for _, p in sorted(parts.items()))

    def bytes_of(self, position: int, unit: int) -> range:
        """The sectors (unit 32) or words (unit 4) that the lane at ``position`` wants."""
        first = self.addresses[position] + (self.origin if unit == SECTOR_BYTES else 0)
        return range(first // unit, (first + self.item_bytes - 1) // unit + 1)

    @property
    def headline(self) -> str:
        """What the instruction costs, in words."""
        who = f"line {self.line}: {self.kind} of {self.space} '{self.array}', {len(self.lanes)} lanes"
        if self.space == "shared":
            return f"{who}, {self.passes} pass{'es' if self.passes > 1 else ''}"
        wanted = len(set(self.addresses)) * self.item_bytes
        fetched = len(self.sectors) * SECTOR_BYTES
        unit = "sector" if len(self.sectors) == 1 else "sectors"
        return f"{who}, {len(self.sectors)} {unit}: {wanted} of {fetched} bytes are wanted"


@dataclass(frozen=True)
class WarpTrace:
    """The memory instructions of one warp, in the order in which it ran them; ``left_out`` were not kept."""

    kernel: str
    block: Dim3
    warp: int
    accesses: tuple[WarpAccess, ...]
    left_out: int = 0

    def __repr__(self) -> str:
        more = [f"... and {self.left_out:,} more"] if self.left_out else []
        head = f"{self.kernel}, block {self.block}, warp {self.warp} (emulated, exact)"
        return "\n  ".join([head, *(one.headline for one in self.accesses), *more])

    def to_dict(self) -> dict[str, Any]:
        return {"provenance": "emulated", **asdict(self)}


def trace(
    launch: Any, *arguments: Any, line: int | str | None = None, block: Dim3 | int = 0, warp: int = 0
) -> WarpTrace:
    """Run one block of ``kernel[grid, block]`` and keep what one of its warps asked of global and shared memory.

    Local arrays are left out: the hardware lays them out so that the lanes of a warp never meet.

    Parameters
    ----------
    line : int or str, optional
        Keep the instructions of this line only: its number, or words that are in it, such as ``"out[x, y]"``.
    block : int or (x, y, z)
        Which block; ``warp`` is counted within it.

    Raises
    ------
    LabkitError
        For a launch that is none, a block or warp that it does not have, a line that touches no memory.
    """
    configured = as_configured(launch)
    where = _block(block, configured.shape)
    _check_warp(warp, configured.shape)
    recorder = _Recorder(where, warp, _lines(line, configured.kernel.source))
    with _put_back(configured, arguments):
        observed(
            configured.kernel,
            configured.shape,
            arguments,
            [recorder],
            sharedmem=configured.sharedmem,
            pieces=[Chunk(configured.shape, where, (1, 1, 1))],
        )
    if not recorder.count:
        raise LabkitError(
            f"Warp {warp} of block {where} touches no memory{f' in line {line!r}' if line else ''}; "
            f"lines of '{configured.kernel.source.name}' that do: {_listed(recorder.lines)}."
        )
    left_out = recorder.count - len(recorder.accesses)
    return WarpTrace(configured.kernel.source.name, where, warp, tuple(recorder.accesses), left_out)


class _Recorder(Observer):
    """Keeps the accesses of one warp of one block."""

    def __init__(self, block: Dim3, warp: int, wanted: set[int] | None):
        self.block_wanted, self.warp, self.wanted = block, warp, wanted
        self.accesses: list[WarpAccess] = []
        self.count = 0
        self.lines: set[int] = set()

    def begin(self, sites: list[Site], shape: Launch) -> None:
        self.sites = sites
        self.warps_per_block = -(-shape.threads_per_block // WARP_SIZE)

    def access(self, kind: str, array: Array, offset: Any, group: Group, site: int, value: Any) -> None:
        warps = warps_of(group)
        number = self._slot(group.chunk) * self.warps_per_block + self.warp
        ours = np.flatnonzero(warps.warp == number)
        if not len(ours) or array.space == "local":
            return
        place = self.sites[site]
        self.lines.add(place.line)
        if self.wanted is not None and place.line not in self.wanted:
            return
        self.count += 1
        if len(self.accesses) < MOST:
            offsets = per_lane(offset, group.n)[ours] % (array.copy_size or array.flat.size)
            self.accesses.append(
                WarpAccess(
                    kind,
                    place.operand,
                    array.space,
                    place.line,
                    tuple(warps.lane[ours].tolist()),
                    tuple((offsets * array.flat.strides[0]).tolist()),
                    array.flat.itemsize,
                    array.origin % SECTOR_BYTES,
                )
            )

    def _slot(self, chunk: Chunk) -> int:
        """The wanted block's number within a chunk, usually that block alone."""
        x, y, z = (w - o for w, o in zip(self.block_wanted, chunk.origin, strict=True))
        inside = all(0 <= k < n for k, n in zip((x, y, z), chunk.extent, strict=True))
        return (z * chunk.extent[1] + y) * chunk.extent[0] + x if inside else -self.warps_per_block


@contextmanager
def _put_back(configured: Configured, arguments: tuple) -> Iterator[None]:
    """Restore every array argument when the body is done."""
    given = configured.kernel.classify(arguments)
    arrays = [leaf for one in given for _, leaf in leaves(one.value, ()) if isinstance(leaf, np.ndarray)]
    before = [array.copy() for array in arrays]
    try:
        yield
    finally:
        for array, old in zip(arrays, before, strict=True):
            if array.flags.writeable:
                array[...] = old


def _block(block: Dim3 | int, shape: Launch) -> Dim3:
    x, y, z = shape.grid
    if isinstance(block, int) and 0 <= block < shape.blocks:
        return block % x, block // x % y, block // (x * y)
    whole = (*block, 0, 0)[:3] if isinstance(block, tuple) else ()
    if len(whole) == 3 and all(
        isinstance(k, int) and 0 <= k < n for k, n in zip(whole, shape.grid, strict=True)
    ):
        return whole[0], whole[1], whole[2]
    raise LabkitError(
        f"The launch has {shape.blocks} block(s), {x} x {y} x {z}; there is no block {block!r}."
    )


def _check_warp(warp: int, shape: Launch) -> None:
    count = -(-shape.threads_per_block // WARP_SIZE)
    if not isinstance(warp, int) or not 0 <= warp < count:
        raise LabkitError(
            f"A block of {shape.threads_per_block} threads has warps 0 to {count - 1}, not {warp!r}."
        )


def _lines(line: int | str | None, source: Source) -> set[int] | None:
    """The lines that are meant: all (None), one by its number, or those that contain some words."""
    if not isinstance(line, str):
        return None if line is None else {line}
    return {source.first_line + k for k, text in enumerate(source.text.splitlines()) if line in text}


def _listed(lines: set[int]) -> str:
    return ", ".join(map(str, sorted(lines))) or "none"
