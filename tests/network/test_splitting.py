"""Splitting work: cut, cut by speed, or a shared queue, on a virtual clock and on real ranks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import LabkitError
from labkit.network.ranks import Ranks
from labkit.network.splitting import POLICIES, proportional, run_split, simulate, static

World = Callable[..., Ranks]


@given(
    items=st.integers(0, 1000),
    speeds=st.lists(st.floats(0.125, 8), min_size=1, max_size=9),
)
def test_parts_are_whole_and_all(items: int, speeds: list[float]) -> None:
    parts = proportional(items, speeds)
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == items
    for part, speed in zip(parts, speeds, strict=True):
        assert abs(part.stop - part.start - items * speed / sum(speeds)) < 1


def test_equal_parts() -> None:
    assert static(7, 3) == [slice(0, 3), slice(3, 5), slice(5, 7)]
    assert proportional(10, [3, 1, 0]) == [slice(0, 8), slice(8, 10), slice(10, 10)]
    for speeds in ([], [0, 0], [1, -1]):
        with pytest.raises(LabkitError, match="above zero"):
            proportional(4, speeds)


def test_a_slow_worker_on_the_virtual_clock() -> None:
    costs, speeds = [1.0] * 60, [1.0, 1.0, 0.25]
    equal, cut, queue = (simulate(costs, speeds, policy) for policy in POLICIES)
    assert equal.seconds == 80  # 20 items at a quarter of the speed
    assert equal.imbalance == pytest.approx(80 / 40)
    assert cut.seconds == pytest.approx(28, abs=1)
    assert cut.seconds <= queue.seconds <= 28
    assert [queue.items(worker) for worker in range(3)] == [27, 26, 7]
    assert repr(equal) == "Split(static: 3 workers, 3 pieces, 80 s, imbalance 2.00, modelled)"
    assert "imbalance 2.00 (modelled)" in equal._repr_html_()


def test_a_straggler_that_nobody_knew_of() -> None:
    costs, speeds = [1.0] * 40, [1.0, 1.0]
    slow = {1: (5.0, 4.0)}  # worker 1 is four times slower after five seconds
    assert simulate(costs, speeds, "proportional", slow=slow).seconds == 5 + 15 * 4
    assert simulate(costs, speeds, "dynamic", slow=slow).seconds == 5 + 30 / 1.25
    assert simulate(costs, speeds, "proportional", known=[4.0, 1.0], slow=slow).seconds == 32


def test_what_a_queue_costs() -> None:
    costs, speeds = [0.1] * 100, [1.0] * 10
    fine, coarse = (simulate(costs, speeds, "dynamic", chunk, access=0.05) for chunk in (1, 10))
    assert fine.seconds == pytest.approx(100 * 0.05 + 0.1)  # they stand in line
    assert coarse.seconds == pytest.approx(10 * 0.05 + 1)
    whole = [piece for piece in fine.pieces for _ in range(piece.first, piece.last)]
    assert len(whole) == 100


@pytest.mark.parametrize(
    ("words", "said"), [({"policy": "magic"}, "no way to split"), ({"chunk": 0}, "at least one item")]
)
def test_what_is_no_split(words: dict[str, Any], said: str) -> None:
    with pytest.raises(LabkitError, match=said):
        simulate([1.0], [1.0], **words)
    with pytest.raises(LabkitError, match="above zero"):
        simulate([1.0], [0.0])


def _on_ranks() -> list[Any]:
    from labkit.network import rank_context

    rank = rank_context().rank

    def work(item: int) -> int:
        time.sleep(0.02 if rank == 1 else 0.002)
        return item * item

    found = []
    for policy in (*POLICIES, "dynamic"):
        found.append(run_split(work, 24, policy, speeds=[10, 1, 10] if policy == "proportional" else None))
    return found


def test_on_real_ranks(world: World) -> None:
    every = world(3).run(_on_ranks)
    splits = [split for split, _ in every[0]]
    for number, split in enumerate(splits):
        assert [other[number][0] for other in every] == [split] * 3
        together = {item: value for rank in every for item, value in rank[number][1].items()}
        assert together == {item: item * item for item in range(24)}
        assert sum(len(rank[number][1]) for rank in every) == 24
        assert [split.items(worker) for worker in range(3)] == [len(rank[number][1]) for rank in every]
    equal, cut, queue, again = splits
    assert [cut.items(worker) for worker in range(3)] == [12, 1, 11]
    assert equal.imbalance > cut.imbalance
    for one in (queue, again):
        assert one.items(1) < 8
        assert one.seconds < equal.seconds
    assert repr(queue) == "Split(dynamic: 3 workers, 24 pieces, measured)"


def test_who_is_done_is_seen_to_wait(world: World) -> None:
    def uneven() -> None:
        from labkit.network import rank_context

        rank = rank_context().rank
        run_split(lambda item: time.sleep(0.05 * rank), 8, "static")

    timeline = world(2).run(uneven, trace=True).timeline()
    waited = [timeline.spent(rank)["wait"] for rank in range(2)]
    assert waited[0] > 0.15 > waited[1]


def test_the_figures(require: Callable[..., None]) -> None:
    require("lab")
    require("torch")
    from labkit.network.training.schedules import one_f_one_b
    from labkit.widgets.work_views import pipeline_view, split_view

    figure = split_view(simulate([1.0] * 6, [1.0, 0.5], "dynamic"))
    assert "dynamic: 4 s, imbalance 1.00 (modelled)" in figure.layout.title.text
    assert list(figure.data[0].x) == [1, 2, 1, 1, 2, 1]
    schedule = pipeline_view(one_f_one_b(3, 4))
    assert [len(trace.x) for trace in schedule.data] == [12, 12]
    assert "bubble 33%" in schedule.layout.title.text
