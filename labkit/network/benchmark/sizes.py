"""Which sizes a benchmark runs over."""

from __future__ import annotations

from labkit.errors import LabkitError
from labkit.hardware.units import parse


def sizes(least: str | float, most: str | float, factor: float) -> list[int]:
    """Sizes in bytes from ``least`` to ``most``, each ``factor`` times the one before.

    Raises
    ------
    LabkitError
        For a factor of 1 or less, or sizes the wrong way round.
    """
    low, high = parse(least, "size"), parse(most, "size")
    if factor <= 1 or not 1 <= low <= high:
        raise LabkitError("Sizes go from at least 1 byte up, by a factor above 1.")
    found = []
    while low <= high:
        found.append(int(low))
        low *= factor
    return found
