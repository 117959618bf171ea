"""Figures of lesson 10 draw what they are given."""

from __future__ import annotations

import pytest

from labkit.hardware.files import rows
from labkit.widgets import traffic_views


def test_a_line_for_each_way() -> None:
    courses = {f"way {n}": [(1000.0 * 4**n, 0.5), (2000.0 * 4**n, 0.9)] for n in range(8)}
    drawn = traffic_views.accuracy_over_bytes(courses, "t")
    assert [line.name for line in drawn.data] == list(courses)
    assert drawn.data[1].x == (4000, 8000)
    assert drawn.data[1].y == (50, 90)
    looks = [(line.line.color, line.line.dash) for line in drawn.data]
    assert len(set(looks)) == 8


def test_a_matrix_of_rank_one_is_left_out_by_nobody() -> None:
    left, sent = traffic_views.singular_values([3.0, 0.0], (10, 2), "t").data
    assert left.y == (0, 0)
    assert sent.y == (60, 120)


def test_what_is_left_out() -> None:
    assert traffic_views.singular_values([4.0, 3.0], (10, 10), "t").data[0].y[0] == pytest.approx(60)


def test_parts_of_published_steps() -> None:
    drawn = traffic_views.step_parts(rows("onebit_adam_profile"), "t")
    assert [bar.name for bar in drawn.data] == ["forward", "backward", "other", "all-reduce"]
    assert len(drawn.data[0].y) == len(set(drawn.data[0].y)) == 11
    assert drawn.data[3].x[0] == 2205.86


def test_break_even_is_marked_where_it_is_known() -> None:
    measured = {"fp32": [(1e6, 0.1), (1e8, 0.01)], "sign": [(1e6, 0.02), (1e8, 0.02)]}
    drawn = traffic_views.step_over_rate(measured, 1e7, "t")
    assert drawn.layout.shapes[0].x0 == 1e7
    assert drawn.layout.annotations[0].x == 7
    assert len(traffic_views.step_over_rate(measured, None, "t").layout.shapes) == 0
    assert drawn.data[0].y == (100, 10)
