"""Kernels over two dimensions: transpose, matrix product, image filters, fractal, ray march, heat."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels.support import few, inspected, numbers, unset

from labkit.compute.kernels import fractal, heat, image_filters, matmul, raymarch, transpose

side = st.integers(1, 80) | st.sampled_from([1, 15, 16, 17, 31, 32, 33, 64, 65])
name = lambda k: k.__name__  # noqa: E731

TRANSPOSES = [transpose.transpose_naive, transpose.transpose_tile, transpose.transpose_padded]
MATMULS = [matmul.matmul_rows, matmul.matmul_columns, matmul.matmul_tiled, matmul.matmul_registers]
MEDIANS = [image_filters.median_sort, image_filters.median_network]
HEATS = [heat.heat_down, heat.heat_along, heat.heat_tile]
RENDERS = [raymarch.render_fixed, raymarch.render]


@pytest.mark.parametrize("kernel", TRANSPOSES, ids=name)
@given(rows=side, columns=side)
@few
def test_transpose(kernel, rows, columns):
    a, out = numbers(rows, rows, columns), unset(columns, rows)
    transpose.launch(kernel, a)(a, out)
    np.testing.assert_array_equal(out, transpose.transpose_reference(a))


@given(rows=side, columns=side)
@few
def test_copy(rows, columns):
    a, out = numbers(rows, rows, columns), unset(rows, columns)
    transpose.launch(transpose.copy, a)(a, out)
    np.testing.assert_array_equal(out, a)


@pytest.mark.parametrize("kernel", MATMULS, ids=name)
@given(m=side, k=side | st.just(0), n=side)
@few
def test_matmul(kernel, m, k, n):
    a, b, c = numbers(m, m, k), numbers(n, k, n), unset(m, n)
    matmul.launch(kernel, c)(a, b, c)
    np.testing.assert_allclose(c, matmul.matmul_reference(a, b), rtol=1e-5)


@given(rows=side, columns=side)
@few
def test_gaussian_in_one_pass_and_in_two(rows, columns):
    image, out, between, again = numbers(rows, rows, columns), *(unset(rows, columns) for _ in range(3))
    image_filters.launch(image_filters.smooth_direct, out)(image, out)
    image_filters.launch(image_filters.smooth_rows, out)(image, between)
    image_filters.launch(image_filters.smooth_columns, out)(between, again)
    np.testing.assert_allclose(out, image_filters.smooth_reference(image), rtol=1e-5)
    np.testing.assert_allclose(again, out, rtol=1e-5)


@pytest.mark.parametrize("kernel", MEDIANS, ids=name)
@given(rows=side, columns=side, greys=st.sampled_from([2, 5, 1000]))
@few
def test_median(kernel, rows, columns, greys):
    image = np.random.default_rng(rows).integers(0, greys, (rows, columns)).astype(np.float32)
    out = unset(rows, columns)
    image_filters.launch(kernel, out)(image, out)
    np.testing.assert_array_equal(out, image_filters.median_reference(image))


@given(rows=side, columns=side)
@few
def test_edges(rows, columns):
    image, out = numbers(rows, rows, columns), unset(rows, columns)
    image_filters.launch(image_filters.edges, out)(image, out)
    np.testing.assert_allclose(out, image_filters.edges_reference(image), rtol=1e-4, atol=1e-5)


left, top = st.floats(-2.2, 0.3), st.floats(-1.3, 0.5)


@given(rows=side, columns=side, left=left, top=top, limit=st.sampled_from([0, 1, 40]))
@few
def test_mandelbrot(rows, columns, left, top, limit):
    corner, step = (left, top), 1.0 / max(rows, columns)
    narrow = [np.float32(v) for v in (*corner, step)]
    counts = {}
    for kernel, numbers_ in (
        (fractal.mandelbrot_double, (*corner, step)),
        (fractal.mandelbrot, narrow),
        (fractal.mandelbrot_skip, narrow),
    ):
        counts[kernel] = unset(rows, columns, dtype=np.int32)
        fractal.launch(kernel, counts[kernel])(*numbers_, limit, counts[kernel])
    expected = fractal.mandelbrot_reference(*narrow, limit, (rows, columns))
    # the set's border is chaotic: a last digit, as a fused multiply-add changes it, may decide a pixel there
    for found in counts.values():
        assert (np.abs(found - expected) <= 1).mean() >= 0.97
    np.testing.assert_array_equal(counts[fractal.mandelbrot_skip], counts[fractal.mandelbrot])


def test_mandelbrot_is_the_same_with_rows_as_blocks():
    out, again = unset(40, 300, dtype=np.int32), unset(40, 300, dtype=np.int32)
    view = np.float32(-2), np.float32(-1), np.float32(0.01), 30
    fractal.launch(fractal.mandelbrot, out)(*view, out)
    fractal.launch(fractal.mandelbrot, again, fractal.ROW_BLOCK)(*view, again)
    np.testing.assert_array_equal(again, out)
    assert out.max() == 30
    assert out.min() < 5


@given(rows=side, columns=side)
@few
def test_rendered_pictures(rows, columns):
    out, again = unset(rows, columns), unset(rows, columns)
    raymarch.launch(raymarch.render, out)(out)
    raymarch.launch(raymarch.render_fixed, again)(again)
    np.testing.assert_array_equal(again, out)
    expected = raymarch.render_reference(rows, columns)
    # a ray that grazes the ball hits or misses by its last digit
    assert (np.abs(out - expected) < 1e-3).mean() >= 0.98


def test_the_scene_has_a_ball_a_floor_and_a_dark_sky():
    out = unset(61, 61)
    raymarch.launch(raymarch.render, out)(out)
    assert out[0, 0] == 0
    assert out[30, 30] > 0.3
    assert 0 < out[60, 30] < 1


@pytest.mark.parametrize("kernel", HEATS, ids=name)
@given(rows=side, columns=side, steps=st.integers(0, 4))
@few
def test_heat(kernel, rows, columns, steps):
    plate = 300 + 100 * numbers(rows, rows, columns)
    after = heat.simulate(plate, 0.2, steps, kernel)
    np.testing.assert_allclose(after, heat.heat_reference(plate, 0.2, steps), rtol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (33, 47)], ids=str)
def test_the_sanitizer_finds_nothing(shape):
    a, out, flipped = numbers(1, *shape), unset(*shape), unset(*shape[::-1])
    for kernel in TRANSPOSES:
        inspected(transpose.launch(kernel, a), a, flipped)
    inspected(transpose.launch(transpose.copy, a), a, out)
    product = unset(shape[0], shape[0])
    for kernel in MATMULS:
        inspected(matmul.launch(kernel, product), a, np.ascontiguousarray(a.T), product)
    filters = image_filters
    for kernel in (
        filters.smooth_direct,
        filters.smooth_rows,
        filters.smooth_columns,
        filters.edges,
        *MEDIANS,
    ):
        inspected(filters.launch(kernel, out), a, out)
    counts, view = unset(*shape, dtype=np.int32), [np.float32(v) for v in (-2, -1, 0.05)]
    inspected(fractal.launch(fractal.mandelbrot_double, out), -2.0, -1.0, 0.05, 20, counts)
    for kernel in (fractal.mandelbrot, fractal.mandelbrot_skip):
        inspected(fractal.launch(kernel, out), *view, 20, counts)
    for kernel in RENDERS:
        inspected(raymarch.launch(kernel, out), out)
    for kernel in HEATS:
        inspected(heat.launch(kernel, a), np.float32(0.2), a, out)
