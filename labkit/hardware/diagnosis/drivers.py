"""Which driver runs which CUDA, and which CUDA knows which card: look-ups in ``data/drivers.yaml``."""

from __future__ import annotations

import re

from labkit.errors import LabkitError
from labkit.hardware import files
from labkit.hardware.catalog import gpu as catalogued

Version = tuple[int, ...]


def version(text: str | None) -> Version | None:
    """``"535.104.05"`` -> ``(535, 104, 5)``; None for what is no version."""
    match = re.match(r"\d{1,6}(?:\.\d{1,6})*", text or "")
    return tuple(map(int, match[0].split("."))) if match else None


def minimum_driver(cuda: str, windows: bool = False) -> str | None:
    """The oldest driver that runs programs built for that CUDA; None for a CUDA the table does not know."""
    table = files.load("drivers")["runtimes"]
    found = version(cuda)
    if found is None:
        return None
    short = ".".join(map(str, found[:2]))
    entry = table.get(short) or table.get(str(found[0]))
    return str(entry["windows" if windows else "linux"]) if entry else None


def newest_cuda_major(driver: str) -> int | None:
    """The newest major version of CUDA that this driver of Linux runs; None below the table."""
    have = version(driver)
    fitting = [
        int(name.split(".")[0])
        for name, entry in files.load("drivers")["runtimes"].items()
        if have and have >= (version(entry["linux"]) or ())
    ]
    return max(fitting, default=None)


def capability(name: str) -> str | None:
    """Compute capability of a card by the name that tools print; None when unknown."""
    try:
        return catalogued(name).compute_capability
    except LabkitError:
        pass
    for pattern, found in files.load("drivers")["capabilities"]:
        if re.search(pattern, name):
            return str(found)
    return None


def cuda_range(compute_capability: str) -> tuple[str | None, str | None]:
    """The first CUDA that builds code for that capability, and the first that no longer does."""
    table = files.load("drivers")["architectures"]
    entry = table.get(compute_capability) or table.get(compute_capability.split(".")[0]) or {}
    return entry.get("since"), entry.get("until")
