"""Number formats of training and inference: how far they reach, how finely they divide, and rounding to them.

A binary floating-point number is (-1)^s x 1.fraction x 2^exponent. The exponent's bits decide the range, the
fraction's bits the spacing: neighbours lie 2^-fraction of the number's own power of two apart. Below the smallest
normal number the spacing stops shrinking (subnormal numbers), and below half of the smallest one everything is
rounded to zero. Sources: IEEE 754-2019 (fp32, fp16); NVIDIA A100 whitepaper (tf32, bf16); Micikevicius et al., "FP8
Formats for Deep Learning", 2022 (fp8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabkitError
from labkit.hardware.records import Record


@dataclass(frozen=True)
class Format(Record):
    """One binary floating-point format; ``bits`` are what a value takes in memory.

    ``largest`` is the largest finite number; beyond it comes infinity or, where the format has none, NaN.
    """

    name: str
    bits: int
    exponent_bits: int
    fraction_bits: int
    largest: float
    has_infinity: bool = True
    note: str = ""

    @property
    def lowest_exponent(self) -> int:
        """That of the smallest normal number."""
        return 2 - 2 ** (self.exponent_bits - 1)

    @property
    def smallest_normal(self) -> float:
        """Below it the spacing stays what it is, and digits are lost."""
        return 2.0**self.lowest_exponent

    @property
    def smallest(self) -> float:
        """The smallest positive number; half of it and less becomes zero."""
        return 2.0 ** (self.lowest_exponent - self.fraction_bits)

    @property
    def epsilon(self) -> float:
        """From 1 to the next larger number."""
        return 2.0**-self.fraction_bits

    def spacing(self, value: float) -> float:
        """From ``value`` to its neighbour of larger magnitude, inside the format's range; from 0 it is `smallest`."""
        if not value:
            return self.smallest
        exponent = max(int(np.frexp(abs(value))[1]) - 1, self.lowest_exponent)
        return 2.0 ** (exponent - self.fraction_bits)

    def to_dict(self) -> dict[str, Any]:
        """All of the above, for tables and files."""
        more = ("smallest_normal", "smallest", "epsilon")
        return {**super().to_dict(), **{name: getattr(self, name) for name in more}}


FORMATS = {
    one.name: one
    for one in (
        Format("fp32", 32, 8, 23, float(np.finfo(np.float32).max)),
        Format(
            "tf32", 32, 8, 10, (2 - 2.0**-10) * 2.0**127, note="19 bits inside a Tensor Core, 32 in memory"
        ),
        Format("bf16", 16, 8, 7, (2 - 2.0**-7) * 2.0**127),
        Format("fp16", 16, 5, 10, 65504.0),
        Format("fp8_e5m2", 8, 5, 2, 57344.0),
        Format(
            "fp8_e4m3", 8, 4, 3, 448.0, has_infinity=False, note="one more power of two instead of infinity"
        ),
    )
}


def number_format(name: str) -> Format:
    """The format called ``name``; LabkitError when there is none."""
    if name not in FORMATS:
        raise LabkitError(f"There is no number format {name!r}: choose from {', '.join(FORMATS)}.")
    return FORMATS[name]


def rounded(values: Any, name: str) -> NDArray[np.float32]:
    """``values`` (any shape), each rounded to the nearest number of a format, ties to even; emulated, exact.

    Every number of these formats is a float32 as well, so float32 comes back. Too large a value becomes infinity, or
    NaN where the format has no infinity (libraries may stop at the largest number instead, as recent torch does).
    LabkitError for an unknown format.
    """
    form = number_format(name)
    with np.errstate(invalid="ignore", over="ignore"):
        exact = np.asarray(values, np.float64)
        exponent = np.maximum(np.frexp(exact)[1] - 1, form.lowest_exponent)
        step = np.ldexp(1.0, exponent - form.fraction_bits)
        near = np.rint(exact / step) * step
        beyond = np.copysign(np.inf, exact) if form.has_infinity else np.full_like(exact, np.nan)
        return np.where(np.abs(near) > form.largest, beyond, near).astype(np.float32)
