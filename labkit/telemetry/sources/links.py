"""Counters of InfiniBand and RoCE ports, whose traffic passes the operating system's network by."""

from __future__ import annotations

from pathlib import Path

from labkit.telemetry.series import Reading, Series
from labkit.telemetry.sources.rates import Rates

PORTS = "/sys/class/infiniband"
WORD = (
    4  # the port counters count lanes' words of four bytes (InfiniBand specification, PortCountersExtended)
)
_COUNTERS = (("port_xmit_data", "sent"), ("port_rcv_data", "received"))


class LinksSource:
    """Bytes over each port that the kernel knows; none on machines without such cards.

    Parameters
    ----------
    root : str
        Folder with one folder a card, each with ``ports/N/counters/port_xmit_data`` and ``port_rcv_data``.
    """

    def __init__(self, root: str = PORTS):
        self._ports = sorted(Path(root).glob("*/ports/*/counters"))
        self._rates = Rates()

    def read(self) -> list[Reading]:
        counted: dict[Series, int] = {}
        gaps: list[Reading] = []
        for folder in self._ports:
            port = f"{folder.parents[2].name}/{folder.parent.name}"
            for file, way in _COUNTERS:
                series = Series(
                    f"link.{port}.{way}",
                    f"{port} {way}",
                    "MB/s",
                    "measured",
                    "link",
                    hidden=True,
                    device=port,
                )
                try:
                    counted[series] = WORD * int((folder / file).read_text())
                except (OSError, ValueError) as error:
                    gaps.append(Reading(series, None, f"the port's counter cannot be read ({error})"))
        return self._rates.readings(counted) + gaps

    def close(self) -> None:
        """Nothing is held open."""
