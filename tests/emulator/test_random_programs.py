"""Random small kernels, compared with the same statements run thread by thread: in Python, and under numba.njit."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from emulator.support import define
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

THREADS = 70  # two full warps and a partial one
LENGTH = 16

ANY_FORMS = ["({a} + {b})", "({a} - {b})", "(-{a})", "({a} if {c} else {b})"]
WHOLE_FORMS = [
    *ANY_FORMS,
    *("(({a} * {b}) % 97)", "({a} // 3)", "({a} % 5)", "min({a}, {b})", "max({a}, {b})", "abs({a})"),
    *("(({a} & 31) << 2)", "({a} ^ {b})", "(({a} >> 1) | 1)"),
]
REAL_FORMS = [*ANY_FORMS, "min(max({a} * {b}, -9.0), 9.0)", "({a} / 4.0)"]
comparisons = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])


@st.composite
def whole(draw, names: tuple[str, ...], depth: int = 2) -> str:
    """An int64 expression that stays small."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([*names, "3", "7", "-2", "0"]))
    a, b = draw(whole(names, depth - 1)), draw(whole(names, depth - 1))
    form = draw(st.sampled_from(WHOLE_FORMS))
    return form.format(a=a, b=b, c=draw(condition(names, ("0.5",), 0)))


@st.composite
def real(draw, wholes: tuple[str, ...], reals: tuple[str, ...], depth: int = 2) -> str:
    """A float64 expression of additions and bounded products: every order of evaluation gives the same bits."""
    if depth == 0 or draw(st.booleans()):
        return draw(
            st.sampled_from([*reals, "0.5", "-1.25", "a[i % 16]", f"float({draw(st.sampled_from(wholes))})"])
        )
    a, b = draw(real(wholes, reals, depth - 1)), draw(real(wholes, reals, depth - 1))
    form = draw(st.sampled_from(REAL_FORMS))
    return form.format(a=a, b=b, c=draw(condition(wholes, reals, 0)))


@st.composite
def condition(draw, wholes: tuple[str, ...], reals: tuple[str, ...], depth: int = 1) -> str:
    """A condition; with depth also short-circuit ones, whose right side must not run when the left decides."""
    op = draw(comparisons)
    simple = f"{draw(st.sampled_from(wholes))} {op} {draw(st.sampled_from([*wholes, '1', '4']))}"
    if depth == 0:
        return simple
    return draw(
        st.sampled_from(
            [
                simple,
                f"{draw(st.sampled_from(reals))} < 0.25",
                f"not ({simple})",
                f"0 <= i < 40 and a[i % 16] {op} 0.0",
                f"{simple} or k % 2 == 0",
                "k < 16 and k >= 0 and a[k] > 0.0",
                f"-3 < k {op} 5",
            ]
        )
    )


@st.composite
def statements(draw, loop_depth: int = 0, depth: int = 2, count: int = 3) -> list[str]:
    """Lines over the variables i (thread), j, k (whole) and x, y (real)."""
    wholes, reals = ("i", "j", "k"), ("x", "y")
    lines: list[str] = []
    for _ in range(draw(st.integers(1, count))):
        kind = draw(
            st.sampled_from(["whole", "real", "augmented", "swap", "store", "if", "for", "while", "leave"])
        )
        if kind == "whole":
            lines.append(f"{draw(st.sampled_from(('j', 'k')))} = {draw(whole(wholes))}")
        elif kind == "real":
            lines.append(f"{draw(st.sampled_from(reals))} = {draw(real(wholes, reals))}")
        elif kind == "augmented":
            lines.append(f"k {draw(st.sampled_from(('+=', '-=', '^=')))} {draw(whole(wholes, 1))}")
        elif kind == "swap":
            lines.append(
                draw(st.sampled_from(["j, k = k, j", "x, y = y, x", "j, k = k % 7, j + k", "k = k % 1000"]))
            )
        elif kind == "store":
            lines.append(f"out[i] {draw(st.sampled_from(('=', '+=')))} {draw(real(wholes, reals, 1))}")
        elif kind == "leave":
            lines += draw(leave(loop_depth))
        elif depth:
            lines += draw(compound(kind, loop_depth, depth))
    return lines or ["pass"]


@st.composite
def leave(draw, loop_depth: int) -> list[str]:
    """break, continue or return under a condition."""
    how = draw(st.sampled_from(["break", "continue", "return"] if loop_depth else ["return"]))
    return [f"if {draw(condition(('i', 'j', 'k'), ('x', 'y')))}:", f"    {how}"]


@st.composite
def compound(draw, kind: str, loop_depth: int, depth: int) -> list[str]:
    inner_loop = loop_depth + (kind != "if")
    body = ["    " + line for line in draw(statements(inner_loop, depth - 1, 2))]
    guard = draw(condition(("i", "j", "k"), ("x", "y")))
    if kind == "if":
        other = ["    " + line for line in draw(statements(loop_depth, depth - 1, 2))]
        return [f"if {guard}:", *body, *(["else:", *other] if draw(st.booleans()) else [])]
    if kind == "for":
        head = draw(st.sampled_from(["range(3)", "range(i % 4)", "range(5, 0, -2)", "range(j % 3, 4)"]))
        tail = ["else:", "    y = y + 1.0"] if draw(st.booleans()) else []
        return [f"for t{depth} in {head}:", *body, *tail]
    name = f"w{loop_depth}{depth}"
    return [f"{name} = i % 3", f"while {name} < 4:", f"    {name} += 1", *body]


def programs() -> st.SearchStrategy[str]:
    head = ["j = i % 5", "k = i - 20", "x = a[i % 16]", "y = 0.0"]
    return statements().map(lambda lines: "\n".join([*head, *lines, "out[i] += x + y + j + k"]))


def as_kernel(program: str):
    body = textwrap.indent(program, " " * 8)
    return define(f"@cuda.jit\ndef f(a, out):\n    i = cuda.grid(1)\n    if i < out.size:\n{body}\n")


def as_function(program: str):
    return define(f"def f(i, a, out):\n{textwrap.indent(program, '    ')}\n")


def numbers() -> np.ndarray:
    return np.random.default_rng(0).integers(-8, 8, LENGTH) / 4.0


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(programs(), st.sampled_from([(1, 96), (3, 32), (5, 17)]))
def test_random_kernels_do_what_python_does_thread_by_thread(program, shape):
    a, found, expected = numbers(), np.zeros(THREADS), np.zeros(THREADS)
    as_kernel(program)[shape](a, found)
    function = as_function(program)
    for thread in range(THREADS):
        function(thread, a.tolist(), expected)
    np.testing.assert_array_equal(found, expected, err_msg=program)


@pytest.mark.slow
@example("j = 0\nk = 0\nx = a[i % 16]\nout[i] = (x + (-x)) + (~i + -i)", np.uint8)
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(programs(), st.sampled_from([np.float32, np.int32, np.uint8, np.int64]))
def test_random_kernels_do_what_numba_does_with_its_types(require, program, dtype):
    require("numba")
    import numba

    a = (numbers() * 4).astype(dtype)
    found, expected = np.zeros(THREADS, np.float32), np.zeros(THREADS, np.float32)
    as_kernel(program)[3, 32](a, found)
    function = numba.njit(as_function(program))
    for thread in range(THREADS):
        function(thread, a, expected)
    np.testing.assert_array_equal(found, expected, err_msg=program)
