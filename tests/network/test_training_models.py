"""Layers, pipelines and tables cut over ranks: each equal to the whole on one, with exact bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import LabkitError
from labkit.network.ranks import Ranks
from labkit.network.training.schedules import Schedule, Step, gpipe, one_f_one_b

World = Callable[..., Ranks]


def _mlp() -> Any:
    import torch
    from torch import nn

    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 4)).double()


def _input() -> Any:
    import torch

    return torch.linspace(-1, 1, 2 * 3 * 5, dtype=torch.float64).view(2, 3, 5).requires_grad_()


def _cut() -> dict[str, Any]:
    from labkit.network.p2p import endpoint
    from labkit.network.training import ColumnParallelLinear, RowParallelLinear

    here: Any = endpoint()
    whole, x = _mlp(), _input()
    first, last = ColumnParallelLinear(whole[0]), RowParallelLinear(whole[2])
    out = last(whole[1](first(x)))
    forward = sum(here.sent.values())
    out.square().sum().backward()
    backward = sum(here.sent.values()) - forward
    gathered = ColumnParallelLinear(whole[0], gather=True)
    y = _input()
    gathered(y).sin().sum().backward()
    return {
        "out": out.detach(),
        "x": x.grad,
        "weight": last.weight.grad,
        "bias": last.bias.grad,
        "gathered": gathered(y).detach(),
        "gathered weight": gathered.weight.grad,
        "y": y.grad,
        "bytes": (forward, backward),
    }


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_layer_cut_by_columns_and_rows(world: World, ranks: int) -> None:
    import torch

    whole, x = _mlp(), _input()
    out = whole(x)
    out.square().sum().backward()
    other, y = _mlp(), _input()
    other[0](y).sin().sum().backward()
    found = world(ranks).run(_cut)
    for rank in found:
        torch.testing.assert_close(rank["out"], out.detach())
        torch.testing.assert_close((rank["x"], rank["y"]), (x.grad, y.grad))
        torch.testing.assert_close(rank["bias"], whole[2].bias.grad)
        torch.testing.assert_close(rank["gathered"], other[0](y).detach())
    torch.testing.assert_close(torch.cat([rank["weight"] for rank in found], dim=1), whole[2].weight.grad)
    torch.testing.assert_close(torch.cat([rank["gathered weight"] for rank in found]), other[0].weight.grad)
    if ranks == 3:  # an all-reduce each way: of 2 x 3 rows with 4 features, and with 5
        assert [rank["bytes"] for rank in found] == [(2 * 2 * 8 * 8, 2 * 2 * 10 * 8)] * 3


SIZES = [3, 1, 2, 2]


def _stage(schedule: Schedule) -> dict[str, Any]:
    from torch import nn

    from labkit.network import rank_context
    from labkit.network.p2p import endpoint
    from labkit.network.training import PipelineStage

    here: Any = endpoint()
    rank = rank_context().rank
    layers = _layers()
    stage = PipelineStage(
        nn.Sequential(*layers[rank * len(layers) // here.size : (rank + 1) * len(layers) // here.size]),
        schedule,
        loss=lambda out, target: (out - target).square().sum() / sum(SIZES),
        features=(6,),
    )
    x, target = _data()
    total = stage.run(SIZES, x.split(SIZES), target.split(SIZES))
    return {
        "loss": total,
        "gradients": [one.grad for one in stage.module.parameters()],
        "log": tuple(stage.log),
        "kept": stage.most_kept,
        "bytes": sum(here.sent.values()),
    }


def _layers() -> list[Any]:
    import torch
    from torch import nn

    torch.manual_seed(5)
    return [nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(6)]


def _data() -> Any:
    import torch

    generator = torch.Generator().manual_seed(7)
    return torch.randn(sum(SIZES), 6, generator=generator), torch.randn(sum(SIZES), 6, generator=generator)


@pytest.mark.parametrize("make", [gpipe, one_f_one_b])
def test_a_pipeline_is_equal_to_serial(world: World, make: Callable[[int, int], Schedule]) -> None:
    import torch
    from torch import nn

    whole = nn.Sequential(*_layers())
    x, target = _data()
    loss = (whole(x) - target).square().sum() / sum(SIZES)
    loss.backward()
    schedule = make(3, len(SIZES))
    found = world(3).run(_stage, schedule)
    gradients = [gradient for rank in found for gradient in rank["gradients"]]
    torch.testing.assert_close(gradients, [one.grad for one in whole.parameters()])
    assert found[2]["loss"] == pytest.approx(loss.item())
    assert (found[0]["loss"], found[1]["loss"]) == (None, None)
    assert tuple(rank["log"] for rank in found) == schedule.steps
    assert [rank["kept"] for rank in found] == [schedule.kept(stage) for stage in range(3)]
    one_way = sum(SIZES) * 6 * 4
    assert [rank["bytes"] for rank in found] == [one_way, 2 * one_way, one_way]


@given(stages=st.integers(1, 8), micro_batches=st.integers(1, 20))
def test_bubble_and_memory_of_the_schedules(stages: int, micro_batches: int) -> None:
    all_first, in_turns = gpipe(stages, micro_batches), one_f_one_b(stages, micro_batches)
    for schedule in (all_first, in_turns):
        assert schedule.bubble() == pytest.approx((stages - 1) / (micro_batches + stages - 1))
        assert all(len(set(steps)) == 2 * micro_batches for steps in schedule.steps)
    assert [all_first.kept(s) for s in range(stages)] == [micro_batches] * stages
    assert [in_turns.kept(s) for s in range(stages)] == [
        min(stages - s, micro_batches) for s in range(stages)
    ]


def test_a_schedule_that_waits_for_itself() -> None:
    backwards = (Step("backward", 0), Step("forward", 0))
    with pytest.raises(LabkitError, match="wait for each other for ever"):
        Schedule("mine", 1, 1, (backwards,)).bubble()
    with pytest.raises(LabkitError, match="at least one stage"):
        gpipe(0, 1)
    assert repr(one_f_one_b(4, 8)) == (
        "Schedule(1F1B: 4 stages, 8 micro-batches, bubble 27.3% (modelled), keeps at most 4)"
    )
    assert "F0 F1 B0" in one_f_one_b(2, 3)._repr_html_()


IDS = ([[3, 9], [0, 3]], [], [10])


def _lookup() -> dict[str, Any]:
    import torch

    from labkit.network.p2p import endpoint
    from labkit.network.training import ShardedEmbedding

    here: Any = endpoint()
    table = ShardedEmbedding(_table())
    ids = torch.tensor(IDS[here.rank], dtype=torch.int64)
    rows = table(ids)
    forward = dict(here.sent)
    (rows * (1 + here.rank)).sum().backward()
    try:
        table(torch.tensor([11]))
    except LabkitError as error:
        said = str(error)
    return {
        "rows": rows.detach(),
        "gradient": table.weight.grad,
        "forward": forward,
        "backward": sum(here.sent.values()) - sum(forward.values()),
        "said": said,
    }


def _table() -> Any:
    import torch

    return torch.arange(33, dtype=torch.float64).view(11, 3)


def test_a_table_over_three_ranks(world: World) -> None:
    import torch

    whole = _table().requires_grad_()
    found = world(3).run(_lookup)
    loss = torch.zeros((), dtype=torch.float64)
    for rank, ids in enumerate(IDS):
        rows = whole[torch.tensor(ids, dtype=torch.int64)]
        torch.testing.assert_close(found[rank]["rows"], rows.detach().reshape(found[rank]["rows"].shape))
        loss = loss + rows.sum() * (1 + rank) / 3
    loss.backward()
    torch.testing.assert_close(torch.cat([rank["gradient"] for rank in found]), whole.grad)
    # rows 0-3, 4-7, 8-10: rank 0 wants one row (24 bytes) of rank 2, by one id (8 bytes) after the counts
    assert found[0]["forward"] == {1: 8, 2: 8 + 8}
    assert found[1]["forward"] == {0: 8, 2: 8}
    assert found[2]["forward"] == {0: 8 + 24, 1: 8}
    assert [rank["backward"] for rank in found] == [24, 0, 0]
    assert found[0]["said"] == "Ids reach from 11 to 11, the table from 0 to 10."


def test_buckets_fill_from_the_last_parameter() -> None:
    pytest.importorskip("torch")
    import torch
    from torch import nn

    from labkit.network.training import assign

    named = [(str(n), nn.Parameter(torch.zeros(size))) for n, size in enumerate((100, 3, 2, 4))]
    named.insert(1, ("frozen", nn.Parameter(torch.zeros(9), requires_grad=False)))
    named.append(("tied", named[-1][1]))
    buckets = assign([*named, ("wide", nn.Parameter(torch.zeros(1, dtype=torch.float64)))], 24)
    assert [bucket.names for bucket in buckets] == [["wide"], ["3", "2"], ["1"], ["0"]]
    assert [bucket.nbytes for bucket in buckets] == [8, 24, 12, 400]
    assert buckets[1].bytes_sent(0, 4) == 2 * 24 - 4 * (2 + 2)  # chunks of 2, 2, 1, 1 elements
    assert buckets[1].bytes_sent(0, 1) == 0
