"""Grids, blocks and the chunks of whole blocks that run in lockstep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from labkit.compute.emulator.affine import Affine

Dim3 = tuple[int, int, int]  # x, y, z, as CUDA writes them

# Lanes that run together: large enough that NumPy's cost per call vanishes, small enough to stay in cache.
LANES_PER_CHUNK = 16384
WARP_SIZE = 32


@dataclass(frozen=True)
class Launch:
    """The shape of a launch: blocks in the grid and threads in a block."""

    grid: Dim3
    block: Dim3

    @property
    def threads_per_block(self) -> int:
        return prod(self.block)

    @property
    def blocks(self) -> int:
        return prod(self.grid)


class Chunk:
    """A box of whole blocks. Its lanes are in C order of (block z, y, x, thread z, y, x): warps are contiguous."""

    def __init__(self, launch: Launch, origin: Dim3, extent: Dim3):
        self.launch = launch
        self.origin = origin
        self.extent = extent
        self.shape = (*reversed(extent), *reversed(launch.block))
        self.blocks = prod(extent)
        self.lanes = self.blocks * launch.threads_per_block

    def _along(self, *terms: tuple[int, int], base: int = 0) -> Affine | np.int64:
        strides = [0] * 6
        for axis, stride in terms:
            strides[axis] = stride if self.shape[axis] > 1 else 0
        return Affine(base, tuple(strides), self.shape) if any(strides) else np.int64(base)

    @cached_property
    def thread(self) -> tuple[Affine | np.int64, ...]:
        """threadIdx.x, .y, .z over the lanes."""
        return tuple(self._along((5 - k, 1)) for k in range(3))

    @cached_property
    def block(self) -> tuple[Affine | np.int64, ...]:
        """blockIdx.x, .y, .z over the lanes."""
        return tuple(self._along((2 - k, 1), base=self.origin[k]) for k in range(3))

    @cached_property
    def grid(self) -> tuple[Affine | np.int64, ...]:
        """cuda.grid(3) over the lanes: block index times block size plus thread index."""
        size = self.launch.block
        return tuple(
            self._along((2 - k, size[k]), (5 - k, 1), base=self.origin[k] * size[k]) for k in range(3)
        )

    @cached_property
    def block_slot(self) -> Affine | np.int64:
        """Which block of the chunk a lane belongs to, 0..blocks-1."""
        x, y, _ = self.extent
        return self._along((0, x * y), (1, x), (2, 1))

    @cached_property
    def lane(self) -> Affine | np.int64:
        """The number of the lane within the chunk."""
        strides = [prod(self.shape[k + 1 :]) for k in range(6)]
        return self._along(*enumerate(strides))

    @cached_property
    def lane_in_block(self) -> Affine | np.int64:
        """The linear thread index within the block, x fastest: its warp is this divided by 32."""
        x, y, _ = self.launch.block
        return self._along((3, x * y), (4, x), (5, 1))

    def locate(self, lane: int) -> tuple[Dim3, Dim3]:
        """The block and the thread, as (x, y, z), of a lane of this chunk."""
        bz, by, bx, tz, ty, tx = (int(k) for k in np.unravel_index(lane, self.shape))
        x, y, z = self.origin
        return (x + bx, y + by, z + bz), (tx, ty, tz)


def chunks(launch: Launch, lanes: int = LANES_PER_CHUNK) -> Iterator[Chunk]:
    """Cut the grid into boxes of whole blocks in launch order, each of about ``lanes`` lanes (at least one block)."""
    budget = max(1, lanes // launch.threads_per_block)
    gx, gy, gz = launch.grid
    nx = min(gx, budget)
    ny = min(gy, budget // nx) if nx == gx else 1
    nz = min(gz, budget // (nx * ny)) if ny == gy and nx == gx else 1
    for z in range(0, gz, nz):
        for y in range(0, gy, ny):
            for x in range(0, gx, nx):
                extent = (min(nx, gx - x), min(ny, gy - y), min(nz, gz - z))
                yield Chunk(launch, (x, y, z), extent)
