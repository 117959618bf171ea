"""Kernels over one dimension: map, stencil, reduction, scan, histogram; every form against NumPy, awkward sizes too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kernels.support import few, inspected, numbers, unset

from labkit import cuda
from labkit.compute.kernels import histogram, maps, reduction, scan, stencil

AWKWARD = [1, 31, 33, 127, 129, 255, 257, 1000]
sizes = st.integers(0, 3000) | st.sampled_from([0, *AWKWARD])
one_or_more = sizes.filter(bool)


@pytest.mark.parametrize("kernel", [maps.saxpy, maps.saxpy_stride, maps.saxpy_runs], ids=lambda k: k.__name__)
@given(n=sizes | st.just(maps.BLOCKS * 256 + 1))
@few
def test_saxpy(kernel, n):
    x, y, out = numbers(n, n), numbers(n + 1, n), unset(n)
    maps.launch(kernel, out)(np.float32(3), x, y, out)
    np.testing.assert_allclose(out, maps.saxpy_reference(3, x, y), rtol=1e-6)


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("kernel", [maps.saxpy_stride, maps.saxpy_runs], ids=lambda k: k.__name__)
def test_loops_cover_everything_with_any_launch_shape(kernel, blocks):
    x, y, out = numbers(0, 1001), numbers(1, 1001), unset(1001)
    kernel[blocks, 32](np.float32(3), x, y, out)
    np.testing.assert_allclose(out, maps.saxpy_reference(3, x, y), rtol=1e-6)


@given(sizes)
@few
def test_lengths_from_either_layout(n):
    points, out, again = numbers(n, n, 3), unset(n), unset(n)
    maps.launch(maps.lengths_of_structures, out)(points, out)
    maps.launch(maps.lengths_of_arrays, again)(np.ascontiguousarray(points.T), again)
    np.testing.assert_allclose(out, maps.lengths_reference(points), rtol=1e-6)
    np.testing.assert_allclose(again, out, rtol=1e-6)


@pytest.mark.parametrize(
    "kernel", [maps.alternate_divergent, maps.alternate_uniform], ids=lambda k: k.__name__
)
@given(n=sizes)
@few
def test_alternating_work(kernel, n):
    x, out = numbers(n, n), unset(n)
    maps.launch(kernel, out)(x, out)
    np.testing.assert_allclose(out, maps.alternate_reference(x), rtol=1e-5)


@pytest.mark.parametrize("kernel", [stencil.mean_naive, stencil.mean_shared], ids=lambda k: k.__name__)
@given(n=one_or_more)
@few
def test_sliding_mean(kernel, n):
    x, out = numbers(n, n), unset(n)
    stencil.launch(kernel, out)(x, out)
    np.testing.assert_allclose(out, stencil.mean_reference(x), rtol=1e-5)


SUMS = [reduction.sum_atomic, reduction.sum_interleaved, reduction.sum_tree, reduction.sum_warps]


@pytest.mark.parametrize("kernel", SUMS, ids=lambda k: k.__name__)
@given(n=sizes | st.just(reduction.BLOCKS * reduction.THREADS + 5))
@few
def test_sum(kernel, n):
    x, out = numbers(n, n), np.zeros(1, np.float32)
    reduction.launch(kernel, x)(x, out)
    np.testing.assert_allclose(out[0], reduction.sum_reference(x), rtol=1e-5)


SCANS = [scan.scan_steps, scan.scan_tree, scan.scan_warps]


@pytest.mark.parametrize("kernel", SCANS, ids=lambda k: k.__name__)
@given(n=sizes, most=st.sampled_from([5, 2**31 - 1]))
@example(n=70_000, most=5)
@few
def test_running_totals(kernel, n, most):
    x = np.random.default_rng(n).integers(-most, most, n, np.int32)
    out = scan.running_totals(cuda.to_device(x), kernel).copy_to_host()
    np.testing.assert_array_equal(out, scan.scan_reference(x))


@pytest.mark.parametrize(
    "kernel", [histogram.histogram_global, histogram.histogram_private], ids=lambda k: k.__name__
)
@given(n=sizes | st.just(histogram.BLOCKS * 256 + 3), colours=st.sampled_from([1, 7, 256]))
@few
def test_histogram_adds_to_what_is_there(kernel, n, colours):
    values = np.random.default_rng(n).integers(0, colours, n).astype(np.uint8)
    counts = np.ones(256, np.int32)
    histogram.launch(kernel, values)(values, counts)
    np.testing.assert_array_equal(counts, 1 + histogram.histogram_reference(values))


@pytest.mark.parametrize("n", [1, 257, 1000])
def test_the_sanitizer_finds_nothing(n):
    x, out = numbers(n, n), unset(n)
    for kernel in (maps.saxpy, maps.saxpy_stride, maps.saxpy_runs):
        inspected(maps.launch(kernel, out), np.float32(3), x, x, out)
    for kernel, points in (
        (maps.lengths_of_structures, numbers(n, n, 3)),
        (maps.lengths_of_arrays, numbers(n, 3, n)),
    ):
        inspected(maps.launch(kernel, out), points, out)
    for kernel in (maps.alternate_divergent, maps.alternate_uniform):
        inspected(maps.launch(kernel, out), x, out)
    for kernel in (stencil.mean_naive, stencil.mean_shared):
        inspected(stencil.launch(kernel, out), x, out)
    for kernel in SUMS:
        inspected(reduction.launch(kernel, x), x, np.zeros(1, np.float32))
    whole, totals = np.arange(n, dtype=np.int32), np.zeros(4, np.int32)
    for kernel in SCANS:
        inspected(scan.launch(kernel, whole), whole, np.zeros_like(whole), totals)
    inspected(scan.launch(scan.add_before, whole), whole, totals)
    for kernel in (histogram.histogram_global, histogram.histogram_private):
        inspected(histogram.launch(kernel, whole), whole.astype(np.uint8), np.zeros(256, np.int32))
