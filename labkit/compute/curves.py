"""Time against size, for whoever does the work, and the size at which one overtakes the other."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from labkit.errors import LabkitError

HOW = ("measured", "emulated", "modelled")


@dataclass(frozen=True)
class Curve:
    """Seconds for each of a rising series of sizes.

    ``how`` is ``"measured"``, ``"emulated"`` or ``"modelled"``; ``on`` names the machine or the model.
    """

    label: str
    how: str
    on: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.how not in HOW:
            raise LabkitError(f"A curve is {', '.join(HOW[:-1])} or {HOW[-1]}, not {self.how!r}.")
        if len(self.sizes) != len(self.seconds) or not self.sizes:
            raise LabkitError(f"{len(self.sizes)} sizes and {len(self.seconds)} times do not make a curve.")
        if any(after <= before for before, after in zip(self.sizes, self.sizes[1:], strict=False)):
            raise LabkitError("The sizes of a curve must rise.")

    @property
    def name(self) -> str:
        return f"{self.label} ({self.how})"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def crossing(old: Curve, new: Curve) -> float | None:
    """Return the size from which ``new`` is faster than ``old`` up to the largest size both know.

    Between two sizes both curves are taken as straight lines in the log-log plane. None when ``new`` is still
    not faster at the largest size; the smallest size when it is faster everywhere.
    """
    if old.sizes != new.sizes:
        raise LabkitError("Two curves can only cross when they have the same sizes.")
    gaps = [math.log(b / a) for a, b in zip(old.seconds, new.seconds, strict=True)]
    if gaps[-1] >= 0:
        return None
    for index in range(len(gaps) - 1, 0, -1):
        if gaps[index - 1] >= 0:
            share = gaps[index - 1] / (gaps[index - 1] - gaps[index])
            lower, upper = old.sizes[index - 1], old.sizes[index]
            return float(lower * (upper / lower) ** share)
    return float(old.sizes[0])
