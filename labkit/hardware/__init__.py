"""What hardware is there, and what it can do.

`here` and `backend` look at this machine; `gpu`, `link` and their kin look up the catalogue, whose files are
read on first use. Asking for the backend loads neither of the two.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Imported now, and first, so that the name stays the function when somebody imports the module of that name.
from labkit.hardware.devices import backend, devices, here, usable_gpu, why_no_gpu

if TYPE_CHECKING:
    from labkit.hardware.catalog import (
        claim,
        claims,
        glossary,
        gpu,
        gpus,
        latencies,
        latency,
        link,
        links,
        protocol,
        published,
        sm_resources,
    )
    from labkit.hardware.machine import Device, Machine
    from labkit.hardware.records import GPU, Claim, Latency, Link, SMResources
    from labkit.hardware.units import parse, show_bytes, show_rate, show_time

_MODULES = {
    "labkit.hardware.catalog": (
        "claim claims glossary gpu gpus latencies latency link links protocol published sm_resources"
    ),
    "labkit.hardware.machine": "Device Machine",
    "labkit.hardware.records": "GPU Claim Latency Link SMResources",
    "labkit.hardware.units": "parse show_bytes show_rate show_time",
}
_LAZY = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "GPU",
    "Claim",
    "Device",
    "Latency",
    "Link",
    "Machine",
    "SMResources",
    "backend",
    "claim",
    "claims",
    "devices",
    "glossary",
    "gpu",
    "gpus",
    "here",
    "latencies",
    "latency",
    "link",
    "links",
    "parse",
    "protocol",
    "published",
    "show_bytes",
    "show_rate",
    "show_time",
    "sm_resources",
    "usable_gpu",
    "why_no_gpu",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'labkit.hardware' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
