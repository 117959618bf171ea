"""The shipped image kernels, and the times of a GPU: modelled by formula, or measured by launching them."""

from __future__ import annotations

from types import FunctionType

import numpy as np
import pytest

from labkit.compute import cuda, offload
from labkit.compute.curves import Curve
from labkit.compute.filters import BYTES, FLOP, NEARNESS, brighten, denoise
from labkit.compute.kernels import image as kernels
from labkit.compute.model import LAUNCH_S

SIZES = (1, 4096, 2**24)


@pytest.mark.parametrize("shape", [(1, 1), (33, 70), (8, 257)])
def test_kernels_compute_what_numpy_computes(shape):
    image = np.random.default_rng(3).random(shape, np.float32)
    block = (32, 8)
    grid = (-(-shape[1] // 32), -(-shape[0] // 8))
    for launch, expected in (
        (lambda out: kernels.brighten[grid, block](image, out), brighten(image)),
        (lambda out: kernels.denoise[grid, block](image, NEARNESS, out), denoise(image)),
    ):
        out = np.full_like(image, np.nan)
        launch(out)
        np.testing.assert_allclose(out, expected, rtol=1e-5)


@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (9, 0), (10, 0)])
def test_kernels_compile_for_real_gpus_in_single_precision(require, capability):
    require("compiler")
    from numba import cuda as real
    from numba import types

    def for_real(kernel):
        """The kernel's Python with numba.cuda in the place of labkit.cuda, as on a machine with a GPU."""
        function = kernel.py_func
        return FunctionType(function.__code__, {**function.__globals__, "cuda": real}, function.__name__)

    picture = types.float32[:, ::1]
    for kernel, arguments in (
        (kernels.brighten, (picture, picture)),
        (kernels.denoise, (picture, picture, picture)),
    ):
        ptx, _ = real.compile_ptx(for_real(kernel), arguments, cc=capability)
        assert f"sm_{capability[0]}{capability[1]}" in ptx
        assert ".f64" not in ptx  # a stray float64 would halve the speed, or worse


def test_modelled_time_is_its_formula():
    resident, copied = offload.modelled("denoise", SIZES, "A100")
    for size, there, moved in zip(SIZES, resident.seconds, copied.seconds, strict=True):
        kernel = max(FLOP["denoise"] * size / 19.5e12, BYTES["denoise"] * size / 2039e9)
        assert there == pytest.approx(LAUNCH_S + kernel)
        assert moved == pytest.approx(there + 2 * offload.COPY_START_S + 8 * size / 24e9)
    assert {resident.how, copied.how} == {"modelled"}
    assert "assumed" in resident.on


def test_brightening_is_bound_by_bytes_and_denoising_by_operations():
    size = (2**24,)
    light, heavy = (offload.modelled(name, size, "A100")[0].seconds[0] - LAUNCH_S for name in FLOP)
    assert light == pytest.approx(8 * size[0] / 2039e9)
    assert heavy == pytest.approx(393 * size[0] / 19.5e12)


def test_figures_by_name_rebuild_the_curve():
    cpu = Curve("CPU", "measured", "a test", (10, 1000), (1e-6, 5e-6))
    figures = offload.per_element("brighten", cpu, "A100")
    assert figures["cpu_s_per_element"] == pytest.approx(5e-9)
    fixed = figures["launch_s"] + figures["copy_latency_s"]
    copies = figures["bytes_per_element"] / figures["copy_bytes_per_s"]
    _, copied = offload.modelled("brighten", (1000,), "A100")
    assert fixed + 1000 * (copies + figures["gpu_s_per_element"]) == pytest.approx(copied.seconds[0])


def test_measuring_launches_the_kernels_and_says_where():
    resident, copied = offload.measured("brighten", (64, 256))
    real = cuda.BACKEND == "gpu"
    assert {resident.how, copied.how} == {"measured" if real else "emulated"}
    assert resident.sizes == (64, 256)
    assert min(*resident.seconds, *copied.seconds) > 0
