"""Data parallelism where ranks differ, or a program's order is odd: right, or told in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from labkit.network.errors import RankError
from labkit.network.ranks import Ranks

World = Callable[..., Ranks]


def _only_rank_0_uses_the_model(find_unused: bool) -> Any:
    import torch
    from torch import nn

    from labkit.network import rank_context
    from labkit.network.training import DataParallel

    class Sometimes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(1, 1, bias=False)

        def forward(self, x: Any) -> dict[str, Any]:
            return {"scores": self.layer(x) if rank_context().rank == 0 else x}

    model: Any = DataParallel(Sometimes(), find_unused=find_unused)
    x = torch.ones(2, 1)
    gradients = []
    for _ in range(2):
        model.zero_grad()
        model(x)["scores"].sum().backward()
        gradients.append(model.module.layer.weight.grad.item())
    return gradients, x.requires_grad


def test_a_rank_that_uses_no_parameter_at_all(world: World) -> None:
    assert world(2).run(_only_rank_0_uses_the_model, True, timeout="30s") == [([1.0, 1.0], False)] * 2
    with pytest.raises(RankError, match=r"no gradient for layer\.weight.*find_unused=True"):
        world(2).run(_only_rank_0_uses_the_model, False, timeout="30s")


def _odd(order: str) -> None:
    import torch
    from torch import nn

    from labkit.network.training import DataParallel

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.branches = nn.ModuleList(nn.Linear(1, 1) for _ in range(2))

        def forward(self, x: Any, branch: int) -> Any:
            return self.branches[branch](x)

    model: Any = DataParallel(Two(), bucket=4, find_unused=True)
    x = torch.ones(1, 1)
    if order == "backward twice":
        loss = model(x, 0).sum()
        loss.backward(retain_graph=True)
        loss.backward()
    elif order == "forward inside no_sync":
        with model.no_sync():
            loss = model(x, 0).sum()
        loss.backward()
    else:
        (model(x, 1).sum() + model(x, 0).sum()).backward()


@pytest.mark.parametrize(
    ("order", "says"),
    [
        ("backward twice", "one backward for each forward"),
        ("forward inside no_sync", "both inside no_sync"),
        ("two forward passes", r"gradient of branches\.1\.\w+ came after its bucket had left"),
    ],
)
def test_an_odd_order_is_told(world: World, order: str, says: str) -> None:
    with pytest.raises(RankError, match=says):
        world(2).run(_odd, order, timeout="30s")


def test_two_conversations_do_not_cross(world: World) -> None:
    def talk() -> Any:
        import torch

        from labkit.network import isend, rank_context, recv
        from labkit.network.collectives import ring_all_reduce
        from labkit.network.training import background

        rank = rank_context().rank
        behind, here, message = torch.full((50_000,), 1.0 + rank), torch.full((1_000,), 10.0), torch.zeros(3)
        handle = background.background().start(ring_all_reduce, behind)
        ring_all_reduce(here)  # while the other is under way, over a slow link
        other = background.background().start(ring_all_reduce, behind.clone())
        sent = isend(torch.full((3,), float(rank)), 1 - rank)
        recv(message, 1 - rank)
        sent.wait()
        handle.wait()
        other.wait()
        return [behind.unique().tolist(), here.unique().tolist(), message.unique().tolist()]

    found = world(2, link="100Mbit/s").run(talk, timeout="30s")
    assert found == [[[3.0], [20.0], [1.0]], [[3.0], [20.0], [0.0]]]
