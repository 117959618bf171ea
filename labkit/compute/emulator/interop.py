"""``from numba import cuda`` in other people's code, resolved to the emulator: ``as_numba`` and ``%load_ext labkit``.

A finder in front of Python's own answers for ``numba.cuda`` and its submodules, and for ``numba`` where that is not
installed. Nothing of numba is imported for it, and everything is put back afterwards.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_EMULATOR = "labkit.compute.emulator"
# submodule of numba.cuda -> where its names are
_SUBMODULES = {
    "random": (f"{_EMULATOR}.random",),
    "types": (f"{_EMULATOR}.typenames",),
    "vectorizers": (f"{_EMULATOR}.ufunc", f"{_EMULATOR}.gufunc"),
    "kernels": (),
    "kernels.reduction": (f"{_EMULATOR}.reduction",),
    "cudadrv": (),
    "cudadrv.devicearray": (f"{_EMULATOR}.device_array", f"{_EMULATOR}.host.memory"),
    "cudadrv.devices": (f"{_EMULATOR}.host.devices",),
    "cudadrv.error": (f"{_EMULATOR}.host.toolkit",),
}


class Door(ModuleType):
    """A module under numba's name, whose members are looked up in the emulator's modules."""

    def __init__(self, name: str, rooms: Sequence[str]):
        super().__init__(name, "numba.cuda, run by labkit's emulator.")
        self.__path__: list[str] = []
        self._rooms = rooms

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            for room in self._rooms:
                try:
                    return getattr(importlib.import_module(room), name)
                except AttributeError:
                    continue
        if name == "__all__" and self.__name__ == "numba.cuda":
            return importlib.import_module(self._rooms[0]).__all__
        raise AttributeError(f"module '{self.__name__}' (labkit's emulator) has no attribute {name!r}")


class LibdeviceDoor(ModuleType):
    """``numba.cuda.libdevice``: functions that only kernels can call."""

    def __getattr__(self, name: str) -> Any:
        from labkit.compute.emulator.values import Intrinsic

        return getattr(Intrinsic("libdevice"), name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives out modules made beforehand."""

    def __init__(self, modules: dict[str, ModuleType]):
        self.modules = modules

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname.startswith("numba.cuda.") and fullname not in self.modules:
            raise ModuleNotFoundError(f"labkit's emulator has no module '{fullname}'", name=fullname)
        if fullname not in self.modules:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin="labkit", is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """The module is complete already."""


class _Installed:
    """How many have asked for the emulator, and what to put back when none does any more."""

    def __init__(self) -> None:
        self.depth = 0
        self.finder: Finder | None = None
        self.saved: dict[str, ModuleType] = {}

    def enter(self) -> None:
        self.depth += 1
        if self.depth > 1:
            return
        with_numba = _numba_is_installed()
        self.finder = Finder(_modules(with_numba))
        self.saved = _take_out("numba.cuda" if with_numba else "numba")
        _reset_targets()
        sys.meta_path.insert(0, self.finder)
        if "numba" in sys.modules:
            importlib.import_module("numba.cuda")  # so that numba.cuda is there as an attribute, as it was

    def leave(self) -> None:
        if self.depth == 0:
            return
        self.depth -= 1
        if self.depth or self.finder is None:
            return
        sys.meta_path.remove(self.finder)
        _take_out("numba" if "numba" in self.finder.modules else "numba.cuda")
        sys.modules.update(self.saved)
        if "numba.cuda" in self.saved and "numba" in sys.modules:
            sys.modules["numba"].cuda = self.saved["numba.cuda"]  # type: ignore[attr-defined]
        _reset_targets()
        self.finder, self.saved = None, {}


_INSTALLED = _Installed()


def _numba_is_installed() -> bool:
    if "numba" in sys.modules:
        return True
    try:
        return importlib.util.find_spec("numba") is not None
    except ImportError:
        return False


def _modules(with_numba: bool) -> dict[str, ModuleType]:
    doors: dict[str, ModuleType] = {"numba.cuda": Door("numba.cuda", (f"{_EMULATOR}.api",))}
    doors.update({f"numba.cuda.{n}": Door(f"numba.cuda.{n}", rooms) for n, rooms in _SUBMODULES.items()})
    doors["numba.cuda.libdevice"] = LibdeviceDoor("numba.cuda.libdevice")
    if with_numba:
        return doors
    from labkit.compute.emulator import standin

    return {**standin.modules(), **doors}


def _take_out(root: str) -> dict[str, ModuleType]:
    """Forget a module and those below it, and return them."""
    names = [n for n in sys.modules if n == root or n.startswith(root + ".")]
    taken = {name: sys.modules.pop(name) for name in names}
    parent, _, child = root.rpartition(".")
    if parent in sys.modules:
        vars(sys.modules[parent]).pop(child, None)
    return taken


def _reset_targets() -> None:
    """Let numba's own @vectorize look up its target "cuda" anew, in whichever numba.cuda is there then."""
    decorators = sys.modules.get("numba.np.ufunc.decorators")
    for name, builder in (("Vectorize", "CUDAVectorize"), ("GUVectorize", "CUDAGUFuncVectorize")):
        registry = getattr(getattr(decorators, name, None), "target_registry", None)
        if registry is not None:
            registry.pop("cuda", None)
            registry.ondemand.pop("cuda", None)
            registry.ondemand["cuda"] = lambda builder=builder: getattr(
                importlib.import_module("numba.cuda.vectorizers"), builder
            )


@contextmanager
def as_numba() -> Iterator[None]:
    """Within the ``with`` block ``from numba import cuda`` gives the emulator, with or without numba installed.

    Code that was written for numba.cuda runs unmodified. Where there is a GPU nothing is changed: the code gets the
    real numba.cuda. The rest of numba, such as ``njit``, stays numba's where it is installed; elsewhere a stand-in
    runs such functions as plain Python.
    """
    from labkit.hardware import backend

    if backend() == "gpu":
        yield
        return
    _INSTALLED.enter()
    try:
        yield
    finally:
        _INSTALLED.leave()


_extension: list[Any] = []


def load_ipython_extension(ipython: Any) -> None:
    """``%load_ext labkit``: as :func:`as_numba`, until ``%unload_ext labkit``."""
    if not _extension:
        _extension.append(as_numba())
        _extension[0].__enter__()


def unload_ipython_extension(ipython: Any) -> None:
    """``%unload_ext labkit``."""
    if _extension:
        _extension.pop().__exit__(None, None, None)
