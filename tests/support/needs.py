"""What a test may need and a machine may lack, each with a probe that gives the reason when it is absent."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable
from functools import cache

import pytest


def _modules(*names: str) -> str | None:
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(missing)}" if missing else None


def _browser() -> str | None:
    if shutil.which("chromium") is None:
        return "Chromium is not installed (Debian: apt-get install chromium)"
    return _modules("playwright", "jupyterlab")


def _gpu() -> str | None:
    from labkit import hardware

    return None if hardware.usable_gpu() is not None else hardware.why_no_gpu()


def _netns() -> str | None:
    """Network namespaces that may be made, as root or in a user namespace, and what shapes their links."""
    from labkit.network.cluster import probe

    return probe.ability().missing or None


def _slurm() -> str | None:
    from support import slurm

    return slurm.missing()


def _compiler() -> str | None:
    """numba-cuda's toolkit pieces, which compile to PTX without a GPU."""
    return _modules("numba_cuda", "cuda.bindings")


PROBES: dict[str, Callable[[], str | None]] = {
    "browser": _browser,
    "cc": lambda: None if shutil.which("cc") or shutil.which("gcc") else "no C compiler (cc) is installed",
    "compiler": _compiler,
    "gpu": _gpu,
    "hatchling": lambda: _modules("hatchling"),
    "lab": lambda: _modules("jupyterlab", "ipywidgets", "anywidget", "plotly"),
    "nbgrader": lambda: _modules("nbgrader"),
    "netns": _netns,
    "numba": lambda: _modules("numba"),
    "slurm": _slurm,
    "torch": lambda: _modules("torch"),
}


@cache
def missing(name: str) -> str | None:
    """Why `name` cannot be used here; None when it can."""
    return PROBES[name]()


def insisted() -> set[str]:
    """The names in ``LABKIT_REQUIRE``; a name nobody knows is an error, so that a typing slip cannot pass."""
    names = set(os.environ.get("LABKIT_REQUIRE", "").replace(",", " ").split())
    if unknown := names - PROBES.keys():
        raise pytest.UsageError(f"LABKIT_REQUIRE names {sorted(unknown)}; known are {sorted(PROBES)}")
    return names


def require(name: str, reason: str | None = None) -> None:
    """Skip the running test when `name` is absent, or fail it when ``LABKIT_REQUIRE`` insists on it.

    `reason` overrides the probe: give it when the test itself found out that something is missing.
    """
    because = reason or missing(name)
    if because is None:
        return
    if name in insisted():
        pytest.fail(f"{name} is required here (LABKIT_REQUIRE): {because}", pytrace=False)
    pytest.skip(f"needs {name}: {because}")
