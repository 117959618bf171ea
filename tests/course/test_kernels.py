"""Checks of kernels: what is asked of an answer, and what is said about one that is wrong."""

from __future__ import annotations

import numpy as np
import pytest

import labkit
from labkit import cuda
from labkit.course.checks import Launch
from labkit.course.compare import difference
from labkit.course.lessons import l01_cases, l01_why
from labkit.course.sandbox import worker

SAXPY = labkit.exercise("01.saxpy")
CAPTURED = np.broadcast_to(np.zeros(1, np.float32), (2**28,))


@cuda.jit
def saxpy(a, x, y, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = a * x[i] + y[i]


@cuda.jit
def stub(a, x, y, out):
    """Each thread adds one element."""
    # your code here


@cuda.jit
def one_element_a_thread(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]


@cuda.jit
def endless(a, x, y, out):
    i = cuda.grid(1)
    while True:
        i += 1


@cuda.jit
def beyond(a, x, y, out):
    out[cuda.grid(1) + out.size] = 1.0


@cuda.jit
def large(a, x, y, out):
    out[0] = CAPTURED[0]


@cuda.jit(device=True)
def device(a, x, y, out):
    return a


@cuda.jit
def other_parameters(x, out):
    out[0] = x[0]


def plain(a, x, y, out):
    out[:] = a * x + y


def test_a_right_kernel_passes_and_leaves_nothing(new_children):
    result = SAXPY.check(saxpy)
    assert result.passed, result
    assert f"({len(list(l01_cases.saxpy()))} launches compared.)" in result.message
    assert new_children() == set()
    assert result == SAXPY.check(saxpy)


def test_a_stub_is_not_attempted():
    assert SAXPY.check(stub).outcome == "not attempted"


def test_the_launch_the_place_and_the_reason_are_named():
    result = SAXPY.check(one_element_a_thread)
    assert result.outcome == "failed"
    assert result.message.startswith("out[512] is still nan, as before the launch, expected ")
    assert result.message.endswith("(float32, shape (2048,)); 1,536 of 2,048 elements are wrong.")
    assert result.where == "grid 8, block 64 (512 threads), 2,048 elements"
    assert "512 is the number of threads" in result.why
    assert "cuda.gridsize(1)" in result.why


def test_out_of_bounds_names_line_block_thread_index_and_shape():
    result = SAXPY.check(beyond)
    assert result.outcome == "error"
    line = beyond.py_func.__code__.co_firstlineno + 2
    for part in (f"line {line}", "block", "thread", "2048", "(2048,)"):
        assert part in result.message, result


def test_an_endless_kernel_is_stopped():
    result = SAXPY.check(endless, seconds=5)
    assert result.outcome == "error"
    assert "loop" in result.message


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (saxpy[1, 32], "came with its [grid, block]"),
        (device, "is a device function"),
        (plain, "write @cuda.jit above its def"),
        (other_parameters, "saxpy(a, x, y, out) is asked for, and yours is saxpy(x, out)"),
        (large, "64 MiB"),
        (3, "should be a kernel, and this is an int (3)"),
        ("saxpy", "this is a str"),
    ],
    ids=["configured", "device", "plain", "parameters", "large", "number", "text"],
)
def test_what_is_no_kernel_of_the_right_kind(answer, says):
    result = SAXPY.check(answer)
    assert result.outcome == "error"
    assert says in result.message


def test_a_kernel_where_a_function_is_asked_for():
    result = labkit.exercise("01.amdahl").check(saxpy)
    assert (result.outcome, "take @cuda.jit away" in result.message) == ("error", True)


@pytest.mark.parametrize("launches", [l01_cases.vector_add, l01_cases.saxpy, l01_cases.blur])
def test_launches_are_fresh_and_awkward(launches):
    first, second = list(launches()), list(launches())
    sizes = {launch.expected["out"].size for launch in first}
    assert {0, 1} <= sizes
    assert any(launch.threads > launch.expected["out"].size for launch in first)
    for one, two in zip(first, second, strict=True):
        assert np.isnan(one.arguments["out"]).all()
        assert not np.isnan(one.expected["out"]).any()
        assert one.arguments["out"] is not two.arguments["out"]
        assert one.expected["out"].tobytes() == two.expected["out"].tobytes()


def test_guards_notice_a_write_on_either_side():
    for offset in (-3, 5):
        buffer, inner = worker._guarded(np.zeros(5, np.float32))
        assert worker._stray(buffer) is None
        inner[:] = 7
        assert worker._stray(buffer) is None
        buffer[worker.GUARD + offset] = 1
        assert worker._stray(buffer) == offset


def told(function, change):
    """What is said about an output that ``change`` makes of the right one, at the first launch of a check."""
    launches = {"vector_add": l01_cases.vector_add, "saxpy": l01_cases.saxpy, "blur": l01_cases.blur}[
        function
    ]
    launch: Launch = next(iter(launches()))
    got = launch.expected["out"].copy()
    changed = change(got, launch)
    got = got if changed is None else changed
    return getattr(l01_why, function)(launch, "out", got, difference(got, launch.expected["out"]))


def set_to(where, value):
    def change(got, launch):
        got[where] = value

    return change


@pytest.mark.parametrize(
    ("function", "change", "says"),
    [
        ("vector_add", set_to(slice(None), np.nan), "no element was written at all"),
        ("vector_add", set_to(0, np.nan), "the first thread's number is 0"),
        ("vector_add", set_to(slice(1, None), np.nan), "only the first element"),
        ("vector_add", set_to(slice(32, None), np.nan), "one block's worth"),
        ("vector_add", set_to(slice(50, None), np.nan), "every element from 50 on is untouched"),
        ("vector_add", set_to(slice(None, None, 2), np.nan), "those that were never written"),
        ("vector_add", lambda got, _: np.roll(got, 1), "off by one"),
        ("vector_add", set_to(3, 1.0), ""),
        ("saxpy", lambda _, launch: launch.arguments["x"] * launch.arguments["a"], "y was not added"),
        ("saxpy", lambda _, launch: launch.arguments["x"] + launch.arguments["y"], "x was not multiplied"),
        ("blur", lambda got, _: got * 9, "nine times too much"),
        ("blur", set_to((0, slice(None)), 3.0), "only pixels at the edge are wrong"),
        ("blur", set_to((slice(20, None), slice(None)), np.nan), "rows with shape[0]"),
    ],
)
def test_typical_mistakes_are_recognised(function, change, says):
    text = told(function, change)
    assert says in text
    assert bool(text) == bool(says)
