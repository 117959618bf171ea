"""Arithmetic rates of other precisions than float32, as multiples of a multiprocessor's float32 rate."""

from __future__ import annotations

# (float16, float64) operations a clock of one multiprocessor, divided by its float32 operations a clock, on ordinary
# cores. Source: CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions".
RATES: dict[str, tuple[float, float]] = {
    "6.0": (2, 1 / 2),
    "7.0": (2, 1 / 2),
    "7.5": (2, 1 / 32),
    "8.0": (4, 1 / 2),
    "8.6": (1, 1 / 64),
    "8.9": (1, 1 / 64),
    "9.0": (2, 1 / 2),
    "10.0": (2, 1 / 2),
    "12.0": (1, 1 / 64),
}
# For chips that the table does not have, no worse than what every recent one does.
UNKNOWN = (1.0, 1 / 64)


def as_float32(flops_fp16: int, flops_fp32: int, flops_fp64: int, capability: str) -> float:
    """How many float32 operations take as long as these."""
    half, double = RATES.get(capability, UNKNOWN)
    return flops_fp16 / half + flops_fp32 + flops_fp64 / double
