"""labkit: how GPUs compute, communicate and are scheduled, in Jupyter, on the machine you have.

Everything a learner types is here and is imported on first use, so that ``import labkit`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# name -> (module, attribute); attribute None means the module itself.
_LAZY: dict[str, tuple[str, str | None]] = {
    "cuda": ("labkit.compute.cuda", None),
    "as_numba": ("labkit.compute.emulator.interop", "as_numba"),
    "hardware": ("labkit.hardware", None),
    "KernelError": ("labkit.errors", "KernelError"),
    "LabkitError": ("labkit.errors", "LabkitError"),
    "doctor": ("labkit.hardware.doctor", "doctor"),
    "lesson": ("labkit.course.header", "lesson"),
    "inspect": ("labkit.compute.emulator.inspection", "inspect"),
    "warp_view": ("labkit.widgets.warp_view", "warp_view"),
    "roofline": ("labkit.widgets.roofline_view", "roofline"),
    "occupancy": ("labkit.widgets.occupancy_view", "occupancy"),
    "device_timeline": ("labkit.compute.device_model.recorder", "device_timeline"),
    "gantt": ("labkit.widgets.gantt", "gantt"),
    "compare": ("labkit.widgets.compare_view", "compare"),
    "monitor": ("labkit.widgets.monitor", "monitor"),
    "replay": ("labkit.widgets.replay", "replay"),
    "read": ("labkit.widgets.read", "read"),
    "exercise": ("labkit.course", "exercise"),
    "cluster": ("labkit.network.cluster.factory", "cluster"),
    "fabric": ("labkit.network.fabric.machine", "fabric"),
    "exercises": ("labkit.course", "exercises"),
    "progress": ("labkit.course", "progress"),
    "plan": ("labkit.course.plan", "plan"),
    "ranks": ("labkit.network.ranks", "ranks"),
    "rank_context": ("labkit.network.context", "rank_context"),
}

__all__ = ["__version__", *_LAZY]

if TYPE_CHECKING:
    import labkit.compute.cuda as cuda
    from labkit import hardware
    from labkit.compute.device_model.recorder import device_timeline
    from labkit.compute.emulator.inspection import inspect
    from labkit.compute.emulator.interop import as_numba
    from labkit.course import exercise, exercises, progress
    from labkit.course.header import lesson
    from labkit.course.plan import plan
    from labkit.errors import KernelError, LabkitError
    from labkit.hardware.doctor import doctor
    from labkit.network.cluster.factory import cluster
    from labkit.network.context import rank_context
    from labkit.network.fabric.machine import fabric
    from labkit.network.ranks import ranks
    from labkit.widgets.compare_view import compare
    from labkit.widgets.gantt import gantt
    from labkit.widgets.monitor import monitor
    from labkit.widgets.occupancy_view import occupancy
    from labkit.widgets.read import read
    from labkit.widgets.replay import replay
    from labkit.widgets.roofline_view import roofline
    from labkit.widgets.warp_view import warp_view


def __getattr__(name: str) -> Any:
    try:
        module, attribute = _LAZY[name]
    except KeyError:
        raise AttributeError(f"module 'labkit' has no attribute {name!r}") from None
    target = importlib.import_module(module)
    value = target if attribute is None else getattr(target, attribute)
    globals()[name] = value
    return value


def load_ipython_extension(ipython: Any) -> None:
    """``%load_ext labkit``: from here on ``from numba import cuda`` runs on the emulator where there is no GPU."""
    importlib.import_module("labkit.compute.emulator.interop").load_ipython_extension(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """``%unload_ext labkit``: ``numba.cuda`` is numba's again."""
    importlib.import_module("labkit.compute.emulator.interop").unload_ipython_extension(ipython)


def __dir__() -> list[str]:
    return sorted(__all__)
