"""Drop-in for ``from numba import cuda``: the real GPU where there is one, else the emulator.

``BACKEND`` says which: ``"gpu"`` or ``"emulator"``. ``LABKIT_BACKEND`` (``auto``, ``gpu`` or ``emulator``) overrides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.hardware import backend

BACKEND = backend()

if BACKEND == "gpu" and not TYPE_CHECKING:
    from numba import cuda as _numba_cuda

    def __getattr__(name: str) -> Any:
        return getattr(_numba_cuda, name)

    def __dir__() -> list[str]:
        return sorted({"BACKEND", *dir(_numba_cuda)})

else:
    from labkit.compute.emulator.api import *  # noqa: F403
    from labkit.compute.emulator.api import __getattr__  # noqa: F401
