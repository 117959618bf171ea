"""Timelines: the states of each rank on one clock, overlap, files; on made traces and on real ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from labkit.errors import LabkitError
from labkit.network import intervals, timeline
from labkit.network.launch import tracing
from labkit.network.ranks import Ranks
from labkit.network.timeline import Stretch, merge

World = Callable[..., Ranks]
MS = 1_000_000


def _trace(begin: int, end: int, *rows: tuple[str, str, int, int]) -> dict[str, Any]:
    """Times in ms after an arbitrary moment of the wall clock."""
    start = 1_700_000_000 * 1_000_000_000
    moved = [(kind, name, start + a * MS, start + b * MS) for kind, name, a, b in rows]
    return {"begin": start + begin * MS, "end": start + end * MS, "rows": moved, "left_out": 0}


def _spans(found: Any, rank: int) -> list[tuple[str, str, int, int]]:
    mine = [one for one in found.stretches if one.rank == rank]
    return [(one.state, one.name, round(1e3 * one.start), round(1e3 * one.end)) for one in mine]


@pytest.fixture
def straggler() -> timeline.Timeline:
    """Rank 1 is late for the first all-reduce; the second one is asynchronous, and hidden for the most part."""
    return merge(
        [
            _trace(
                0,
                100,
                ("call", "all_reduce", 10, 50),
                ("flight", "gloo:all_reduce", 11, 50),
                ("call", "all_reduce", 60, 61),
                ("flight", "gloo:all_reduce", 60, 80),
                ("op", "aten::mm", 62, 70),
                ("call", "wait", 75, 80),
            ),
            _trace(
                0,
                100,
                ("call", "all_reduce", 40, 50),
                ("flight", "gloo:all_reduce", 41, 50),
                ("call", "all_reduce", 60, 61),
                ("flight", "gloo:all_reduce", 60, 80),
                ("call", "wait", 75, 80),
            ),
        ],
        "gloo",
    )


def test_waiting_ends_when_the_last_one_comes(straggler: timeline.Timeline) -> None:
    assert _spans(straggler, 0) == [
        ("compute", "", 0, 10),
        ("wait", "all_reduce", 10, 40),
        ("communicate", "all_reduce", 40, 50),
        ("compute", "", 50, 60),
        ("communicate", "all_reduce", 60, 61),
        ("compute", "", 61, 75),
        ("communicate", "wait", 75, 80),
        ("compute", "", 80, 100),
    ]
    assert _spans(straggler, 1)[:2] == [("compute", "", 0, 40), ("communicate", "all_reduce", 40, 50)]
    assert straggler.spent(0) == pytest.approx({"compute": 0.054, "communicate": 0.016, "wait": 0.03})


def test_overlap_is_the_hidden_part_of_what_is_in_flight(straggler: timeline.Timeline) -> None:
    assert [pytest.approx(pair) for pair in straggler.flights(0)] == [(0.041, 0.05), (0.06, 0.08)]
    assert straggler.overlapped == pytest.approx(14 / 29)


def test_a_receive_waits_for_its_own_send() -> None:
    found = merge(
        [
            _trace(0, 50, ("call", "send 2", 30, 31)),
            _trace(0, 50, ("call", "send 2", 5, 6)),
            _trace(0, 50, ("call", "recv 1", 0, 7), ("call", "recv 0", 10, 33)),
        ],
        "gloo",
    )
    assert ("wait", "recv 1", 0, 5) in _spans(found, 2)
    assert ("wait", "recv 0", 10, 30) in _spans(found, 2)
    assert _spans(found, 0)[1] == ("communicate", "send 2", 30, 31)
    assert found.overlapped is None


def test_events_are_in_order(straggler: timeline.Timeline) -> None:
    assert straggler.order(0, "call", "op") == ("all_reduce", "all_reduce", "aten::mm", "wait")
    starts = [one.start for one in straggler.events]
    assert starts == sorted(starts)


def test_saved_and_opened_again(straggler: timeline.Timeline, tmp_path: Path) -> None:
    path = straggler.save(tmp_path / "run.json")
    assert timeline.load(path) == straggler
    assert repr(straggler) == "Timeline(2 ranks on gloo, 11 events, measured)"
    assert "30 ms" in straggler._repr_html_()


@pytest.mark.parametrize("content", ["", "[]", '{"format": "other"}', '{"format": "labkit timeline 1"}'])
def test_another_file_is_a_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(LabkitError, match="is not a timeline"):
        timeline.load(tmp_path / "x.json")
    with pytest.raises(LabkitError, match="cannot be opened"):
        timeline.load(tmp_path / "missing.json")


def test_chrome_trace(straggler: timeline.Timeline, tmp_path: Path) -> None:
    events = json.loads(straggler.chrome_trace(tmp_path / "c.json").read_text())["traceEvents"]
    spans = [one for one in events if one["ph"] == "X"]
    assert len(spans) == len(straggler.stretches) + len(straggler.events)
    waiting = next(one for one in spans if one["cat"] == "wait")
    assert (waiting["pid"], waiting["ts"], waiting["dur"]) == (0, pytest.approx(1e4), pytest.approx(3e4))
    assert {one["args"]["name"] for one in events if one["name"] == "process_name"} == {"rank 0", "rank 1"}


def test_the_gantt_has_a_bar_for_each_stretch(
    straggler: timeline.Timeline, require: Callable[..., None]
) -> None:
    require("lab")
    from labkit.widgets.timeline import gantt

    figure = gantt(straggler)
    bars = {trace.name: trace for trace in figure.data}
    assert set(bars) == {"compute", "communicate", "wait", "in flight"}
    assert [round(value) for value in bars["wait"].base] == [10]
    assert [round(value) for value in bars["wait"].x] == [30]
    assert "48% of communication overlapped (measured)" in figure.layout.title.text


def test_intervals() -> None:
    assert intervals.union([(3, 4), (0, 1), (1, 2), (1.5, 1.7), (5, 5)]) == [(0, 2), (3, 4)]
    assert intervals.intersection([(0, 2), (3, 6)], [(1, 4), (5, 9)]) == [(1, 2), (3, 4), (5, 6)]
    assert intervals.length([(0, 2), (3, 3.5)]) == 2.5


def test_too_many_operators_do_not_crowd_out_communication() -> None:
    rows = [("op", f"aten::{k}", k, k + 1, 1) for k in range(50)]
    rows += [("call", "all_reduce", 60, 70, 1), ("flight", "gloo", 61, 69, 0), ("call", "wait", 80, 81, 1)]
    kept = tracing._within_limit(rows, 10)
    assert len(kept) == 10
    assert [row[1] for row in kept[:7]] == [f"aten::{k}" for k in range(7)]
    assert [row[1] for row in kept[7:]] == ["all_reduce", "gloo", "wait"]


def test_a_real_run_shows_the_straggler_and_the_overlap(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    def step() -> int:
        import time

        import torch
        import torch.distributed as dist

        data = torch.ones(1 << 20)
        time.sleep(0.2 * dist.get_rank())
        dist.all_reduce(data)
        work = dist.all_reduce(data, async_op=True)
        end = time.monotonic() + 0.1
        while time.monotonic() < end:
            torch.ones(64, 64) @ torch.ones(64, 64)
        work.wait()
        return dist.get_rank()

    results = world(2).run(step, trace=True)
    found = results.timeline()
    assert results == [0, 1]
    assert found.order(0, "call") == ("all_reduce", "all_reduce", "wait")
    assert "aten::matmul" in found.order(1, "op")
    waits = [one for one in found.stretches if one.state == "wait" and one.end - one.start > 0.1]
    assert [(one.rank, one.name) for one in waits] == [(0, "all_reduce")]
    assert 0.15 < waits[0].end - waits[0].start < 0.35
    assert found.overlapped is not None
    assert 0.1 < found.overlapped <= 1
    _no_gaps(found.stretches)
    assert capsys.readouterr().err == ""  # the profiler greets nobody


def _no_gaps(stretches: tuple[Stretch, ...]) -> None:
    for before, after in pairwise(stretches):
        if before.rank == after.rank:
            assert before.end == after.start
