"""Lesson 06: what its checks play, what they make of it, and the tables that they hold out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from labkit.course import registry, sources
from labkit.course.checks import Call
from labkit.course.lessons import l06_cases as cases
from labkit.course.lessons import l06_choice as choice
from labkit.course.lessons import l06_record as record
from labkit.course.lessons import l06_why as why
from labkit.hardware import claim, link, published
from labkit.network import exchange, recv, send
from labkit.network.collectives import chunks, ring_reduce_scatter


def solved(name: str) -> Any:
    exercise = registry.exercise(name)
    return sources.answer(sources.text("solutions", name), exercise.function)


def library_ring(data: np.ndarray, rank: int, ranks: int) -> None:
    ring_reduce_scatter.__wrapped__(data)  # its text alone, as if the answer had it


@pytest.mark.parametrize("elements", [0, 1, 5, 8, 23])
@pytest.mark.parametrize("ranks", range(1, 9))
def test_the_librarys_own_ring_passes(ranks: int, elements: int) -> None:
    call = Call({"elements": elements, "ranks": ranks, "dtype": "float64"}, None)
    given = record.reduction(library_ring)(elements, ranks, "float64")
    assert why.reduce_scatter(call, given) is None


def test_worlds_from_1_to_8_and_sizes_that_do_not_divide() -> None:
    assert {ranks for ranks, _ in cases.WORLDS} >= {1, 2, 3, 4, 5, 7, 8}
    assert {elements for _, elements in cases.WORLDS} >= {0, 1}
    assert any(elements % ranks for ranks, elements in cases.WORLDS)
    assert {call.arguments["root"] for call in cases.broadcasts(None)} >= {0, 1, 7}


def test_a_sum_tells_whose_share_is_in_it() -> None:
    total = record.share(7, 0) + record.share(7, 1) + record.share(7, 3) + record.share(7, 3)
    assert total[0] == 2011
    assert why._shares(float(total[6]), 6, 4) == [1, 1, 0, 2]
    assert why._shares(float(total[6]), 5, 4) == [2, 2, 0, 4]  # of element 5, which counts single
    assert why._shares(7.0, 1, 4) is None


def test_a_byte_too_many_is_seen() -> None:
    """The last chunk goes once more round than it has to."""

    def one_more(data: np.ndarray, rank: int, ranks: int) -> None:
        library_ring(data, rank, ranks)
        if rank == 0:
            send(data[:1], 1)
        elif rank == 1:
            recv(data[:1].copy(), 0)

    call = Call({"elements": 8, "ranks": 4, "dtype": "float64"}, None)
    message, _ = why.reduce_scatter(call, record.reduction(one_more)(8, 4, "float64")) or ("", "")
    assert message == (
        "The values are right, but rank 0 sends 56 bytes, target 48 bytes: every chunk but its own, once."
    )


def test_a_message_that_nobody_takes_is_seen() -> None:
    def forgets(data: np.ndarray, rank: int, ranks: int) -> np.ndarray:
        from labkit.network import isend

        coming = data.copy()
        if ranks > 1:
            exchange(data, (rank + 1) % ranks, coming, (rank - 1) % ranks)
            isend(data, (rank + 1) % ranks)
        return coming

    call = Call({"elements": 3, "ranks": 4}, None)
    message, _ = why.shift(call, record.shift(forgets)(3, 4)) or ("", "")
    assert message == "Rank 3 sends 3 elements to rank 0, which never receives them."


@pytest.mark.parametrize(
    "given", [None, 3, {}, {"messages": 1}, {"messages": [], "data": [], "returned": [], "deadlock": ""}]
)
def test_a_record_that_cannot_be_one_is_a_sentence(given: Any) -> None:
    call = Call({"elements": 8, "ranks": 4, "dtype": "float64"}, None)
    assert why.reduce_scatter(call, given) == (
        "What the ranks did cannot be read.",
        "change the elements of data, and leave the array as it is.",
    )


def test_the_rank_that_raised_is_named() -> None:
    def reduce_scatter(data, rank, ranks):
        if rank == 2:
            raise IndexError("too far")

    said = registry.exercise("06.reduce_scatter").check(reduce_scatter)
    assert said.outcome == "error"
    assert "raised IndexError in line" in said.message
    assert "too far (on rank 2 of 4)." in said.message


def test_whoever_learns_the_solution_chooses_right() -> None:
    answer = solved("06.choose")
    for learner in range(150):
        table = cases.drawn(np.random.default_rng(learner))
        held = table["held out"]
        for size in cases.decided(held):
            every = {name: cases.seconds(held, name, size) for name in held}
            call = Call({"tables": table["tables"], "size": size}, (cases.faster(held, size), every))
            assert choice.choose(call, answer(table["tables"], size)) is None


def test_the_learners_table_does_not_hold_what_is_asked_for() -> None:
    table = registry.exercise("06.choose").data()
    asked = [call.arguments for call in cases.choices(table)]
    assert asked[0]["tables"] == table
    for call in asked:
        assert all(call["size"] not in sizes for sizes, _ in call["tables"].values())
    published_ones = [one for one in asked if "8 x H100" in one["tables"] or "16 x A100" in one["tables"]]
    assert len(published_ones) > 10


def test_two_terms_miss_the_published_tables_and_three_do_not() -> None:
    errors = {2: 0.0, 3: 0.0}
    for columns in cases.published_tables().values():
        n, t = (np.array(column, float) for column in columns)
        for terms, powers in ((2, [0.0, 1.0]), (3, [0.0, 0.5, 1.0])):
            found = [choice._fitted(n[::2], t[::2], powers, size) for size in n[1::2]]
            errors[terms] = max(errors[terms], np.abs(np.array(found) / t[1::2] - 1).max())
    assert errors[3] < 0.16 < choice.CLOSE < 0.3 < errors[2]


def test_the_claim_follows_from_the_published_table() -> None:
    row = max(
        (r for r in published("nccl_allreduce") if "H100" in str(r["config"])),
        key=lambda r: float(r["size_bytes"]),
    )
    rate = float(row["size_bytes"]) / float(row["time_us"]) / 1e3
    one_way = (link("nvlink4").raw_GBps or 0.0) * (link("nvlink4").per_gpu or 0)
    assert rate < one_way < 1.75 * rate
    figure = claim("h100-busbw-480").figure
    assert f"{rate:.0f} GB/s" in figure
    assert f"{one_way:g}" in figure
    answer = {"verdict": "misleading", "number": rate, "unit": "GB/s", "left_out": "the factor of a ring"}
    assert choice.claim(answer) is None
    assert choice.claim({**answer, "number": rate * 9 / 8}) is None  # with what the switch spreads
    assert choice.claim({**answer, "number": 1.75 * rate}) is not None


def test_own_chunks_only() -> None:
    data = record.own_chunk(10, 1, 4, "float64")
    mine = chunks(10, 4)[1]
    assert list(data[mine]) == [3, 4, 5]
    assert np.isnan(np.delete(data, range(3, 6))).all()
    assert list(record.own_chunk(4, 3, 4, "int64")) == [-1, -1, -1, 3]


REDUCED = Call({"elements": 8, "ranks": 4, "dtype": "float64"}, None)
SENT = Call({"elements": 8, "ranks": 4, "root": 0, "dtype": "float64"}, None)


def test_a_ready_made_collective_is_no_answer() -> None:
    made = record.reduction(lambda data, rank, ranks: ring_reduce_scatter(data))(8, 4, "float64")
    message, hint = why.reduce_scatter(REDUCED, made) or ("", "")
    assert message == "A ready-made reduce_scatter of labkit.network sends the messages here."
    assert hint == "the task is to write it, with send, recv and exchange."


def test_values_that_no_message_brought_are_no_answer() -> None:
    def broadcast(data: np.ndarray, root: int, rank: int, ranks: int) -> None:
        data[:] = np.arange(len(data))

    def all_reduce(data: np.ndarray, rank: int, ranks: int) -> None:
        data[:] = data / 10**rank * 1111

    def shift(data: np.ndarray, rank: int, ranks: int) -> np.ndarray:
        return data / 10 if rank else data * 10 ** (ranks - 1)

    message, _ = why.broadcast(SENT, record.broadcast(broadcast)(8, 4, 0, "float64")) or ("", "")
    assert message == "The values are right, but 4 ranks sent 0 messages, and cannot do with fewer than 3."
    message, _ = why.all_reduce(REDUCED, record.reduction(all_reduce)(8, 4, "float64")) or ("", "")
    assert message.endswith("cannot do with fewer than 6.")
    message, _ = why.shift(Call({"elements": 8, "ranks": 4}, None), record.shift(shift)(8, 4)) or ("", "")
    assert message.endswith("cannot do with fewer than 4.")


def test_a_world_of_one_gets_a_copy() -> None:
    given = record.shift(lambda data, rank, ranks: data)(5, 1)
    message, _ = why.shift(Call({"elements": 5, "ranks": 1}, None), given) or ("", "")
    assert message == "Rank 0 returns data itself."
    copied = record.shift(lambda data, rank, ranks: data.copy())(5, 1)
    assert why.shift(Call({"elements": 5, "ranks": 1}, None), copied) is None


def test_a_line_on_logarithmic_axes_is_told_apart() -> None:
    n, t = [8.0, 128.0, 2048.0], [1e-5, 2e-5, 9e-5]
    value = float(np.exp(np.interp(np.log(512), np.log(n), np.log(t))))
    assert choice._prediction_why([n, t], 512, value).endswith(
        "a line on logarithmic axes cuts the bend; fit a law."
    )
