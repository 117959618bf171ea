"""The two numbers by which processors can be compared: operations a second and bytes a second.

``python -m labkit.compute.rates`` measures them in a process of its own, so that the notebook's kernel keeps
neither the matrices nor the threads.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from labkit.compute import child
from labkit.compute.scaling import cores
from labkit.hardware.catalog import gpu

MATRIX = 1024
COPY_BYTES = 128 * 2**20  # far more than most caches hold
ENOUGH_S = 0.3  # keep the fastest run of this many seconds: other programs only ever add time


@dataclass(frozen=True)
class Rates:
    """What one processor, all of it, does in a second.

    ``flops`` float32 operations a second, ``bytes_per_s`` to and from its own memory; ``how`` is
    ``"measured"``, which is less than any peak, or ``"data sheet"``, a peak that no program reaches.
    """

    name: str
    how: str
    flops: float
    bytes_per_s: float
    source: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


# 64 cores x 2.25 GHz x 32 operations (two 8-lane multiply-adds a cycle); eight channels of DDR4-3200.
SERVER_2020 = Rates(
    "64-core server CPU (2020)", "data sheet", 64 * 2.25e9 * 32, 204.8e9, "AMD EPYC 7742; JEDEC JESD79-4"
)


def catalogued(name: str) -> Rates:
    """The peaks of a card of the catalogue, without Tensor Cores: fp32 lanes against fp32 lanes."""
    card = gpu(name)
    return Rates(
        card.name, "data sheet", card.peak_flops("fp32"), card.memory_bandwidth_bytes_per_s, card.source
    )


def measure(limit_s: float = child.LIMIT_S) -> Rates:
    """Measure this machine's CPU, all cores: a float32 matrix product of NumPy, the copy of a large array."""
    found = child.ask("labkit.compute.rates", None, limit_s)
    how = f"matrix product and copy by NumPy, {found['cores']} cores"
    return Rates("this machine's CPU", "measured", found["flops"], found["bytes_per_s"], how)


def _matrix_flops() -> float:
    left = np.random.default_rng(0).random((MATRIX, MATRIX), np.float32)
    out = np.empty_like(left)
    return 2 * MATRIX**3 / _fastest(lambda: np.matmul(left, left, out=out))


def _copy_bytes_per_s(threads: int) -> float:
    """Bytes read plus bytes written by a copy shared by all cores; NumPy copies without the GIL."""
    source = np.ones(COPY_BYTES // 4, np.float32)
    target = np.zeros_like(source)
    parts = list(zip(np.array_split(target, threads), np.array_split(source, threads), strict=True))
    with ThreadPoolExecutor(threads) as pool:
        seconds = _fastest(lambda: list(pool.map(lambda part: np.copyto(*part), parts)))
    return 2 * source.nbytes / seconds


def _fastest(action: Callable[[], object]) -> float:
    times: list[float] = []
    while len(times) < 3 or sum(times) < ENOUGH_S:
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)


if __name__ == "__main__":
    print(json.dumps({"flops": _matrix_flops(), "bytes_per_s": _copy_bytes_per_s(cores()), "cores": cores()}))
