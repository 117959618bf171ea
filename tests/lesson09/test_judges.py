"""Feedback of lesson 09 on answers that its wrong answers do not cover."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.course.checks import Call
from labkit.course.lessons import l09_cases as cases
from labkit.course.lessons import l09_why as why
from labkit.course.lessons import l09_why_loads as loads

CALL = Call({"dims": (4, 4), "source": (0, 0), "target": (1, 1)}, cases.way((4, 4), (0, 0), (1, 1)))
PAIR = {"links": {"a->b": 10e9, "b->a": 10e9}, "flows": [(5e9, ["a->b"]), (1e9, ["b->a"])]}
HOT = Call(PAIR, ("a->b", 5e9, 0.5))
TWO = Call({"groups": [[0, 1], [2, 3]], "racks": 2, "hosts": 2}, cases.gate([[0, 1], [2, 3]]))


def test_right_answers_pass_in_any_form():
    assert why.route(CALL, [list(stop) for stop in CALL.expected]) is None
    assert why.route(CALL, np.array(CALL.expected)) is None
    assert loads.hot_link(HOT, ["a->b", np.float64(5e9), 0.5]) is None
    assert loads.place(TWO, np.array([0, 1, 2, 3])) is None
    assert loads.place(TWO, (3, 2, 1, 0)) is None


@pytest.mark.parametrize(
    ("judge", "call", "answer", "says"),
    [
        (why.route, CALL, None, "a list of coordinates"),
        (why.route, CALL, [(0, 0), (1.0, 0), (1, 1)], "a list of coordinates"),
        (why.route, CALL, [(1, 1), (1, 0), (0, 0)], "this is the way back"),
        (loads.hot_link, HOT, ("c", 1, 1), "give the name as it stands"),
        (loads.hot_link, HOT, ("a->b", 6e9, 0.6), "the other direction is a link of its own"),
        (loads.hot_link, HOT, ("a->b", 5e9, None), "numbers are asked for"),
        (loads.hot_link, HOT, ("a->b", 0.5, 5e9), "first the bytes"),
        (loads.place, TWO, [0, 1, 2], "a list of 4 hosts"),
        (loads.place, TWO, [0, 0, 1, 2], "a host takes one rank"),
        (loads.place, TWO, [0, 2, 1, 3], "rings leave rack"),
        (loads.place, TWO, [True, False, 2, 3], "a list of 4 hosts"),
    ],
)
def test_feedback(judge, call, answer, says):
    assert says in " ".join(judge(call, answer))


def test_a_load_is_told_in_the_gb_of_the_task():
    message, _ = loads.place(TWO, [0, 2, 1, 3])
    assert message.endswith("with 2 GB; gate 1 GB.")
