"""What the checks of lesson 05 let pass: every right answer, however it comes about, for every learner's own table."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.course.checks import Call
from labkit.course.lessons import l05_cases as cases
from labkit.course.lessons import l05_halo, l05_record, l05_spin, l05_ways, l05_why
from labkit.network import exchange, irecv, isend
from labkit.network.splitting import proportional
from labkit.network.workloads import heat_step
from labkit.telemetry.traces import spinning

LEARNERS = range(8)


def _random(learner: int) -> np.random.Generator:
    return np.random.default_rng((5, learner))


@given(items=st.integers(0, 300), speeds=st.lists(st.floats(0.25, 8), min_size=1, max_size=7))
def test_largest_remainders_pass_and_one_item_moved_does_not(items: int, speeds: list[float]) -> None:
    call = Call({"items": items, "speeds": speeds}, None)
    counts = [part.stop - part.start for part in proportional(items, speeds)]
    assert l05_why.split(call, counts) is None
    assert l05_why.split(call, np.array(counts)) is None
    lost = [*counts[:-1], counts[-1] + 1]
    assert "done twice" in l05_why.split(call, lost)[0]  # type: ignore[index]


def test_of_equal_remainders_anybody_may_be_first() -> None:
    call = Call({"items": 10, "speeds": [1, 1, 1]}, None)
    assert all(l05_why.split(call, counts) is None for counts in ([4, 3, 3], [3, 4, 3], (3, 3, 4)))
    assert l05_why.split(call, [5, 3, 2]) is not None
    uneven = Call({"items": 8, "speeds": [1, 1, 1, 2]}, None)
    passed = {counts for counts in permutations((3, 2, 2, 1)) if l05_why.split(uneven, counts) is None}
    assert passed == {(2, 2, 1, 3), (2, 1, 2, 3), (1, 2, 2, 3)}


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_race_is_what_a_clock_says(learner: int) -> None:
    """Against a clock that ticks, a hundredth of a second at a time."""
    table = cases.race_table(_random(learner))
    equal_s, queue_s, owners = cases.raced(**table)
    left, owner, at = [0] * 3, [], 0  # hundredths until each is free
    waiting = list(enumerate(table["costs"]))
    while waiting or any(left):
        for worker in range(3):
            if not left[worker] and waiting:
                _, cost = waiting.pop(0)
                owner.append(worker)
                left[worker] = round(100 * cost / table["speeds"][worker])
        at += 1
        left = [max(0, one - 1) for one in left]
    assert owner == owners
    assert at / 100 == pytest.approx(queue_s)
    parts = [sum(table["costs"][4 * w : 4 * w + 4]) / table["speeds"][w] for w in range(3)]
    assert equal_s == pytest.approx(max(parts))
    assert l05_why.race(Call(table, (equal_s, queue_s, owners)), (equal_s, queue_s, owners)) is None


@pytest.mark.parametrize("learner", LEARNERS)
def test_any_ring_with_the_best_worst_edge_passes(learner: int) -> None:
    matrix = cases.ring_table(_random(learner))["matrix"]
    (call,) = [one for one in cases.rings({"matrix": matrix}) if one.arguments["matrix"] is matrix]
    passed = 0
    for order in permutations(range(6)):
        good = min(matrix[order[k - 1]][order[k]] for k in range(6)) == call.expected
        assert (l05_why.ring(call, list(order)) is None) == good
        passed += good
    assert passed >= 12  # from every beginning, both ways round


def test_the_first_gpu_again_is_told() -> None:
    call = Call({"matrix": [[0.0, 30.0], [30.0, 0.0]]}, 30.0)
    assert l05_why.ring(call, [1, 0]) is None
    assert "goes back by itself" in l05_why.ring(call, [0, 1, 0])[1]  # type: ignore[index]


def _with_handles(part: Any, rank: int, ranks: int, steps: int) -> Any:
    """Both sides at once, by isend and irecv."""
    padded = np.zeros((len(part) + 2, part.shape[1]))
    padded[1:-1] = part
    for _ in range(steps):
        started = []
        for other, mine, halo in ((rank - 1, 1, 0), (rank + 1, -2, -1)):
            if 0 <= other < ranks:
                started += [irecv(padded[halo], other), isend(padded[mine], other)]
        for one in started:
            one.wait()
        padded = np.vstack([padded[:1], heat_step(padded), padded[-1:]])
    return padded[1:-1].copy()


def _odd_and_even(part: Any, rank: int, ranks: int, steps: int) -> Any:
    """In two halves: pairs (0, 1), (2, 3) first, then (1, 2), (3, 4)."""
    now = part
    for _ in range(steps):
        above, below = np.zeros((2, 1, part.shape[1]))
        for first in (0, 1):
            if rank % 2 == first and rank + 1 < ranks:
                exchange(now[-1].copy(), rank + 1, below, rank + 1)
            elif rank % 2 != first and rank > 0:
                exchange(now[0].copy(), rank - 1, above, rank - 1)
        now = heat_step(np.concatenate([above, now, below]))
    return now


@pytest.mark.parametrize("answer", [_with_handles, _odd_and_even])
def test_a_halo_may_be_exchanged_in_any_way_that_works(answer: Any) -> None:
    for call in cases.plates(None):
        recorded = l05_record.record_halo(answer, **call.arguments)
        assert l05_halo.halo(call, recorded) is None, call


def test_a_halo_of_the_wrong_type_or_form_is_told() -> None:
    (call, *_) = cases.plates(None)
    good = l05_record.record_halo(_with_handles, **call.arguments)
    for band, said in (
        (np.zeros((6, 5), np.float32), "an array of float32"),
        ([[0.0] * 5] * 6, "a list"),
        (np.zeros((8, 5)), "shape (8, 5), expected (6, 5)"),
    ):
        message, _ = l05_halo.halo(call, {**good, "returned": [band]})  # type: ignore[misc]
        assert said in message
    assert l05_halo.halo(call, {"returned": 3}) is not None


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_guilty_and_what_proves_it(learner: int) -> None:
    call = Call(cases.spin_table(_random(learner)), None)
    told = spinning.truth(call.arguments["run"])
    rank = told.rank
    for series in (f"rank.{rank}.compute", f"rank.{(rank + 1) % 4}.wait"):
        assert l05_spin.spin(call, (rank, series, told.start, told.end)) is None
        assert l05_spin.spin(call, (rank, series, told.start + 1.5, told.end - 1.5)) is None
        assert l05_spin.spin(call, (rank, series, told.start + 2.5, told.end)) is not None
    power = l05_spin.spin(call, (rank, f"gpu.{rank}.power", told.start, told.end))
    hot = l05_spin.spin(call, (rank, f"gpu.{rank}.temperature", told.start, told.end))
    assert (power is None, hot is None) == (told.cause == "work", told.cause == "heat")
    for other in {0, 1, 2, 3} - {rank}:
        message, why = l05_spin.spin(call, (other, f"rank.{other}.compute", told.start, told.end))  # type: ignore[misc]
        assert f"Rank {other} is not the one" in message
        assert "victim" in why
        assert ("all the time" in why) == (other == told.frugal)


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_way_between_gpus_costs_more_than_the_one_before(learner: int) -> None:
    table = cases.legs_table(_random(learner))
    off: tuple[list[str], ...] = ([], [cases.P2P_OFF], [cases.P2P_OFF, cases.SHM_OFF])
    ways = [cases.way_left(dict.fromkeys(names, "1"), **table) for names in off]
    assert [copied // table["size"] for _, copied, _ in ways] == [1, 2, 4]
    seconds = [one for *_, one in ways]
    assert seconds[1] < seconds[2]
    assert seconds[0] < seconds[2]
    for call in cases.ways(table):
        assert l05_ways.way(call, call.expected) is None


@pytest.mark.parametrize("unit", ["us", "µs", "microseconds"])
def test_the_claim_can_be_answered_in_several_words(unit: str) -> None:
    for left_out in ("NVSwitch hops", ["message size"], "with P2P off 16 to 24 us"):
        answer = {"verdict": "False", "number": 2.1, "unit": unit, "left_out": left_out}
        assert l05_ways.claim(answer) is None


def test_whole_floats_are_told_what_they_are() -> None:
    call = Call({"items": 12, "speeds": [1, 1, 1]}, None)
    _, hint = l05_why.split(call, [4.0, 4.0, 4.0])
    assert "these are floats" in hint
    assert l05_why.split(call, [4, 4, 4]) is None
