"""One result, three renderings; and the comparison behind it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from labkit.course import messages
from labkit.course.compare import difference, number, untouched
from labkit.course.result import OUTCOMES, Advice, CheckResult

RESULT = CheckResult(
    "01.saxpy",
    "failed",
    "out[3] is 1, expected 2.",
    why="a < b & c",
    where="grid 1, block 2",
    printed="one\n<two>\n",
    notes=("careful",),
    seconds=0.25,
)


def test_the_text_holds_everything_but_the_time():
    assert repr(RESULT) == (
        "01.saxpy: failed\n"
        "  out[3] is 1, expected 2.\n"
        "  where: grid 1, block 2\n"
        "  why: a < b & c\n"
        "  note: careful\n"
        "  your answer printed:\n"
        "    one\n"
        "    <two>"
    )


def test_html_is_escaped_and_has_no_time():
    html = RESULT._repr_html_()
    assert "a &lt; b &amp; c" in html
    assert "&lt;two&gt;" in html
    assert "0.25" not in html
    assert "data-outcome='failed'" in html


def test_the_dictionary_is_json():
    assert json.loads(json.dumps(RESULT.to_dict()))["seconds"] == 0.25


def test_results_that_differ_in_time_alone_are_equal():
    assert CheckResult("a", "passed", "m", seconds=1.0) == CheckResult("a", "passed", "m", seconds=2.0)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_only_passed_is_passed(outcome):
    result = CheckResult("a", outcome, "m")
    assert result.passed == (outcome == "passed")
    assert outcome in result._repr_html_()


def test_code_of_a_solution_is_shown_as_code():
    advice = Advice("a", "one solution", "x < y", code=True)
    assert "<pre style='margin:4px 0 0'>x &lt; y</pre>" in advice._repr_html_()
    assert repr(advice) == "a: one solution\nx < y"


def test_the_first_wrong_element_is_named_with_both_values():
    expected = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = expected.copy()
    got[1, 0] = 7.5
    got[1, 2] = np.nan
    sentence = difference(got, expected).sentence("out")
    assert sentence == "out[1, 0] is 7.5, expected 3 (float32, shape (2, 3)); 2 of 6 elements are wrong."


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "c8"])
def test_an_element_that_was_never_written_is_told(dtype):
    got = untouched((3,), np.dtype(dtype))
    got[:2] = 1
    found = difference(got, np.ones(3, dtype))
    assert found.index == (2,)
    assert "as before the launch" in found.got
    assert found.untouched.tolist() == [False, False, True]


@given(arrays.arrays(st.sampled_from(["f4", "f8"]), 5, elements=st.floats(-1e6, 1e6, width=32)))
def test_rounding_is_forgiven_and_more_is_not(expected):
    scale = 4 * np.finfo(expected.dtype).eps
    assert difference(expected * (1 + expected.dtype.type(scale)), expected) is None
    assert difference(expected + np.abs(expected).max() * expected.dtype.type(1e-2) + 1, expected).count == 5


def test_integers_have_to_be_equal_and_nan_is_a_value():
    assert difference(np.array([2**53]), np.array([2**53 + 1])) is not None
    assert difference(np.array([np.nan, np.inf]), np.array([np.nan, np.inf])) is None
    assert difference(np.array([np.inf]), np.array([1e308])) is not None


@pytest.mark.parametrize(
    ("value", "text"),
    [(np.float32(0.1), "0.1"), (1 / 3, "0.3333333333"), (True, "True"), (np.int8(-3), "-3"), (2j, "2j")],
)
def test_numbers_as_learners_read_them(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1, 2.5, None], "[1, 2.5, None]"),
        ((1,), "(1,)"),
        (list(range(50)), "a list of 50 items"),
        (np.zeros((2, 3)), "an array of shape (2, 3), dtype float64"),
        ("x" * 100, "a text of 100 characters"),
        (1 << 200, "an integer of 201 bits"),
        ([["y" * 50] * 12] * 12, "[['" + "y" * 50),
    ],
)
def test_values_fit_on_a_line(value, text):
    assert messages.shown(value).startswith(text)
    assert len(messages.shown(value)) <= 160


def test_one_is_one_and_two_are_several():
    assert messages.passed("Right.", 1, "call") == "Right. (1 call compared.)"
    assert messages.passed("Right.", 2, "launch") == "Right. (2 launches compared.)"
