"""The judges of lesson 10 beyond its wrong answers: other right ways, every mistake by name, odd records."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from labkit.course import registry, seeds
from labkit.course.checks import Call
from labkit.course.lessons import l10_cases as cases
from labkit.course.lessons import l10_record as record
from labkit.course.lessons import l10_ways as ways
from labkit.course.lessons import l10_why as why
from labkit.course.lessons import l10_why_numbers as numbers
from labkit.network import exchange, rank_context, ring_all_reduce

SIGNS = [call.arguments for call in cases.signs(None)]
ADAM = [call.arguments for call in cases.adam(None)]
LOW_RANK = [call.arguments for call in cases.low_rank(None)]


def by_hand(gradient: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Signs and scale to everybody in two messages each, the scale in fp64."""
    here = rank_context()
    x = gradient + residual
    scale, signs = np.array([np.abs(x).mean()], np.float64), np.packbits(x >= 0)
    own = scale * np.where(x >= 0, 1, -1)
    total = own.copy()
    for ahead in range(1, here.world_size):
        to, source = (here.rank + ahead) % here.world_size, (here.rank - ahead) % here.world_size
        their_scale, their_signs = np.empty_like(scale), np.empty_like(signs)
        exchange(scale, to, their_scale, source)
        exchange(signs, to, their_signs, source)
        total += their_scale * (2.0 * np.unpackbits(their_signs, count=len(x)) - 1)
    return total / here.world_size, x - own


@pytest.mark.parametrize("arguments", SIGNS)
def test_signs_sent_in_another_way_pass(arguments: dict[str, Any]) -> None:
    assert why.signs(Call(arguments, None), record.record_signs(by_hand, **arguments)) is None


@pytest.mark.parametrize("way", ways.SIGNS)
def test_every_mistake_with_signs_is_named(way: str) -> None:
    answer = partial(ways.sign_mean, way=way)
    judged = [why.signs(Call(one, None), record.record_signs(answer, **one)) for one in SIGNS]
    first = next(one for one in judged if one is not None)
    assert first[1] == ways.SIGNS[way]
    assert " on rank " in first[0]


@pytest.mark.parametrize("way", ways.ADAM)
def test_every_mistake_with_adam_is_named(way: str) -> None:
    judged = [why.adam(Call(one, None), cases.played_adam(one, way)) for one in ADAM]
    first = next(one for one in judged if one is not None)
    if way == "one short":
        assert "expected mean" in first[0]
    else:
        assert first[1] == ways.ADAM[way]


@pytest.mark.parametrize("way", ways.LOW_RANK)
def test_every_mistake_with_thin_matrices_is_named(way: str) -> None:
    judged = [why.low_rank(Call(one, None), cases.played_low_rank(one, way)) for one in LOW_RANK]
    assert next(one for one in judged if one is not None)[1] == ways.LOW_RANK[way]


def test_right_answers_pass() -> None:
    assert [why.adam(Call(one, None), cases.played_adam(one)) for one in ADAM] == [None] * 3
    assert [why.low_rank(Call(one, None), cases.played_low_rank(one)) for one in LOW_RANK] == [None] * 3


def test_no_sign_hangs_on_a_rounding() -> None:
    """An answer that adds up in another order must not get another sign."""
    least = []

    def watched(gradient: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = gradient + residual
        least.append(np.abs(x).min() / np.abs(x).mean())
        return ways.sign_mean(gradient, residual)

    for arguments in SIGNS:
        record.record_signs(watched, **arguments)
    for arguments in ADAM:

        def answer(w: Any, gradients: Any, warm_up: int, mean: Any, sign_mean: Any, *settings: Any) -> Any:
            def seen(x: Any, residual: Any) -> Any:
                least.append(np.abs(x + residual).min() / np.abs(x + residual).mean())
                return sign_mean(x, residual)

            return ways.one_bit_adam(w, gradients, warm_up, mean, seen, *settings)

        record.record_adam(answer, **arguments)
    assert min(least) > 1e-4


@pytest.mark.parametrize("nonsense", [None, 7, {}, {"returned": 3}, {"calls": 1, "weights": 2}, [1]])
def test_records_that_are_none(nonsense: Any) -> None:
    for judge, arguments in ((why.signs, SIGNS[0]), (why.adam, ADAM[0]), (why.low_rank, LOW_RANK[0])):
        assert judge(Call(arguments, None), nonsense)[0] == "What the answer returned cannot be read."


@pytest.mark.parametrize("pair", [None, 1.0, (np.zeros(16),), (np.zeros(3), np.zeros(16)), ("a", "b")])
def test_what_is_no_pair_of_arrays(pair: Any) -> None:
    judged = why.signs(Call(SIGNS[0], None), record.record_signs(lambda gradient, residual: pair, **SIGNS[0]))
    assert judged is not None
    assert "two arrays of 16 are asked for" in judged[0]


def test_an_answer_that_gives_nan_is_wrong() -> None:
    nothing = np.full(16, np.nan)
    judged = why.signs(
        Call(SIGNS[0], None), record.record_signs(lambda g, residual: (nothing, nothing), **SIGNS[0])
    )
    assert judged is not None
    assert "nan" in judged[0]


def test_every_learner_has_a_table_that_tells_mistakes_apart() -> None:
    for who in range(40):
        table = cases.step_table(seeds.generator("10.break_even", str(who)))
        call = Call(table, cases.worked_out(**table))
        assert numbers.break_even(call, call.expected) is None
        for place, guesses in enumerate(numbers._guesses(call)):
            for guess, _ in guesses:
                assert not math.isclose(guess, call.expected[place], rel_tol=1e-3)


def test_the_published_row_with_fast_links_loses() -> None:
    *_, loses = cases.break_even(cases.step_table(seeds.generator("10.break_even", "x")))
    faster, now, even = loses.expected
    assert faster < 1
    assert now > even
    assert all(
        (call.expected[0] > 1) == (call.expected[1] < call.expected[2])
        for call in cases.break_even(cases.step_table(seeds.generator("10.break_even", "y")))
    )


@pytest.mark.parametrize("left_out", ["the warm-up", ["FP16 as baseline", "time"], "the uncompressed stage"])
def test_claims_in_other_words(left_out: Any) -> None:
    judged = numbers.claim(
        {"verdict": "Misleading", "number": 4.9, "unit": "times fewer", "left_out": left_out}
    )
    assert judged is None


def test_p_made_orthonormal_by_hand_passes() -> None:
    """Signs of its columns, and with them of Q's, are anybody's choice."""

    def power_sgd(matrix, residual, q):
        x, ranks = matrix + residual, rank_context().world_size
        p = np.ascontiguousarray(x @ q)
        ring_all_reduce(p)
        p /= ranks
        for i in range(p.shape[1]):
            p[:, i] -= p[:, :i] @ (p[:, :i].T @ p[:, i])
            p[:, i] /= np.linalg.norm(p[:, i])
        own = np.ascontiguousarray(x.T @ p)
        mean = own.copy()
        ring_all_reduce(mean)
        mean /= ranks
        return p @ mean.T, x - p @ own.T, mean

    call = next(iter(cases.low_rank(None)))
    assert why.low_rank(call, record.low_rank(power_sgd)(**call.arguments)) is None


def test_tensors_are_arrays_too(require: Any) -> None:
    require("torch")
    import torch

    asked = {"ranks": 2, "steps": 3, "elements": 16, "seed": 1}

    def sign_mean(gradient, residual):
        mean, left = record.signs_averaged(gradient + residual)
        return torch.from_numpy(mean), torch.from_numpy(left)

    assert why.signs(Call(asked, None), record.signs(sign_mean)(**asked)) is None


def test_a_deadlock_names_no_line_of_the_check() -> None:
    def sign_mean(gradient, residual):
        from labkit.network import rank_context, ring_all_gather

        rows = np.zeros((rank_context().world_size, 4), np.uint8)
        if rank_context().rank == 0:
            ring_all_gather(rows)
        return gradient, residual

    said = registry.exercise("10.sign").check(sign_mean)
    assert said.outcome == "error"
    assert said.message.startswith("'sign_mean' raised Deadlock: Nobody can go on: rank 0 waits")
