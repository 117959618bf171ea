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
    "hardware": ("labkit.hardware", None),
    "KernelError": ("labkit.errors", "KernelError"),
    "LabkitError": ("labkit.errors", "LabkitError"),
    "doctor": ("labkit.hardware.doctor", "doctor"),
    "lesson": ("labkit.course.header", "lesson"),
    "monitor": ("labkit.widgets.monitor", "monitor"),
    "exercise": ("labkit.course", "exercise"),
    "exercises": ("labkit.course", "exercises"),
    "progress": ("labkit.course", "progress"),
    "ranks": ("labkit.network.ranks", "ranks"),
    "rank_context": ("labkit.network.context", "rank_context"),
}

__all__ = ["__version__", *_LAZY]

if TYPE_CHECKING:
    from labkit import hardware
    import labkit.compute.cuda as cuda
    from labkit.course import exercise, exercises, progress
    from labkit.course.header import lesson
    from labkit.errors import KernelError, LabkitError
    from labkit.hardware.doctor import doctor
    from labkit.network.context import rank_context
    from labkit.network.ranks import ranks
    from labkit.widgets.monitor import monitor


def __getattr__(name: str) -> Any:
    try:
        module, attribute = _LAZY[name]
    except KeyError:
        raise AttributeError(f"module 'labkit' has no attribute {name!r}") from None
    target = importlib.import_module(module)
    value = target if attribute is None else getattr(target, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
