"""A learner's mistakes: each is a KernelError whose sentence names the line, the thread and what to do."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest
from emulator.support import define

import labkit
from labkit import cuda
from labkit.compute.emulator import executor, launch, package


@cuda.jit
def no_guard(a, out):
    i = cuda.grid(1)
    out[i] = a[i]


def line_of(kernel, text: str) -> int:
    """The number of the line of a kernel that contains ``text``."""
    lines = kernel.source.text.splitlines()
    return kernel.source.first_line + next(k for k, line in enumerate(lines) if text in line)


def test_out_of_bounds_names_line_block_thread_index_and_shape():
    with pytest.raises(labkit.KernelError) as caught:
        no_guard[4, 32](np.zeros(100), np.zeros(100))
    error = caught.value
    assert (error.kind, error.block, error.thread) == ("out-of-bounds", (3, 0, 0), (4, 0, 0))
    assert error.line == line_of(no_guard, "out[i] = a[i]")
    for part in ("no_guard", "a[100]", "(100,)", "thread 4 of block 3", "0 to 99", "out[i] = a[i]"):
        assert part in str(error)


def test_out_of_bounds_writes_and_second_axes():
    kernel = define("@cuda.jit\ndef f(out):\n    i, j = cuda.grid(2)\n    out[i, j] = 1\n")
    with pytest.raises(labkit.KernelError, match=r"writes out\[0, 3\].*\(4, 3\).*along axis 1 are 0 to 2"):
        kernel[1, (4, 4)](np.zeros((4, 3)))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64])
def test_an_unsigned_index_never_counts_from_the_end(dtype):
    index = f"np.{np.dtype(dtype)}(cuda.grid(1)) - one[0]"
    kernel = define(f"@cuda.jit\ndef f(a, one):\n    a[{index}] = 1\n")
    with pytest.raises(labkit.KernelError, match=r"thread 0 of block 0 writes a\[18446744073709551615\]"):
        kernel[1, 4](np.zeros(8), np.ones(1, dtype))
    found = labkit.inspect(kernel[1, 4], (a := np.zeros(8)), np.ones(1, dtype)).findings
    assert [f.kind for f in found] == ["out-of-bounds"]
    assert a.tolist() == [1, 1, 1, 0, 0, 0, 0, 0]


def test_a_negative_index_counts_from_the_end_and_is_noted():
    kernel = define("@cuda.jit\ndef f(a, out):\n    i = cuda.grid(1)\n    out[i] = a[i - 1]\n")
    a, out = np.arange(8.0), np.zeros(8)
    findings = launch(kernel, 1, 8, (a, out))
    np.testing.assert_array_equal(out, np.roll(a, 1))
    assert [(f.kind, f.line, f.severity) for f in findings] == [("wraparound", 4, "note")]
    assert "index -1 of a" in findings[0].message


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        ((1, 2048), "2048 threads a block, but a block has at most 1024"),
        ((1, (1, 1, 128)), "along z; at most 64"),
        ((0, 32), "needs at least 1"),
        ((1, -1), "needs at least 1"),
        ((3.5, 32), "'//' instead of '/'"),
        (((1, 1, 1, 1), 32), "one, two or three"),
        ((1,), "blocks and threads"),
        (32, "blocks and threads"),
    ],
)
def test_impossible_launch_shapes(configuration, words):
    with pytest.raises(labkit.KernelError, match=words) as caught:
        no_guard[configuration](np.zeros(1), np.zeros(1))
    assert caught.value.kind == "launch-limit"


def test_a_kernel_called_without_brackets_says_how_to_launch_it():
    with pytest.raises(labkit.KernelError, match=r"no_guard\[blocks, threads_per_block\]"):
        no_guard(np.zeros(1), np.zeros(1))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((np.zeros(3),), r"takes 2 argument\(s\) \(a, out\), but got 1"),
        (([1, 2], np.zeros(2)), r"'a' .* is a list.*np.array"),
        (("text", np.zeros(2)), "is a str"),
        ((np.zeros(8)[::2], np.zeros(4)), "view with gaps.*ascontiguousarray"),
        ((np.array(["a"]), np.zeros(1)), "numbers only"),
        ((np.array([None]), np.zeros(1)), "numbers only"),
    ],
)
def test_arguments_that_cannot_travel(arguments, words):
    with pytest.raises(labkit.KernelError, match=words):
        no_guard[1, 1](*arguments)


UNSUPPORTED = {
    "x = [1, 2]": "a list",
    "x = [k for k in range(3)]": "comprehension",
    "x = {1: 2}": "dictionary",
    "try:\n        x = 1\n    except ValueError:\n        x = 2": "'try'",
    "raise ValueError": "'raise'",
    "with a:\n        pass": "'with'",
    "import math": "'import'",
    "x = lambda k: k": "lambda",
    "x = f'{a}'": "formatted string",
    "yield a": "'yield'",
    "global a2\n    a2 = 1": "'global'",
    "x = a @ a": "'@'",
    "x = nowhere": "'nowhere', which is not defined",
    "x = y\n    y = 1": "'y' before it is assigned",
    "x = a[0.5]": "'//' instead of '/'",
    "x = a[a[0] > 1]": r"int\(",
    "cuda.atomic.add(a, a[0] > 1, 1)": r"int\(",
    "x = a[1, 2]": "2 indices on 'a', which has 1",
    "a.sum()": "attribute 'sum' of an array",
    "return a[0]": "'return' with a value",
    "x = helper(1)": r"@cuda.jit\(device=True\)",
    "x = np.linspace(0, 1)": "np.linspace",
    "x = cuda.shared.array(a.size, np.float32)": "must be constant",
    "x = cuda.shared.array((TILE, TILE + 1), np.float32)": "PADDED = TILE \\+ 1",
    "x = cuda.local.array(TILE * 2, np.float32)": "numba does not calculate shapes",
    "x = a[0] & 1": "whole numbers",
    "x, y = 1, 2, 3": "3 values unpacked into 2",
    "for k in range(0, 5, 0):\n        pass": "step of zero",
    "x = 1 in (1, 2)": "'is' or 'in'",
    "cuda.syncthreads": r"without '\(\)'",
    "x = cuda.tex_fetch(a, 0)": "cuda.tex_fetch",
    "a[0] = 'text'": "a string",
    "x = f(a)": "recursion",
}


@pytest.mark.parametrize("body", UNSUPPORTED)
def test_what_a_device_cannot_do_is_refused_with_line_and_advice(body):
    source = f"def helper(k):\n    return k\n@cuda.jit\ndef f(a):\n    {body}\n"
    with pytest.raises(labkit.KernelError, match=UNSUPPORTED[body]) as caught:
        define(source, TILE=16)[1, 1](np.zeros(4))
    assert caught.value.kind == "unsupported"
    assert 4 <= caught.value.line <= 8
    assert "Kernel 'f'" in str(caught.value) or "helper" in str(caught.value)


def test_kernels_without_source_say_what_to_do():
    namespace: dict = {"cuda": cuda}
    with pytest.raises(labkit.KernelError, match="put it into a notebook cell or a file"):
        exec("@cuda.jit\ndef unheard_of(a):\n    a[0] = 123.5\n", namespace)
    with pytest.raises(labkit.KernelError, match="lambda"):
        cuda.jit(lambda a: None)
    with pytest.raises(labkit.KernelError, match="needs a Python function"):
        cuda.jit(device=True)(3)


@pytest.mark.parametrize(
    "body",
    [
        "while True:\n        pass",
        "i = 0\n    while i < 10:\n        a[0] = i",
        "i = 0\n    while i < 10:\n        i += 0.0",
        "while a[1] == 0:\n        a[0] += 1",
        "while a[1] == 0:\n        pass",
    ],
)
def test_endless_kernels_are_stopped(body):
    kernel = define(f"@cuda.jit\ndef f(a):\n    {body}\n")
    cuda.set_step_budget(40_000)
    try:
        with pytest.raises(labkit.KernelError, match="line") as caught:
            kernel[1, 64](np.zeros(4))
    finally:
        cuda.set_step_budget(None)
    assert caught.value.kind in ("step-budget", "needs-forward-progress")
    assert caught.value.block == (0, 0, 0)


def test_waiting_for_memory_nobody_writes_is_told_from_a_long_loop():
    kernel = define("@cuda.jit\ndef f(a):\n    while a[1] == 0:\n        pass\n")
    with pytest.raises(labkit.KernelError, match="no other thread changes") as caught:
        kernel[2, 32](np.zeros(4))
    assert caught.value.kind == "needs-forward-progress"


def test_barriers_that_some_threads_do_not_reach():
    kernel = define(
        "@cuda.jit\ndef f(a):\n    if cuda.threadIdx.x < 16:\n        cuda.syncthreads()\n    a[0] = 1\n"
    )
    with pytest.raises(labkit.KernelError, match="thread 16 of block 0 ends without reaching it") as caught:
        kernel[1, 32](np.zeros(1))
    assert (caught.value.kind, caught.value.line) == ("divergent-barrier", 4)
    two = "    if cuda.threadIdx.x < 16:\n        cuda.syncthreads()\n    else:\n        cuda.syncthreads()\n"
    with pytest.raises(labkit.KernelError, match="waits at another one, in line 6"):
        define(f"@cuda.jit\ndef f(a):\n{two}")[1, 32](np.zeros(1))


def test_too_much_shared_memory_and_read_only_arrays():
    kernel = define(
        "@cuda.jit\ndef f(a):\n    s = cuda.shared.array((100, 100), np.float64)\n    s[0, 0] = a[0]\n"
    )
    with pytest.raises(labkit.KernelError, match=r"80,000 bytes.*49,152") as caught:
        kernel[1, 1](np.zeros(1))
    assert caught.value.kind == "launch-limit"
    fixed = np.zeros(4)
    fixed.flags.writeable = False
    with pytest.raises(labkit.KernelError, match="read-only"):
        no_guard[1, 4](np.zeros(4), fixed)


def test_an_uninitialised_shared_array_is_not_zero():
    kernel = define(
        "@cuda.jit\ndef f(a):\n    s = cuda.shared.array(8, np.float64)\n    a[cuda.threadIdx.x] = s[0]\n"
    )
    a = np.zeros(8)
    kernel[1, 8](a)
    assert np.isnan(a).all()


def test_a_variable_that_some_path_leaves_unassigned():
    kernel = define(
        "@cuda.jit\ndef f(a):\n    for k in range(a.size - 4):\n        last = k\n    a[0] = last\n"
    )
    a = np.zeros(6)
    kernel[1, 1](a)
    assert a[0] == 1
    with pytest.raises(labkit.KernelError, match="'last' may be used before"):
        kernel[1, 1](np.zeros(4))


def test_names_for_kernels_explain_themselves_on_the_host():
    for use in (cuda.syncthreads, cuda.atomic.add, cuda.shared.array):
        with pytest.raises(labkit.KernelError, match="inside a kernel"):
            use()
    device = define("@cuda.jit(device=True)\ndef f(a):\n    return a\n")
    with pytest.raises(labkit.KernelError, match="device function"):
        device(1)
    with pytest.raises(labkit.KernelError, match="device function"):
        device[1, 1](1)


def test_device_functions_called_wrongly():
    source = "@cuda.jit(device=True)\ndef g(x):\n    return x\n@cuda.jit\ndef f(a):\n    a[0] = g(1, 2)\n"
    with pytest.raises(labkit.KernelError, match=r"2 argument\(s\) for 'g', which takes 1"):
        define(source)[1, 1](np.zeros(1))


def test_a_device_function_has_a_result_of_one_kind():
    source = "@cuda.jit(device=True)\ndef g(x):\n    if x > 1:\n        return x\n"
    source += "@cuda.jit\ndef f(a):\n    a[0] = g(a[0])\n"
    with pytest.raises(
        labkit.KernelError, match="result of 'g', which is of another kind on another path"
    ) as caught:
        define(source)[1, 1](np.zeros(1))
    assert caught.value.line == 7


def test_in_a_notebook_only_the_sentence_is_shown():
    with pytest.raises(labkit.KernelError) as caught:
        no_guard[1, 2](np.zeros(1), np.zeros(2))
    assert caught.value._render_traceback_() == [f"KernelError: {caught.value}"]


def test_an_interrupt_stops_a_launch_at_once_and_says_what_it_leaves():
    kernel = define("@cuda.jit\ndef f(a):\n    for k in range(10**12):\n        a[cuda.grid(1)] += 1\n")
    a = np.zeros(64)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt, match="may be partly written"):
        kernel[1, 64](a)
    timer.join()
    assert a[0] > 0
    no_guard[1, 4](np.zeros(4), np.zeros(4))


def test_a_long_loop_with_a_bound_is_not_endless_and_one_without_is(monkeypatch):
    monkeypatch.setattr(executor, "ENDLESS_SECONDS", 0.05)
    bounded = "n = 0\n    x = 0.5\n    while n < 60000 and x < 4.0:\n        x = x * x\n        n += 1\n    a[0] = n"
    a = np.zeros(1)
    define(f"@cuda.jit\ndef f(a):\n    {bounded}\n")[1, 1](a)
    assert a[0] == 60000
    free = bounded.replace("n < 60000 and ", "")
    with pytest.raises(labkit.KernelError, match="went round this loop") as caught:
        define(f"@cuda.jit\ndef f(a):\n    {free}\n")[1, 1](a)
    assert caught.value.kind == "step-budget"


HUGE = {
    "10 ** 10 ** 8": "a power",
    "2 ** (2 ** 40)": "a power of a power",
    "1 << 10 ** 11": "a shift",
    "3 ** -(10 ** 9)": "a small power",
}


@pytest.mark.parametrize("constant", HUGE, ids=HUGE.values())
def test_constants_beyond_any_type_are_not_calculated(constant):
    kernel = define(f"@cuda.jit\ndef f(a):\n    x = {constant}\n    a[cuda.grid(1)] = 1\n")
    kernel[1, 4](a := np.zeros(4))
    assert a.sum() == 4


@pytest.mark.parametrize("shape", ["10 ** 10 ** 8", "1 // 0", "'a' * 10 ** 12", "(1,) + 1"])
@pytest.mark.parametrize("space", ["local", "shared"])
def test_a_shape_that_is_no_number_is_refused(space, shape):
    kernel = define(f"@cuda.jit\ndef f(a):\n    t = cuda.{space}.array({shape}, np.float32)\n    a[0] = 1\n")
    with pytest.raises(labkit.KernelError, match="a kernel cannot use"):
        kernel[1, 4](np.zeros(4))


@pytest.mark.parametrize("count", [65_537, 10**9, 10**17])
def test_too_much_local_memory(count):
    kernel = define(f"@cuda.jit\ndef f(a):\n    t = cuda.local.array({count}, np.float64)\n    a[0] = 1\n")
    with pytest.raises(
        labkit.KernelError, match="bytes of local arrays a thread, but at most 524,288"
    ) as caught:
        kernel[1, 4](np.zeros(4))
    assert (caught.value.kind, caught.value.line) == ("launch-limit", line_of(kernel, "local"))


def test_rounding_to_more_digits_than_there_are_changes_nothing():
    kernel = define(
        "@cuda.jit\ndef f(a):\n    a[0] = round(a[0], 10 ** 10)\n    a[1] = round(a[1], -(10 ** 10))\n"
    )
    kernel[1, 1](a := np.array([1.25, 7.5]))
    assert a.tolist() == [1.25, 0.0]


def test_an_expression_too_deep_to_follow_is_refused():
    kernel = define(f"@cuda.jit\ndef f(a):\n    a[0] = {'-' * 900}1\n")
    with pytest.raises(labkit.KernelError, match="an expression with so many parts; give its parts names"):
        kernel[1, 1](np.zeros(1))


class AnyAttribute:
    def __getattr__(self, name):
        raise ValueError(name)


@pytest.mark.parametrize(
    "value",
    [AnyAttribute(), np.array(["a"]), np.array([object()]), np.array(["2020-01-01"], "M8[D]")],
    ids=["raises", "text", "objects", "dates"],
)
def test_a_global_that_no_kernel_can_use_is_named_only_where_it_is_used(value):
    kernel = define("@cuda.jit\ndef f(a, use):\n    a[0] = 1\n    if use:\n        a[0] = odd[0]\n")
    kernel.py_func.__globals__["odd"] = value
    packed, arrays = package.pack(kernel)
    assert not arrays
    with pytest.raises(labkit.KernelError, match=r"line 5 .*a kernel cannot use"):
        package.unpack(packed, arrays)[1, 1](np.zeros(1), True)
