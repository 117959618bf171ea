"""On what a recording is measured, in words."""

from __future__ import annotations

from functools import cache


@cache
def described() -> str:
    """``"measured on"`` this machine's GPUs and processor; asked once a process, a few milliseconds."""
    from labkit.hardware import devices

    counted: dict[str, int] = {}
    for device in devices():
        what = device.name if device.kind == "gpu" else f"{device.name}, {device.cores:g} CPUs"
        counted[what] = counted.get(what, 0) + 1
    return "measured on " + "; ".join(name if n == 1 else f"{n} x {name}" for name, n in counted.items())
