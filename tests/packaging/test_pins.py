"""The pinned set: exact, whole, usable as constraints, and the same Python everywhere it is named."""

from __future__ import annotations

import os
import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import labkit

BINDER = Path(labkit.__file__).resolve().parents[1] / "binder"


def pins() -> dict[str, Requirement]:
    lines = (line.split("#")[0].strip() for line in (BINDER / "requirements.txt").read_text().splitlines())
    return {canonicalize_name(Requirement(line).name): Requirement(line) for line in lines if line}


def wanted(requirement: Requirement, seen: set[str]) -> set[str]:
    """The names of everything that `requirement` brings into this environment."""
    for extra in {"", *requirement.extras}:
        key = f"{canonicalize_name(requirement.name)}[{extra}]"
        if key in seen:
            continue
        seen.add(key)
        try:
            needed = distribution(requirement.name).requires or []
        except PackageNotFoundError:  # for other platforms
            continue
        for child in map(Requirement, needed):
            if child.marker is None or child.marker.evaluate({"extra": extra}):
                wanted(child, seen)
    return {key.split("[")[0] for key in seen}


def test_every_pin_is_exact_and_none_carries_a_build_or_an_index() -> None:
    assert len(pins()) > 100
    for name, pin in pins().items():
        assert re.fullmatch(r"==[0-9][0-9a-z.]*", str(pin.specifier)), name
        assert not pin.extras, name
    assert not re.search(r"^\s*-", (BINDER / "requirements.txt").read_text(), re.MULTILINE)


def test_every_package_that_the_tests_run_with_is_pinned() -> None:
    everything = wanted(Requirement("gpu-labkit[lab,train,test]"), set()) - {"gpu-labkit"}
    assert everything - pins().keys() == set()


def test_the_gpu_extra_is_pinned() -> None:
    if "numba-cuda" in wanted(Requirement("gpu-labkit[gpu13]"), set()):
        assert wanted(Requirement("gpu-labkit[gpu13]"), set()) - {"gpu-labkit"} <= pins().keys()
    assert {"numba-cuda", "cuda-toolkit", "nvidia-nvvm"} <= pins().keys()


def test_one_python_for_every_service() -> None:
    runtime = (BINDER / "runtime.txt").read_text().strip()
    (python,) = (
        item
        for item in yaml.safe_load((BINDER / "environment.yml").read_text())["dependencies"]
        if item.startswith("python=")
    )
    assert runtime == python.replace("=", "-")


@pytest.mark.parametrize("script", ["binder/postBuild", ".ci/run"])
def test_scripts_can_be_run(script: str) -> None:
    path = BINDER.parent / script
    assert os.access(path, os.X_OK)
    assert "set -euo pipefail" in path.read_text()
