"""Figures of lesson 08 hold what they are given."""

from __future__ import annotations

import pytest

from labkit.network.fabric.goodput import goodput
from labkit.widgets import multi_node_figures as figures


def test_links_against_all_reduce_in_milliseconds_with_points_over_the_line():
    made = figures.link_speed({25e6: 0.25, 12.5e6: 0.5}, {12.5e6: 0.48, 25e6: 0.24}, "title", "emulated")
    line, points = made.data
    assert list(line.x) == [12.5e6, 25e6]
    assert list(line.y) == pytest.approx([480, 240])
    assert list(points.y) == pytest.approx([250, 500])
    assert points.name == "all-reduce (emulated)"
    assert list(made.layout.xaxis.ticktext) == ["100 Mbit/s", "200 Mbit/s"]


def test_bytes_that_leave_a_node_with_the_least_there_can_be():
    made = figures.across({"two levels": 1.5 * 2**20, "flat": 3.5 * 2**20}, 1.5 * 2**20, "title")
    (bars,) = made.data
    assert list(bars.text) == ["1.5 MiB", "3.5 MiB"]
    (line,) = made.layout.shapes
    assert line.x0 == line.x1 == 1.5 * 2**20


def test_failures_come_n_times_as_often():
    made = figures.failures([1, 100], "1000h", "1min", "5min", "title")
    between, interval, share = made.data
    assert list(between.y) == pytest.approx([1000, 10])
    assert list(interval.y) == pytest.approx(
        [goodput(n, "1000h", "1min").best_interval_s / 3600 for n in (1, 100)]
    )
    assert share.yaxis == "y2"
    assert 0 < share.y[1] < share.y[0] < 1


def test_a_resumed_run_has_a_line_for_each_life_and_a_band_between():
    steps = [figures.Step(100.0 + n, n + 1, 4, 2.0) for n in range(5)]
    steps += [figures.Step(110.0 + n, n + 4, 3, 1.0) for n in range(4)]  # steps 4 and 5 are made again
    made = figures.resumed(steps, "title")
    first, second = made.data
    assert (first.name, second.name) == ("4 ranks, from step 1", "3 ranks, from step 4")
    assert list(second.x) == [10, 11, 12, 13]
    (band,) = made.layout.shapes
    assert (band.x0, band.x1) == (4, 10)
    assert len(figures.resumed(steps[:5], "title").data) == 1
