"""Where bytes come from, and the judges of recorded programs, on what their wrong answers do not cover."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import labkit
from labkit.compute.device_model.flow import Flow, Piece
from labkit.course import seeds
from labkit.course.checks import Call
from labkit.course.lessons import l03_cases as cases
from labkit.course.lessons import l03_programs as programs
from labkit.course.lessons import l03_record as record
from labkit.course.lessons import l03_why as why

MIB = 2**20
CALL = Call({"size": 8 * MIB, "chunks": 2, "chunk_s": 1e-3}, None)


def two_at_a_time(d, x, y, chunks, chunk_s, streams=2):
    """Chunks take turns on a few streams and places: a correct answer that is not the solution's."""
    largest = max(part.size for part in x.split(chunks))
    lanes = [(d.stream(), d.buffer(f"a{n}", largest), d.buffer(f"b{n}", largest)) for n in range(streams)]
    for number, (p, t) in enumerate(zip(x.split(chunks), y.split(chunks), strict=True)):
        s, a, b = lanes[number % streams]
        q, r = (replace(place, stop=p.size) for place in (a, b))
        d.copy_in(p, q, s)
        d.kernel("f", reads=q, writes=r, takes=chunk_s, stream=s)
        d.copy_out(r, t, s)


def test_other_right_answers_pass():
    for call in cases.programs(None):
        assert programs.pipeline(call, record.record_pipeline(two_at_a_time, **call.arguments)) is None


def test_breadth_first_passes_too():
    def breadth(d, x, y, chunks, chunk_s):
        a, streams = d.buffer("a", x.size), [d.stream() for _ in range(chunks)]
        for s, p, q in zip(streams, x.split(chunks), a.split(chunks), strict=True):
            d.copy_in(p, q, s)
        for s, q in zip(streams, a.split(chunks), strict=True):
            d.kernel("f", reads=q, writes=q, takes=chunk_s, stream=s)
        for s, q, t in zip(streams, a.split(chunks), y.split(chunks), strict=True):
            d.copy_out(q, t, s)

    assert programs.pipeline(CALL, record.record_pipeline(breadth, **CALL.arguments)) is None


@pytest.mark.parametrize("nonsense", [None, 7, [], [{}], ["x"], [{"kind": "kernel"}]])
def test_records_that_are_none_are_no_program(nonsense):
    for judge in (programs.pipeline, programs.three_streams):
        assert judge(CALL, nonsense)[0] == "Nothing was submitted to d."
    trained = Call({"size": 8 * MIB, "steps": 2, "step_s": 1e-3}, None)
    assert programs.training(trained, nonsense)[0] == "There are 0 kernels for 2 steps."


def test_wrong_durations_and_silent_kernels():
    def silent(d, x, y, chunks, chunk_s, takes=None, reads=True):
        a = d.buffer("a", x.size)
        for p, q, t in zip(x.split(chunks), a.split(chunks), y.split(chunks), strict=True):
            s = d.stream()
            d.copy_in(p, q, s)
            d.kernel("f", reads=q if reads else (), writes=q, takes=takes or chunk_s, stream=s)
            d.copy_out(q, t, s)

    said = programs.pipeline(CALL, record.record_pipeline(silent_with(silent, takes="9ms"), **CALL.arguments))
    assert said[0] == "the kernel takes 9 ms, and one takes 1 ms."
    said = programs.pipeline(CALL, record.record_pipeline(silent_with(silent, reads=False), **CALL.arguments))
    assert said[0] == "Kernel 'f' reads nothing."


def silent_with(function, **more):
    return lambda *arguments: function(*arguments, **more)


def test_bytes_are_followed_through_copies_and_kernels():
    with labkit.device_timeline() as d:
        x, a, b = d.host("x", 100), d.buffer("a", 200), d.buffer("b", 50)
        y = d.host("y", 60, filled=False)
        d.copy_in(x, a.split(2)[1])
        d.kernel("f", reads=a.split(4)[2], writes=b)
        d.copy_out(b, y.split(6)[0]._part(10, 60))
    flow = Flow(d.operations)
    assert flow.of(a) == [Piece(100, 200, "x", 0, 100)]
    assert flow.of(b) == [Piece(0, 50, "x", 0, 50, 1)]
    assert flow.of(y) == [Piece(10, 60, "x", 0, 50, 1)]
    assert flow.of(x.split(4)[1]) == [Piece(25, 50, "x", 25, 50)]


def test_a_summary_is_of_all_that_was_read_and_later_writes_win():
    with labkit.device_timeline() as d:
        x, a, loss = d.host("x", 100), d.buffer("a", 100), d.buffer("loss", 4)
        d.copy_in(x, a)
        d.kernel("f", reads=a, writes=loss)
        d.kernel("g", reads=a.split(2)[0], writes=a.split(2)[1])
    flow = Flow(d.operations)
    assert flow.of(loss) == [Piece(0, 4, "x", 0, 100, 1)]
    assert flow.of(a) == [Piece(0, 50, "x", 0, 50), Piece(50, 100, "x", 0, 50, 1)]


def test_tables_are_seeded_and_ask_for_more_than_a_greedy_plan():
    for who in range(20):
        table = cases.stages_table(seeds.generator("03.offload", str(who)))
        assert table == cases.stages_table(seeds.generator("03.offload", str(who)))
        best = cases.best(table)
        assert set(best) == {"cpu", "gpu"}
        assert cases.duration(best, **table) < cases.duration(cases.faster_sides(table), **table)
        assert why.offload(Call(table, best), list(best)) is None


def test_the_first_chain_tells_all_short_cuts_apart():
    """So that a wrong answer is told the same reason whoever hands it in."""
    first = next(cases.offload(cases.stages_table(seeds.generator("03.offload", "0"))))
    table = first.arguments
    plans = [
        first.expected,
        cases.faster_sides(table),
        why.there_and_back(table),
        why.without_return(table),
        ("gpu",) * 5,
        ("cpu",) * 5,
    ]
    assert len(set(plans)) == 6
    assert [why.offload(first, plan) is None for plan in plans] == [True] + [False] * 5


def test_plans_that_tie_with_the_best_pass():
    table = {"cpu_s": [1.0], "gpu_s": [0.5], "bytes_between": [1, 1], "alpha_s": 0.15, "bytes_per_s": 10.0}
    call = Call(table, cases.best(table))
    assert why.offload(call, ["cpu"]) is None
    assert why.offload(call, ("gpu",)) is None


def test_fits_of_tables_are_near_what_made_them():
    for who in range(20):
        table = cases.link_table(seeds.generator("03.alpha_beta", str(who)))
        alpha, beta, predicted = cases.fitted(**table)
        assert 3e-6 < alpha < 50e-6
        assert 5e9 < beta < 60e9
        call = Call(table, (alpha, beta, predicted))
        assert why.alpha_beta(call, [np.float64(alpha), beta, predicted]) is None
        assert why.alpha_beta(call, (alpha, float("nan"), predicted))[0].endswith("for beta.")


@pytest.mark.parametrize("returned", [None, [], 3, [{"samples": 3}], [{"samples": [["a", 1]], "log": []}]])
def test_feeds_that_cannot_be_read_fail(returned):
    call = Call({"samples": 10, "per_shard": 5, "workers": 1}, None)
    assert why.feed(call, returned) is not None
