"""Every shipped kernel compiles for every architecture, without a GPU; the record holds what comes out."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
from kernels.support import numbers, unset

import labkit
from labkit.compute import kernels, registers
from labkit.compute.kernels import matmul
from labkit.compute.kernels.signatures import SIGNATURES
from labkit.errors import LabkitError


@pytest.mark.slow
def test_all_kernels_compile_and_use_what_is_recorded(require):
    require("compiler")
    made = registers.compile_all()
    assert registers.failures(made) == []
    assert made["kernels"].keys() == SIGNATURES.keys()
    # equal compilers, equal figures; those of another compiler are not compared
    assert registers.drift(made, registers.record()) == [], "python -m labkit.compute.registers --write"


def test_every_kernel_of_the_package_is_compiled_and_recorded():
    found = set()
    for module in pkgutil.iter_modules(kernels.__path__):
        for name, thing in vars(importlib.import_module(f"{kernels.__name__}.{module.name}")).items():
            # kernels have a launch shape, device functions have none
            if registers.name_of(thing) == f"{module.name}.{name}" and not _device(thing):
                found.add(f"{module.name}.{name}")
    assert found == SIGNATURES.keys() == registers.record()["kernels"].keys()


def _device(kernel) -> bool:
    options = getattr(kernel, "targetoptions", None)
    return options.get("device", False) if options else kernel.device


def test_the_record_covers_every_architecture():
    for by_architecture in registers.record()["kernels"].values():
        assert tuple(by_architecture) == registers.ARCHITECTURES
        for used in by_architecture.values():
            assert 0 < used["registers"] <= 255
            assert used["spill_stores"] == used["spill_loads"] == 0


def test_what_the_docstrings_say_of_memory_is_what_the_compiler_does():
    for architecture in registers.ARCHITECTURES:
        used = {name: by[architecture] for name, by in registers.record()["kernels"].items()}
        assert used["matmul.matmul_registers"]["local_bytes"] == 0
        assert used["sha256.search"]["local_bytes"] == 0
        assert used["sha256.search_whole"]["local_bytes"] >= 256
        assert used["transpose.transpose_padded"]["shared_bytes"] == 32 * 33 * 4
        assert used["image_filters.median_network"]["local_bytes"] == 0


def test_usage_of_a_kernel_on_a_card():
    used = registers.usage(matmul.matmul_tiled, "H100")
    assert used == registers.usage("matmul.matmul_tiled", "H100")
    assert used["architecture"] == "sm_90"
    assert used["shared_bytes"] == 2 * 16 * 16 * 4
    assert registers.usage(matmul.matmul_tiled, "P100") is None
    assert registers.usage(print, "H100") is None
    with pytest.raises(LabkitError, match="A1OO"):
        registers.usage(matmul.matmul_tiled, "A1OO")


def test_an_inspection_of_a_shipped_kernel_counts_its_registers():
    c = unset(64, 64)
    a = numbers(1, 64, 64)
    occupancy = labkit.inspect(matmul.launch(matmul.matmul_tiled, c), a, a, c, gpu="H100").occupancy
    assert occupancy.registers == registers.usage(matmul.matmul_tiled, "H100")["registers"]
    assert occupancy.shared_bytes == registers.usage(matmul.matmul_tiled, "H100")["shared_bytes"]


@pytest.mark.parametrize(
    ("capability", "architecture"),
    [
        ("7.0", None),
        ("7.5", "sm_75"),
        ("8.6", "sm_80"),
        ("9.0", "sm_90"),
        ("12.0", "sm_100"),
        ("gfx942", None),
    ],
)
def test_the_architecture_that_stands_for_a_card(capability, architecture):
    assert registers.architecture_for(capability) == architecture


def test_drift_is_told_for_the_same_compiler_and_only_then():
    record = registers.record()
    name = "maps.saxpy"
    more = {"compiler": record["compiler"], "kernels": {**record["kernels"], name: {}}}
    told = registers.drift(more, record)
    assert len(told) == len(registers.ARCHITECTURES)
    assert all(name in line for line in told)
    assert registers.drift({**more, "compiler": {"numba": "0"}}, record) == []
    failed = {"kernels": {name: {"sm_80": {"error": "TypingError: no"}}}}
    assert registers.failures(failed) == [f"{name} does not compile for sm_80: TypingError: no"]
