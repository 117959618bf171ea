"""Trainings that are killed at given points: what a life is, what is learnt in it, what is left after it."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from labkit.course.lessons import l08_cases as cases
from labkit.course.lessons import l08_failing as failing
from labkit.course.lessons import l08_jobs as jobs
from labkit.course.lessons.l08_record import record_resume
from labkit.course.lessons.l08_why_resume import uninterrupted
from labkit.network.fabric.goodput import best_interval, useful

SETTINGS = {"samples": 48, "batch": 12, "epochs": 3, "every": 3}


def straight(job, path):
    """No checkpoint at all."""
    model, optimizer = job.new()
    for step in range(job.steps):
        epoch, place = divmod(step, job.steps_per_epoch)
        batch = job.order(epoch)[place * job.batch : (place + 1) * job.batch]
        job.update(model, optimizer, batch[job.rank :: job.world])
    return model


@pytest.mark.parametrize("world", [1, 2, 3, 4])
def test_any_number_of_ranks_learns_the_same(world):
    record = record_resume(straight, SETTINGS, [[world, "", 0]])
    wanted = uninterrupted(SETTINGS)
    assert record["seen"] == wanted.seen
    assert np.allclose(record["weights"][world - 1], wanted.weights, rtol=1e-12)
    assert record["loss"] < 1.6  # of ten digits, ln 10 = 2.3 to begin with
    assert [life["updates"] for life in record["lives"]] == [12]


def test_a_kill_in_an_update_leaves_it_out_and_the_next_life_begins_anew():
    record = record_resume(straight, SETTINGS, [[4, "update", 8], [2, "", 0]])
    assert [life["updates"] for life in record["lives"]] == [7, 12]
    assert record["seen"] == uninterrupted(SETTINGS).seen


def test_a_kill_while_saving_leaves_half_a_file(tmp_path):
    life = jobs.Life(1, ("save", 2), SETTINGS)
    job = jobs.Job(life, 0)
    job.save({"step": 3}, tmp_path / "first")
    assert job.load(tmp_path / "first") == {"step": 3}
    with pytest.raises(jobs.Killed):
        job.save({"step": 6, "more": list(range(100))}, tmp_path / "second")
    with pytest.raises(Exception, match="the checkpoint is cut off"):
        job.load(tmp_path / "second")
    assert life.dead


def test_ranks_that_are_out_of_step_are_told_at_once():
    def uneven(job, path):
        model, optimizer = job.new()
        for step in range(3 + job.rank):
            job.update(model, optimizer, [step])
        return model

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # ranks come and leave in every order
    try:
        for _ in range(40):
            (life,) = record_resume(uneven, SETTINGS, [[2, "", 0]])["lives"]
            assert life["trouble"][0] == "out of step"
            assert life["updates"] == 3
    finally:
        sys.setswitchinterval(before)


def test_ranks_in_step_are_never_told_otherwise(tmp_path):
    def even(job, path):
        model, optimizer = job.new()
        for step in range(3):
            job.update(model, optimizer, [step])
        return model

    for _ in range(40):
        (life,) = record_resume(even, SETTINGS, [[3, "", 0]])["lives"]
        assert not life["trouble"]


def test_an_error_on_one_rank_ends_all_and_is_told_with_its_rank():
    def fails(job, path):
        model, optimizer = job.new()
        job.update(model, optimizer, [0])
        if job.rank == 1:
            raise ValueError("no such thing")
        job.update(model, optimizer, [1])
        return model

    (life,) = record_resume(fails, SETTINGS, [[3, "", 0]])["lives"]
    assert life["trouble"] == ["raised", "rank 1 of 3 raised ValueError: no such thing"]


def test_every_plan_of_the_check_can_be_lived_through():
    """A job that resumes as it should is alive whenever the plan means to kill it."""
    for call in cases.interruptions(None):
        job = call.arguments
        steps, saved = job["epochs"] * (job["samples"] // job["batch"]), 0
        for _, kind, number in job["plan"]:
            if kind == "update":
                reached = saved + number - 1
                assert reached < steps, job["plan"]
                saved = reached // job["every"] * job["every"]
            elif kind == "save":
                reached = (saved // job["every"] + number) * job["every"]
                assert reached <= steps, job["plan"]
                saved = reached - job["every"]
            else:
                saved = steps
        assert saved == steps


@pytest.mark.parametrize(("mean", "checkpoint", "restart"), [(5e4, 60.0, 300.0), (8e3, 200.0, 600.0)])
def test_failures_played_through_agree_with_dalys_formula(mean, checkpoint, restart):
    for interval in (best_interval(mean, checkpoint), mean / 3):
        share = 150 * mean / failing.seconds(interval, mean, checkpoint, restart)
        assert share == pytest.approx(useful(interval, mean, checkpoint, restart), rel=0.1)
    best, least = failing.best(mean, checkpoint, restart)
    assert 0.5 < best / best_interval(mean, checkpoint) < 2
    assert least <= failing.seconds(best_interval(mean, checkpoint), mean, checkpoint, restart)


def test_lines_meet_where_they_should():
    assert cases.meeting([(1.0, 3.0), (5.0, 1.0)]) == 2.0
    assert cases.meeting([(5.0, 3.0), (1.0, 1.0)]) == 0.0
    assert cases.meeting([(1.0, 1.0), (2.0, 1.0)]) == np.inf
    assert cases.meeting([(2.0, 1.0), (1.0, 1.0)]) == 0.0
    for seed in range(50):
        table = cases.message_table(np.random.default_rng(seed))
        assert 4096 < cases.crossing(**table) < 2**19
