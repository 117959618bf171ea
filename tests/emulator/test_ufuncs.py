"""Reductions, elementwise functions and functions of rows on the emulator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit import KernelError, LabkitError, cuda

rng = np.random.default_rng(2)


@cuda.reduce
def total(a, b):
    return a + b


@given(st.integers(0, 700), st.integers(-5, 5))
def test_reductions_of_any_length(n, init):
    values = rng.integers(-100, 100, n)
    assert total(values, init=init) == values.sum() + init


def test_reductions_by_lambdas_and_their_arguments():
    largest, product = cuda.reduce(lambda a, b: max(a, b)), cuda.reduce(lambda a, b: a * b)
    values = np.array([3, 9, 4], np.int32)
    assert largest(values) == 9
    assert product(values) == 0  # init is 0 unless given, as in numba
    assert product(values, init=1) == 108
    assert product(values, size=2, init=1).dtype == np.int32
    result = cuda.device_array(1, np.int32)
    assert total(cuda.to_device(values), res=result) is None
    assert result.copy_to_host()[0] == 16
    assert values.tolist() == [3, 9, 4]
    with pytest.raises(LabkitError, match="one dimension"):
        total(np.zeros((2, 2)))


def test_a_function_of_a_reduction_must_run_on_a_device():
    with pytest.raises(KernelError, match="no exceptions"):

        @cuda.reduce
        def careful(a, b):
            try:
                return a / b
            except ZeroDivisionError:
                return 0


@cuda.vectorize(
    ["float32(float32, float32)", "float64(float64, float64)", "int64(int64, int64)"], target="cuda"
)
def combine(a, b):
    return 2 * a + b


@given(
    st.sampled_from([(3,), (1,), (2, 3), (2, 1), (4, 1, 3)]), st.sampled_from([(3,), (1, 1), (2, 1), (1, 3)])
)
def test_elementwise_functions_broadcast(first, second):
    a, b = rng.random(first), rng.random(second)
    np.testing.assert_array_equal(combine(a, b), 2 * a + b)


def test_elementwise_functions_choose_by_exact_types_and_fit_numbers_to_arrays():
    a = np.arange(4, dtype=np.float32)
    assert combine(a, a).dtype == np.float32
    assert combine(a, 1).dtype == combine(a, 1.5).dtype == np.float32
    assert combine(np.arange(3), 2.9).tolist() == [2, 4, 6]
    assert combine(1.0, 2.0).tolist() == [4.0]
    with pytest.raises(KernelError, match="none of"):
        combine(a, a.astype(np.float64))
    with pytest.raises(KernelError, match="lengths along each axis"):
        combine(a, np.zeros(3, np.float32))


def test_elementwise_results_go_where_the_arguments_are():
    a = np.arange(6.0).reshape(2, 3)
    on_device = combine(cuda.to_device(a), a[0])
    np.testing.assert_array_equal(on_device.copy_to_host(), 2 * a + a[0])
    out = cuda.device_array((2, 3))
    assert combine(a, a, out=out) is out
    np.testing.assert_array_equal(out.copy_to_host(), 3 * a)
    host = np.zeros((2, 3))
    assert combine(a, a, out=host) is host
    assert combine(np.zeros((0, 3)), a[0]).shape == (0, 3)


def test_elementwise_functions_reduce():
    add = cuda.vectorize(["int64(int64, int64)"], target="cuda")(lambda a, b: a + b)
    for n in (1, 2, 3, 100, 257):
        assert add.reduce(np.arange(n)) == n * (n - 1) // 2


@pytest.mark.parametrize("signature", ["float32[:](float32[:])", "(float32, float32)"])
def test_elementwise_signatures_name_numbers_and_a_result(signature):
    with pytest.raises(KernelError, match="must name the types"):
        cuda.vectorize([signature], target="cuda")(lambda a, b: a + b)


@cuda.guvectorize(["void(float64[:], float64, float64[:])"], "(n),()->(n)", target="cuda")
def scale(row, factor, out):
    for k in range(row.shape[0]):
        out[k] = row[k] * factor


@cuda.guvectorize(["void(float32[:], float32[:])", "void(float64[:], float64[:])"], "(n)->()", target="cuda")
def mean(row, out):
    out[0] = 0
    for k in range(row.shape[0]):
        out[0] += row[k] / row.shape[0]


def test_functions_of_rows():
    rows = rng.random((5, 4, 3))
    np.testing.assert_allclose(scale(rows, 2.0), rows * 2)
    np.testing.assert_allclose(scale(rows[0, 0], np.arange(6.0).reshape(2, 3)).shape, (2, 3, 3))
    np.testing.assert_allclose(scale(rows, np.arange(4.0)), rows * np.arange(4.0)[:, None])
    np.testing.assert_allclose(mean(rows), rows.mean(axis=-1))
    assert mean(rows.astype(np.float32)).dtype == np.float32
    assert (
        mean(np.arange(4, dtype=np.int16)).dtype == np.float32
    )  # the first type it converts to without loss
    on_device = mean(cuda.to_device(rows))
    np.testing.assert_allclose(on_device.copy_to_host(), rows.mean(axis=-1))
    out = np.zeros((5, 4))
    assert mean(rows, out) is out
    assert out.any()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((np.zeros((2, 3)),), "takes 2 argument"),
        ((np.zeros(()), 1.0), "needs 1 axes"),
        ((np.zeros((2, 3)), np.zeros(4)), "leading axes"),
        ((np.zeros(3, complex), 1.0), "convert with"),
    ],
)
def test_functions_of_rows_say_what_does_not_fit(arguments, words):
    with pytest.raises(KernelError, match=words):
        scale(*arguments)


def test_layouts_that_cannot_be_read_or_inferred():
    with pytest.raises(KernelError, match="cannot be read"):
        cuda.guvectorize(["void(float64[:])"], "n->n", target="cuda")(lambda a: None)
    with pytest.raises(KernelError, match="has 2 arguments"):
        cuda.guvectorize(["void(float64[:])"], "(n)->(n)", target="cuda")(lambda a: None)
    unknown = cuda.guvectorize(["void(float64[:], float64[:])"], "(n)->(m)", target="cuda")(mean.py_func)
    with pytest.raises(KernelError, match="length of 'm'"):
        unknown(np.zeros(3))
