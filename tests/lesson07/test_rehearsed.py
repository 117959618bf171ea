"""A rehearsal of training: right sums, every event in order, and no luck for those who touch a buffer too early."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import needs

from labkit.course.checks import Call
from labkit.course.lessons import l07_why as why
from labkit.errors import LabkitError
from labkit.network.training.rehearsed import Event, rehearse_training, watch_gradients


def test_sums_bytes_and_order() -> None:
    def step(world: Any, mine: Any) -> Any:
        first, second = mine.copy(), 10 * mine
        one, two = world.all_reduce_async(first), world.all_reduce_async(second)
        two.wait()
        assert np.isnan(first).all()  # not before its own wait
        one.wait()
        world.broadcast(mine, root=1)
        return first, second, mine

    found = rehearse_training(step, 3, [(np.arange(6.0) + rank,) for rank in range(3)])
    for first, second, mine in found.results:
        np.testing.assert_array_equal(first, 3 * np.arange(6.0) + 3)
        np.testing.assert_array_equal(second, 10 * first)
        np.testing.assert_array_equal(mine, np.arange(6.0) + 1)
    assert found.events[2] == (
        Event("launch", "0", 48),
        Event("launch", "1", 48),
        Event("wait", "1"),
        Event("wait", "0"),
        Event("broadcast", "", 48),
    )
    assert sum(found.bytes_sent) == 3 * 2 * 2 * 32 + 2 * 48  # two rings, each rank 2 (p - 1)/p of 48; a tree


def test_a_buffer_touched_in_flight_and_a_handle_left() -> None:
    def careless(world: Any) -> float:
        data = np.ones(4)
        handle = world.all_reduce_async(data)
        data[0] = 7
        handle.wait()
        world.all_reduce_async(np.ones(2))
        return float(data.sum())

    found = rehearse_training(careless, 2)
    assert found.results == (8.0, 8.0)
    names = [(one.what, one.name) for one in found.events[0]]
    assert names == [
        ("launch", "0"),
        ("changed", "0"),
        ("wait", "0"),
        ("launch", "1"),
        ("never waited", "1"),
    ]


def test_all_to_all_of_uneven_parts() -> None:
    def swap(world: Any) -> list[Any]:
        rank = world.rank
        return world.all_to_all([np.full((to + rank, 2), 10 * rank + to) for to in range(3)])

    found = rehearse_training(swap, 3)
    for rank, parts in enumerate(found.results):
        assert [part.tolist() for part in parts] == [
            [[10 * source + rank] * 2] * (source + rank) for source in range(3)
        ]
    assert found.events[1][0] == Event("all_to_all", "", (1 + 3) * 2 * 8)


def test_who_is_missing_is_named() -> None:
    def only_rank_0(world: Any) -> None:
        if world.rank == 0:
            world.all_reduce(np.ones(2))

    with pytest.raises(LabkitError, match="rank 0 waits to"):
        rehearse_training(only_rank_0, 2)


def test_gradients_in_the_order_of_backward_and_the_real_class_on_top() -> None:
    """`DataParallel` itself runs in rehearsal, over tensors."""
    needs.require("torch")
    import torch

    from labkit.network.training import DataParallel

    def step(world: Any) -> Any:
        torch.manual_seed(world.rank)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
        watch_gradients(world, model)
        ddp = DataParallel(model, bucket=40, world=world)
        x = torch.ones(2, 3) * (1 + world.rank)
        ddp(x).sum().backward()
        return [one.grad for one in model.parameters()], [one.detach().clone() for one in model.parameters()]

    (first, weights), (second, same) = rehearse_training(step, 2).results
    torch.testing.assert_close(first, second)
    torch.testing.assert_close(weights, same)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    for parameter, value in zip(model.parameters(), weights, strict=True):
        parameter.data.copy_(value)
    ((model(torch.ones(2, 3)) + model(2 * torch.ones(2, 3))).sum() / 2).backward()
    torch.testing.assert_close(first, [one.grad for one in model.parameters()])
    names = [one.name for one in rehearse_training(step, 2).events[0] if one.what == "gradient"]
    assert names == ["1.bias", "1.weight", "0.bias", "0.weight"] or names[:2] == ["1.weight", "1.bias"]


def test_a_forward_outside_no_sync_and_its_backward_inside_is_told() -> None:
    """torch's DDP would send these gradients, and count them as this rank's own."""
    needs.require("torch")
    import torch

    from labkit.network.training import DataParallel

    def step(world: Any) -> None:
        ddp = DataParallel(torch.nn.Linear(3, 4), world=world)
        loss = ddp(torch.ones(2, 3)).sum()
        with ddp.no_sync():
            loss.backward()

    with pytest.raises(LabkitError, match=r"was outside no_sync\(\), and its backward is inside"):
        rehearse_training(step, 2)


def test_a_backward_pass_in_unused_is_seen() -> None:
    needs.require("torch")
    import torch

    from labkit.course.lessons.l07_torch import record_unused

    def unused(output: Any, parameters: dict[str, Any]) -> list[str]:
        found = torch.autograd.grad(output.sum(), list(parameters.values()), allow_unused=True)
        return [name for name, one in zip(parameters, found, strict=True) if one is None]

    call = Call({"net": "both branches"}, [])
    assert why.unused(call, record_unused(unused, "both branches")) == (
        "unused ran backward, or torch.autograd.grad.",
        "walk the graph that it would follow.",
    )
    assert why.unused(call, record_unused(lambda output, parameters: [], "both branches")) is None
