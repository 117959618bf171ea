"""Products and convolutions: counted as they run, modelled from the catalogue."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import labkit
from labkit.compute import convolving, products
from labkit.compute.kernels.matmul import launch, matmul_tiled
from labkit.errors import LabkitError


def test_the_tiled_kernel_asks_for_as_many_bytes_as_the_model_says():
    n = 64
    random = np.random.default_rng(0)
    a, b = (random.random((n, n), np.float32) for _ in range(2))
    c = np.zeros((n, n), np.float32)
    found = labkit.inspect(launch(matmul_tiled, c), a, b, c)
    sectors = found.totals["global_load_sectors"] + found.totals["global_store_sectors"]
    assert 32 * sectors == products.tiled_bytes(n)


def test_what_a_card_lacks_is_left_out():
    names = [one.name for one in products.modelled("A100", 1024)]
    assert "library, fp8 Tensor Cores" not in names
    assert names[0] == products.BY_HAND
    assert "library, tf32 Tensor Cores" not in [one.name for one in products.modelled("T4", 1024)]
    with pytest.raises(LabkitError):
        products.modelled("A1000000", 1024)


def test_no_product_is_faster_than_its_peak():
    card = labkit.hardware.gpu("H100")
    for one in products.modelled("H100", 8192):
        precision = dict(zip(products.LIBRARY, ("fp32", "tf32", "fp16_tensor", "fp8", "int8"), strict=True))
        assert one.flops_per_s < card.peak_flops(precision.get(one.name, "fp32"))
        assert one.how == "modelled"
        assert "modelled" in repr(one)


def test_the_model_does_not_load_the_emulator():
    code = "import sys; from labkit.compute import products; products.modelled('T4', 64); "
    code += "sys.exit('labkit.compute.emulator' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_small_products_are_bound_by_the_launch():
    assert {one.bound for one in products.modelled("A100", 64)} == {"launch"}


@pytest.mark.parametrize(("n", "k"), [(1, 1), (1000, 33), (5, 900), (4096, 4096)])
def test_both_ways_convolve_alike(n, k, require):
    require("torch")
    import torch

    x, kernel = torch.randn(n, dtype=torch.float64), torch.randn(k, dtype=torch.float64)
    wanted = np.convolve(x.numpy(), kernel.numpy())
    assert np.allclose(convolving.by_sums(x, kernel).numpy(), wanted, atol=1e-9)
    assert np.allclose(convolving.by_fft(x, kernel).numpy(), wanted, atol=1e-9)


def test_the_padded_length_holds_the_whole_result():
    for n, k in ((1, 1), (5, 4), (8, 1), (1000, 25), (1000, 26)):
        length = convolving.padded(n, k)
        assert length >= n + k - 1 > length // 2
        assert length & (length - 1) == 0


def test_the_crossing_is_where_the_counts_cross():
    k = convolving.crossover(30_000)
    assert convolving.fft_operations(30_000, k) < convolving.direct_operations(30_000, k)
    assert convolving.fft_operations(30_000, k - 1) >= convolving.direct_operations(30_000, k - 1)
    assert convolving.crossover(16) is None


def test_measured_curves_have_a_time_for_each_number_of_taps(require):
    require("torch")
    directly, transformed = convolving.measured(2000, (2, 8))
    assert directly.sizes == transformed.sizes == (2, 8)
    assert directly.how == transformed.how == "measured"


def test_without_a_gpu_nothing_is_measured_on_one(require):
    require("torch")
    import torch

    if not torch.cuda.is_available():
        assert products.measured_on_gpu(64) == []


@pytest.mark.gpu
def test_on_a_gpu_tensor_cores_beat_the_lanes():
    found = {one.name: one for one in products.measured_on_gpu(4096)}
    assert set(found) == {"library, fp32", "library, tf32", "library, fp16", "library, bf16"}
    assert found["library, fp16"].flops_per_s > found["library, fp32"].flops_per_s


def test_no_peak_of_the_catalogue_counts_sparsity():
    """A doubled entry would break the steps between neighbouring precisions, which are the same on every card."""
    for card in labkit.hardware.catalog.gpus():
        for below, above in (("tf32_TFLOPS", "fp16_tensor_TFLOPS"), ("fp16_tensor_TFLOPS", "fp8_TFLOPS")):
            slower, faster = getattr(card, below), getattr(card, above)
            if slower and faster:
                assert faster / slower == pytest.approx(2, rel=0.03), card.id
