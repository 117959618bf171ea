"""Lesson 01: the expected values themselves, against slow and plain reckoning."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from course.bad_answers import Hostile
from hypothesis import given
from hypothesis import strategies as st

import labkit
from labkit.course import seeds
from labkit.course.lessons import l01_cases as cases
from labkit.course.lessons import l01_why as why


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32))
def test_blurred_is_the_mean_of_nine_with_repeated_edges(rows, columns, seed):
    image = np.random.default_rng(seed).uniform(0, 1, (rows, columns)).astype(np.float32)
    got = cases.blurred(image)
    for row, column in itertools.product(range(rows), range(columns)):
        nine = [
            image[min(max(row + i, 0), rows - 1), min(max(column + j, 0), columns - 1)]
            for i, j in itertools.product((-1, 0, 1), repeat=2)
        ]
        assert math.isclose(got[row, column], sum(map(float, nine)) / 9, rel_tol=1e-6)


@given(st.integers(0, 2**32))
def test_the_serial_share_is_the_least_squares_one(seed):
    table = cases.amdahl_table(np.random.default_rng(seed))
    n, t = np.array(table["workers"], float), np.array(table["seconds"]) / table["seconds"][0]
    (share,), *_ = np.linalg.lstsq((1 - 1 / n)[:, None], t - 1 / n, rcond=None)
    assert math.isclose(cases.serial_share(table["workers"], table["seconds"]), share, rel_tol=1e-9)
    assert 0.02 < share < 0.35


@given(st.integers(0, 2**32))
def test_the_smallest_size_is_the_first_at_which_the_gpu_wins(seed):
    table = cases.break_even_table(np.random.default_rng(seed))
    size = cases.smallest_size(*table.values())
    assert not wins(size - 1, **table)
    assert wins(size, **table)


def wins(
    n, cpu_s_per_element, gpu_s_per_element, launch_s, copy_latency_s, copy_bytes_per_s, bytes_per_element
):
    copies = copy_latency_s + n * bytes_per_element / copy_bytes_per_s
    return launch_s + copies + n * gpu_s_per_element < n * cpu_s_per_element


def test_break_even_calls_hold_a_tie_a_never_and_a_first_element():
    table = cases.break_even_table(seeds.generator("01.break_even", "anybody"))
    expected = [call.expected for call in cases.break_even(table)]
    assert expected.count(None) == 2
    assert 141 in expected
    assert 1 in expected


def test_every_learner_has_other_figures():
    tables = {str(cases.amdahl_table(seeds.generator("01.amdahl", str(n)))) for n in range(50)}
    assert len(tables) == 50


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (140, "strictly faster is asked for"),
        (142, "one element fewer is enough already"),
        (141.0, "a float, expected 141, an int"),
        (np.float64(141), "a float64, expected 141, an int"),
        (None, "from some size on it wins"),
        ("141", "a str: '141'"),
        (True, "returned True"),
        (float("nan"), "returned nan"),
    ],
)
def test_a_wrong_size_is_told_why(returned, says):
    table = cases.break_even_table(seeds.generator("01.break_even", "anybody"))
    call = next(call for call in cases.break_even(table) if call.expected == 141)
    assert says in " ".join(why.break_even(call, returned))


def test_a_right_size_may_be_any_kind_of_integer():
    table = cases.break_even_table(seeds.generator("01.break_even", "anybody"))
    call = next(call for call in cases.break_even(table) if call.expected == 141)
    assert why.break_even(call, np.int32(141)) is None


@pytest.mark.parametrize("unit", ["lanes", "fp32 lanes", "Lanes"])
@pytest.mark.parametrize("left_out", ["FLOP/s and bytes/s", ["bandwidth", "clock"], "a CPU's SIMD lanes"])
def test_a_right_claim_may_be_worded_in_many_ways(unit, left_out):
    for verdict in ("misleading", " Misleading "):
        assert why.claim({"verdict": verdict, "number": 6912.0, "unit": unit, "left_out": left_out}) is None


@pytest.mark.parametrize(
    "claim",
    [
        {"verdict": "misleading"},
        {"verdict": 7, "number": 6912, "unit": "lanes", "left_out": "FLOP/s"},
        {"verdict": "misleading", "number": [6912], "unit": "lanes", "left_out": "FLOP/s"},
        {"verdict": "misleading", "number": 6912, "unit": 3, "left_out": "FLOP/s"},
        {"verdict": "misleading", "number": 6912, "unit": "lanes", "left_out": {"a": 1}},
        {"verdict": np.zeros(3), "number": 6912, "unit": "lanes", "left_out": "FLOP/s"},
    ],
)
def test_an_odd_claim_is_a_sentence_and_no_exception(claim):
    result = labkit.exercise("01.claim").check(claim)
    assert result.outcome == "failed"
    assert result.message.endswith(".")


@pytest.mark.parametrize(
    ("claim", "outcome"),
    [
        ({}, "not attempted"),
        ({"verdict": None, "number": " "}, "not attempted"),
        ({"verdict": Hostile(), "number": 1}, "failed"),
        ({n: n for n in range(10**6)}, "error"),
        ([1], "error"),
        (7, "error"),
    ],
    ids=["empty", "blank", "hostile", "large", "list", "number"],
)
def test_what_is_no_claim(claim, outcome):
    assert labkit.exercise("01.claim").check(claim).outcome == outcome


def test_checking_loads_nothing_large_into_the_notebook():
    code = (
        "import sys, labkit; from labkit import cuda\n"
        "labkit.exercise('01.claim').check({'verdict': 'true'}); labkit.exercise('01.amdahl').check(len)\n"
        "print(sorted({'numba', 'torch', 'plotly', 'scipy', 'IPython', 'ipywidgets'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"
