"""A square matrix product by hand and by a library: what a card could reach at best, and what a GPU here does reach.

Modelled times are rooflines (:mod:`labkit.compute.model`): peaks of the data sheet, dense, so a real library stays
below them. cuBLAS is what torch calls on an NVIDIA GPU.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from labkit.compute.model import ModelledTime, modelled_time
from labkit.errors import LabkitError
from labkit.hardware.catalog import gpu as catalogued
from labkit.hardware.records import Record

# what multiplies -> (precision of the catalogue, bytes of an operand, bytes of a result)
LIBRARY = {
    "library, fp32 lanes": ("fp32", 4, 4),
    "library, tf32 Tensor Cores": ("tf32", 4, 4),
    "library, fp16 Tensor Cores": ("fp16_tensor", 2, 2),
    "library, fp8 Tensor Cores": ("fp8", 1, 2),
    "library, int8 Tensor Cores": ("int8", 1, 4),
}
BY_HAND = "tiled kernel, fp32 lanes"
_TILE = 16  # side of the tiles of labkit.compute.kernels.matmul.matmul_tiled


@dataclass(frozen=True)
class Product(Record):
    """One way to multiply two n x n matrices on one card. ``how`` is ``"modelled"`` or ``"measured"``; ``bound`` is
    what limits a modelled one."""

    name: str
    card: str
    n: int
    seconds: float
    how: str
    bound: str

    @property
    def flops_per_s(self) -> float:
        """2 n^3 operations over the time."""
        return 2 * self.n**3 / self.seconds

    def __repr__(self) -> str:
        limit = f", bound by {self.bound}" if self.bound else ""
        return f"{self.name} on {self.card}: {self.flops_per_s / 1e12:.1f} T operations/s ({self.how}{limit})"


def tiled_bytes(n: int) -> int:
    """Bytes that ``matmul_tiled`` fetches and stores for an n x n product, n a multiple of its tile."""
    return 4 * (2 * n**3 // _TILE + n**2)


def modelled(card: str, n: int) -> list[Product]:
    """The tiled kernel and a library in every precision that a catalogued card has; LabkitError for other cards."""
    found = catalogued(card)
    ways = [(BY_HAND, "fp32", float(tiled_bytes(n)))]
    for name, (precision, operand, result) in LIBRARY.items():
        ways.append((name, precision, float((2 * operand + result) * n**2)))
    return [
        _product(name, found.name, n, modelled_time(2 * n**3, size, found, precision))
        for name, precision, size in ways
        if _has(found, precision)
    ]


def _has(card: Any, precision: str) -> bool:
    try:
        card.peak_flops(precision)
    except LabkitError:
        return False
    return True


def _product(name: str, card: str, n: int, time_: ModelledTime) -> Product:
    return Product(name, card, n, time_.seconds, "modelled", time_.bound)


def measured_on_gpu(n: int = 4096, repeats: int = 10) -> list[Product]:
    """torch.matmul on the first CUDA GPU in fp32, tf32, fp16 and bf16: the best of some repeats; [] without one."""
    import torch

    if not torch.cuda.is_available():
        return []
    card = torch.cuda.get_device_name(0)
    before = torch.backends.cuda.matmul.allow_tf32
    found = []
    try:
        for name, dtype, tf32 in (
            ("fp32", torch.float32, False),
            ("tf32", torch.float32, True),
            ("fp16", torch.float16, False),
            ("bf16", torch.bfloat16, False),
        ):
            torch.backends.cuda.matmul.allow_tf32 = tf32
            a, b = (torch.randn(n, n, device="cuda", dtype=dtype) for _ in range(2))
            seconds = min(_timed(torch, a, b) for _ in range(repeats + 1))
            found.append(Product(f"library, {name}", card, n, seconds, "measured", ""))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    return found


def _timed(torch: Any, a: Any, b: Any) -> float:
    torch.cuda.synchronize()
    begin = time.perf_counter()
    torch.matmul(a, b)
    torch.cuda.synchronize()
    return time.perf_counter() - begin
