"""What is plotted: a series (one metric of one device) and readings of it (a value, or why none)."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

PROVENANCES = ("measured", "emulated", "modelled")


@dataclass(frozen=True)
class Series:
    """One metric of one device.

    Attributes
    ----------
    key : str
        Unique within a recording, e.g. ``"cpu.3"`` or ``"gpu.0.power"``.
    name : str
        What the legend says.
    unit : str
        Unit of the values, e.g. ``"%"``, ``"W"``; empty for a pure number.
    provenance : str
        ``"measured"``, ``"emulated"`` or ``"modelled"``.
    group : str
        Series of one group are drawn alike: ``cpu``, ``cores``, ``memory``, ``disk``, ``network``, ``gpu``,
        ``gpu memory`` and its kin, ``link``, ``emulator``, ``rank compute`` and its kin, or ``own``.
    of : str
        What 100 % or the limit is, for people, e.g. ``"23.5 GiB"``; empty when it says nothing.
    hidden : bool
        Recorded, but not drawn until the reader asks for it.
    device : str
        Whose metric it is, e.g. ``"GPU 0"`` or ``"Network"``; empty for a learner's own.
    limit : float or None
        The value, in ``unit``, at which the device is full, hot or at its limit.
    """

    key: str
    name: str
    unit: str
    provenance: str
    group: str
    of: str = ""
    hidden: bool = False
    device: str = ""
    limit: float | None = None

    def __post_init__(self) -> None:
        if self.provenance not in PROVENANCES:
            raise ValueError(f"provenance of {self.key!r} must be one of {', '.join(PROVENANCES)}")

    @property
    def label(self) -> str:
        """The name with its unit and provenance, as titles and files want it."""
        unit = f" ({self.unit})" if self.unit and self.unit not in self.name else ""
        return f"{self.name}{unit}, {self.provenance}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Reading(NamedTuple):
    """One value of a series, or None and the reason in words; hundreds are made at every sample."""

    series: Series
    value: float | None
    reason: str = ""


def mean_reading(series: Series, values: list[float], reason: str) -> Reading:
    """The mean of what was read in an interval; a gap with its reason when nothing was."""
    if not values:
        return Reading(series, None, reason)
    return Reading(series, math.fsum(values) / len(values))
