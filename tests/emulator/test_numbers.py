"""Numbers at the ends of their ranges, and the order in which parts of an expression are evaluated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from emulator.support import define
from hypothesis import given, settings
from hypothesis import strategies as st

WHOLE = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
far = st.one_of(
    st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1), st.sampled_from([2**61, 2**62, -(2**63)])
)
steps = st.lists(st.tuples(st.sampled_from("+-*r"), far), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(steps, far)
def test_what_is_linear_in_the_thread_index_wraps_around_in_64_and_32_bits(steps, bound):
    lines, expected = [], np.arange(70)
    with np.errstate(over="ignore"):
        for k, (symbol, _) in enumerate(steps):
            number = np.int64(steps[k][1])
            lines.append(f"v = n[{k}] - v" if symbol == "r" else f"v = v {symbol} n[{k}]")
            expected = number - expected if symbol == "r" else eval(f"expected {symbol} number")
        opposite = -expected
    constants = tuple(number for _, number in steps)
    kernel = define(
        "@cuda.jit\ndef f(n, bound, wide, narrow, below, opposite):\n    i = cuda.grid(1)\n"
        "    if i < wide.size:\n        v = i\n"
        + "".join(f"        {line}\n" for line in lines)
        + "        wide[i] = v\n        narrow[i] = np.int32(v)\n        below[i] = v < bound\n"
        "        opposite[i] = -v\n"
    )
    found = [np.zeros(70, np.int64), np.zeros(70, np.int64), np.zeros(70, bool), np.zeros(70, np.int64)]
    kernel[3, 32](constants, bound, *found)
    for values, wanted in zip(
        found, (expected, expected.astype(np.int32), expected < bound, opposite), strict=True
    ):
        np.testing.assert_array_equal(values, wanted)


def as_ptx_converts(value: float, source: np.dtype, dtype: np.dtype) -> int:
    """cvt.rzi in whole numbers without end, as the PTX ISA words it; 8 bits are the lower half of 16."""
    width = max(16, 8 * dtype.itemsize)
    low, high = (0, 2**width - 1) if dtype.kind == "u" else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
    if math.isnan(value):
        number = 2 ** (width - 1) if max(source.itemsize, dtype.itemsize) == 8 else 0
    else:
        number = max(low, min(high, int(value) if math.isfinite(value) else int(math.copysign(2**80, value))))
    number %= 2 ** (8 * dtype.itemsize)
    return (
        number - 2 ** (8 * dtype.itemsize)
        if dtype.kind == "i" and number >= 2 ** (8 * dtype.itemsize - 1)
        else number
    )


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_floating_point_becomes_whole_as_on_the_device(source, dtype):
    ends = [float(np.iinfo(t).max) for t in WHOLE] + [float(np.iinfo(t).min) for t in WHOLE]
    values = np.array([0, 0.9, -0.9, 300, -129, 70000, 1e20, -1e20, np.inf, -np.inf, np.nan, *ends], source)
    expected = [as_ptx_converts(float(v), np.dtype(source), np.dtype(dtype)) for v in values]
    name = np.dtype(dtype).name
    kernel = define(
        "@cuda.jit\ndef f(values, stored, converted):\n    i = cuda.grid(1)\n    if i < values.size:\n"
        f"        stored[i] = values[i]\n        converted[i] = np.{name}(values[i])\n"
    )
    stored, converted = np.zeros(len(values), dtype), np.zeros(len(values), dtype)
    kernel[1, 32](values, stored, converted)
    assert stored.tolist() == converted.tolist() == expected
    one = define(f"@cuda.jit\ndef f(value, out):\n    out[0] = value\n    out[1] = np.{name}(value)\n")
    for value, wanted in zip(values, expected, strict=True):
        out = np.zeros(2, dtype)
        one[1, 1](value, out)
        assert out.tolist() == [wanted, wanted], value


def test_rounding_is_half_to_even_and_saturates():
    kernel = define("@cuda.jit\ndef f(x, out):\n    i = cuda.grid(1)\n    out[i] = round(x[i])\n")
    x, out = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e30, -1e30]), np.zeros(7, np.int64)
    kernel[1, 7](x, out)
    assert out.tolist() == [0, 2, 2, 0, -2, 2**63 - 1, -(2**63)]


def test_literal_exponents_are_multiplied_out_in_the_type_of_the_base():
    kernel = define(
        "@cuda.jit\ndef f(x, k, out):\n    out[0] = x ** -1\n    out[1] = x ** -3\n    out[2] = x ** 70\n"
        "    out[3] = k ** -1\n    out[4] = k ** 70\n    out[5] = x ** 0\n"
    )
    x, out = np.float32(1.1), np.zeros(6)
    kernel[1, 1](x, np.int32(3), out)
    product = np.float32(1)
    square = x
    for bit in (0, 1, 1, 0, 0, 0, 1):  # 70 = 2 + 4 + 64
        product = product * square if bit else product
        square = square * square
    one = np.float32(1)
    wrapped = (3**70 + 2**63) % 2**64 - 2**63
    assert out.tolist() == [
        float(one / x),
        float(one / (x * (x * x))),
        float(product),
        0.0,
        float(wrapped),
        1.0,
    ]


def test_the_smaller_and_larger_of_a_number_and_nan():
    kernel = define(
        "@cuda.jit\ndef f(x, y, out):\n    i = cuda.grid(1)\n    out[0, i] = min(x[i], y[i])\n"
        "    out[1, i] = np.maximum(x[i], y[i])\n    out[2, i] = np.minimum(x[i], y[i])\n"
        "    out[3, i] = np.fmax(x[i], y[i])\n    out[4, i] = np.fmin(x[i], y[i])\n"
    )
    nan, out = np.nan, np.zeros((5, 3))
    kernel[1, 3](np.array([1, nan, 2]), np.array([nan, 1, 3]), out)
    np.testing.assert_array_equal(out, [[1, 1, 2], [nan, nan, 3], [nan, nan, 2], [1, 1, 3], [1, 1, 2]])


def test_a_chained_comparison_evaluates_from_left_to_right_and_stops_where_it_fails():
    note = define(
        "@cuda.jit(device=True)\ndef f(log, value):\n    place = cuda.atomic.add(log, 0, 1)\n"
        "    log[place] = value\n    return value\n"
    )
    kernel = define(
        "@cuda.jit\ndef f(log):\n    if note(log, 1) < note(log, 2) < note(log, 3) < note(log, 4):\n"
        "        note(log, 9)\n    if note(log, 6) < note(log, 5) < note(log, 7):\n        note(log, 0)\n",
        note=note,
    )
    log = np.zeros(10, np.int64)
    log[0] = 1
    kernel[1, 1](log)
    assert log.tolist() == [8, 1, 2, 3, 4, 9, 6, 5, 0, 0]


def test_arrays_without_dimensions_have_one_element():
    kernel = define(
        "@cuda.jit\ndef f(total, factor, out):\n    i = cuda.grid(1)\n    cuda.atomic.add(total, (), i)\n"
        "    out[i] = factor[()] * i\n    if i == 0:\n        factor[()] += 1\n"
    )
    total, factor, out = np.array(5), np.array(2.5), np.zeros(40)
    kernel[1, 40](total, factor, out)
    assert (int(total), float(factor)) == (5 + 39 * 20, 3.5)
    np.testing.assert_array_equal(out, 2.5 * np.arange(40))


@pytest.mark.parametrize(("name", "dtype"), [("round", np.float64), ("roundf", np.float32)])
def test_libdevice_rounds_half_away_from_zero(name, dtype):
    below = np.nextafter(dtype(0.5), dtype(0))
    odd = dtype(2 ** np.finfo(dtype).nmant + 1)
    x = np.array([0.5, 1.5, 2.5, below, odd, 0.0, 3.49], dtype)
    kernel = define(
        f"@cuda.jit\ndef f(x, out):\n    i = cuda.grid(1)\n    out[i] = cuda.libdevice.{name}(x[i])\n"
    )
    for sign in (1, -1):
        out = np.zeros(7, dtype)
        kernel[1, 7](sign * x, out)
        assert out.tolist() == [sign * v for v in (1.0, 2.0, 3.0, 0.0, float(odd), 0.0, 3.0)]
