"""What the notebook runs on real ranks, and the answers of the solutions there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from labkit.course import sources
from labkit.network.ranks import Ranks

World = Callable[..., Ranks]


def _solution(name: str, function: str) -> Any:
    return sources.answer(sources.text("solutions", name), function)


def test_answers_run_unchanged_on_real_ranks(world: World) -> None:
    from labkit.course import parallel_training as lab

    learnt = world(2).run(lab.train_with, _solution("07.ddp", "train"), 40)
    assert learnt[0]["weights"] == learnt[1]["weights"]
    assert min(one["accuracy"] for one in learnt) > 0.6

    run = world(2).run(lab.overlap_with, _solution("07.buckets", "overlapped"), trace=True)
    launched = [one for one in run.timeline().events if one.name == "labkit:ring_all_reduce"]
    assert len(launched) == 2 * 2 * 5  # ranks, steps, buckets of at most 64 KiB

    for sent, once in world(2).run(lab.accumulate_with, _solution("07.no_sync", "accumulate")):
        assert sent == once

    names = world(1).run(lab.unused_with, _solution("07.unused", "unused"))[0]
    assert len(names) == 12
    assert all(name.startswith("whole.layers.1.") for name in names)


def test_numpy_answers_run_there_too(world: World) -> None:
    import numpy as np

    two_layers, lookup = _solution("07.tensor_parallel", "two_layers"), _solution("07.embedding", "lookup")

    def both() -> Any:
        from labkit.network.training import World

        here = World()
        one = np.ones((2, 3))
        y, dx = two_layers(here, one, one, np.zeros(2), np.ones((3, 2)), np.ones(3), one)
        ids = np.array([3, 0, 3]) if here.rank else np.array([], dtype=np.int64)
        rows, total = lookup(here, np.full((2, 2), 1.0 + here.rank), ids, np.ones((len(ids), 2)))
        return y.tolist(), dx.tolist(), rows.tolist(), total.tolist()

    zero, one = world(2).run(both)
    assert zero[0] == one[0] == [[13.0] * 3] * 2
    assert zero[1] == one[1] == [[12.0] * 3] * 2
    assert zero[2] == []
    assert one[2] == [[2.0, 2.0], [1.0, 1.0], [2.0, 2.0]]
    assert (zero[3], one[3]) == ([[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [2.0, 2.0]])


def test_drift_and_bytes_of_the_lesson(world: World) -> None:
    from labkit.course import parallel_training as lab

    drift = world(2).run(lab.drifting, 10)
    far = {name: distances for name, (distances, _) in drift[0].items()}
    assert max(far["right"]) == 0
    assert max(far["own start"]) == pytest.approx(min(far["own start"]), rel=1e-3)
    assert far["own gradient"][-1] > far["own gradient"][0] > 0

    each, once = world(2).run(lab.sent_by_accumulation)[0].values()
    assert each == 4 * once > 0

    for one in world(2).run(lab.lookups):
        assert 0 < one["sent"] < 0.05 * one["whole table"]


def test_the_text_is_prepared_once_and_not_in_every_step(world: World) -> None:
    def prepared() -> int:
        from labkit.course import parallel_training as lab

        for step in range(3):
            lab.prose(step)
        return lab._manual.cache_info().misses

    assert world(1).run(prepared)[0] == 1


def test_the_first_bucket_leaves_early_and_the_last_pass_can_be_cut_out(world: World) -> None:
    from labkit.course import parallel_training as lab

    events = world(2).run(lab.step_events, "96KiB")[0]
    kinds = [what for what, _ in events]
    assert kinds.index("launch") < max(n for n, what in enumerate(kinds) if what == "gradient")
    whole = world(2, link="100Mbit/s").run(lab.backward_passes, "96KiB", True, trace=True).timeline()
    last = lab.last_pass(whole, buckets=3)
    reduced = [one for one in last.events if one.name == "labkit:ring_all_reduce"]
    assert len(reduced) == 2 * 3
    assert min(one.start for one in last.stretches) == 0
    assert last.seconds < whole.seconds
    assert last.overlapped is not None


def test_torchs_own_shards_a_list_of_layers(world: World) -> None:
    """FSDP refuses a ModuleList itself: its layers are the units."""

    def shard() -> Any:
        from labkit.course import parallel_training as lab
        from labkit.network.training import measure_steps

        ways = ("torch DDP", "torch FSDP2")
        return [measure_steps(way, lab.writer, lab.prose_loss, steps=2) for way in ways]

    ddp, fsdp = world(2).run(shard)[0]
    assert fsdp.losses == pytest.approx(ddp.losses, rel=1e-3)
    assert fsdp.weight_bytes < 0.6 * ddp.weight_bytes
