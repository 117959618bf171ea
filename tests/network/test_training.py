"""Data parallelism by hand: equal to serial, in the order and with the bytes that it promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from labkit.errors import LabkitError
from labkit.network.errors import RankError
from labkit.network.ranks import Ranks

World = Callable[..., Ranks]
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


def _tied_and_frozen(seed: int) -> Any:
    """Parameters of several sizes; one frozen, one under two names, and a buffer."""
    import torch
    from torch import nn

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.frozen = nn.Linear(6, 7), nn.Linear(7, 7)
            self.norm, self.last = nn.BatchNorm1d(7), nn.Linear(7, 6)
            self.last.weight = nn.Parameter(torch.randn(6, 7))
            self.again = nn.Linear(7, 6, bias=False)
            self.again.weight = self.last.weight
            self.frozen.requires_grad_(False)

        def forward(self, x: Any) -> Any:
            hidden = self.frozen(torch.tanh(self.first(x)))
            return self.last(hidden) + self.again(torch.sin(hidden)) + 0 * self.norm(hidden).sum()

    torch.manual_seed(seed)
    return Tied().double()


def _batch(sizes: list[int], rank: int) -> Any:
    import torch

    x = torch.randn(sum(sizes), 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return x[sum(sizes[:rank]) : sum(sizes[: rank + 1])]


def _train(sizes: list[int], bucket: float, overlap: bool) -> dict[str, Any]:
    """Two steps on this rank's uneven part; the weights, and what was sent."""
    import torch

    from labkit.network.p2p import endpoint
    from labkit.network.training import DataParallel, share_of_mean

    here: Any = endpoint()
    model = DataParallel(_tied_and_frozen(seed=10 + here.rank), bucket, overlap)  # ranks start differently
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = _batch(sizes, here.rank)
    sent = []
    for _ in range(2):
        loss = share_of_mean(model(x).square().sum(), len(x))
        before = sum(here.sent.values())
        loss.backward()
        sent.append(sum(here.sent.values()) - before)
        optimizer.step()
        optimizer.zero_grad()
    return {
        "weights": [one.detach() for one in model.parameters()],
        "sent": sent,
        "promised": model.bytes_sent(),
        "elements": [bucket.elements for bucket in model.buckets],
        "log": [tuple(one) for one in model.log],
    }


def _serial(total: int) -> list[Any]:
    import torch

    model = _tied_and_frozen(seed=10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = _batch([total], 0)
    for _ in range(2):
        optimizer.zero_grad()
        (model(x).square().sum() / total).backward()
        optimizer.step()
    return [one.detach() for one in model.parameters()]


@pytest.mark.parametrize(("sizes", "bucket", "overlap"), [([5, 3, 2], 400, True), ([2, 8], 1e6, False)])
def test_equal_to_serial_with_uneven_batches(
    world: World, sizes: list[int], bucket: float, overlap: bool
) -> None:
    import torch

    found = world(len(sizes)).run(_train, sizes, bucket, overlap)
    for rank in found:
        torch.testing.assert_close(rank["weights"], _serial(sum(sizes)))
        assert rank["sent"] == [rank["promised"]] * 2
    elements = found[0]["elements"]
    assert sum(elements) == 6 * 7 + 7 + 2 * 7 + 6 * 7 + 6  # frozen left out, shared once
    if bucket == 1e6:
        assert [rank["promised"] for rank in found] == [elements[0] * 8] * 2  # 2 (p - 1)/p of the bytes


def test_a_rank_without_samples_takes_part(world: World) -> None:
    def gradient() -> float:
        import torch
        from torch import nn

        from labkit.network import rank_context
        from labkit.network.training import DataParallel, share_of_mean

        model = DataParallel(nn.Linear(1, 1, bias=False))
        x = torch.tensor([[1.0], [2.0], [6.0]])[: 3 * (1 - rank_context().rank)]
        share_of_mean(model(x).sum(), len(x)).backward()
        return model.module.weight.grad.item()

    assert world(2).run(gradient) == [pytest.approx(3)] * 2


def test_the_first_bucket_leaves_before_the_last_gradient(world: World) -> None:
    early, late = (world(2).run(_train, [2, 2], 400, overlap)[0]["log"] for overlap in (True, False))
    gradients = [i for i, (what, _) in enumerate(early) if what == "gradient"]
    assert early.index(("launch", "0")) < gradients[-1]
    assert late.index(("launch", "0")) > max(i for i, (what, _) in enumerate(late) if what == "gradient")
    launched = [name for what, name in early if what == "launch"]
    assert launched == sorted(launched, key=int)
    assert len(launched) > 1


def test_no_sync_sends_nothing_and_adds_up(world: World) -> None:
    def accumulate() -> tuple[list[int], Any]:
        import torch
        from torch import nn

        from labkit.network.p2p import endpoint
        from labkit.network.training import DataParallel

        here: Any = endpoint()
        torch.manual_seed(0)
        model = DataParallel(nn.Linear(4, 2, bias=False).double())
        x = torch.arange(4 * 2 * 3.0, dtype=torch.float64).view(3, 2, 4)[..., :4] * (1 + here.rank)
        sent = []
        for k, part in enumerate(x):
            before = sum(here.sent.values())
            if k < 2:
                with model.no_sync():
                    (model(part).sum() / 3).backward()
            else:
                (model(part).sum() / 3).backward()
            sent.append(sum(here.sent.values()) - before)
        return sent, model.module.weight.grad

    import torch

    found = world(2).run(accumulate)
    whole = torch.arange(24.0, dtype=torch.float64).view(6, 4).sum(0) / 3 * 1.5
    for sent, gradient in found:
        assert sent == [0, 0, 8 * 8]
        torch.testing.assert_close(gradient, whole.expand(2, 4))


def _branches(find_unused: bool) -> list[Any]:
    """Rank 0 uses branch 0, rank 1 branch 1, nobody branch 2."""
    import torch
    from torch import nn

    from labkit.network import rank_context
    from labkit.network.training import DataParallel

    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.branches = nn.ModuleList(nn.Linear(1, 1, bias=False) for _ in range(3))

        def forward(self, x: Any) -> Any:
            return self.branches[rank_context().rank](x)

    model = DataParallel(Branches(), find_unused=find_unused)
    model(torch.ones(1, 1)).sum().backward()
    return [None if one.grad is None else one.grad.item() for one in model.parameters()]


def test_unused_parameters(world: World) -> None:
    assert world(2).run(_branches, True) == [[0.5, 0.5, None]] * 2
    with pytest.raises(RankError, match=r"no gradient for branches\.2\.weight.*find_unused=True"):
        world(2).run(_branches, False)


def test_buffers_follow_rank_0(world: World) -> None:
    def running_mean() -> list[float]:
        import torch
        from torch import nn

        from labkit.network import rank_context
        from labkit.network.training import DataParallel

        model = DataParallel(nn.BatchNorm1d(1))
        for _ in range(2):
            model(torch.full((4, 1), 10.0 * (1 + rank_context().rank)))
        counted = model.module.num_batches_tracked.item()
        return [model.module.running_mean.item(), counted]

    first, second = world(2).run(running_mean)
    assert first == pytest.approx([1.9, 2])  # 0.9 * 1 + 0.1 * 10
    assert second == pytest.approx([0.9 * 1 + 2, 2])  # rank 0's mean came before its own last batch


def test_overlap_shows_on_the_timeline(world: World) -> None:
    def step() -> None:
        import torch
        from torch import nn

        from labkit.network.training import DataParallel

        torch.manual_seed(0)
        model = DataParallel(nn.Sequential(*(nn.Linear(256, 256) for _ in range(4))), bucket="256kB")
        model(torch.randn(256, 256)).sum().backward()

    run = world(2, link="1Gbit/s").run(step, trace=True)
    timeline = run.timeline()
    flights = [
        one for one in timeline.events if one.kind == "flight" and one.name == "labkit:ring_all_reduce"
    ]
    assert len(flights) == 2 * 8  # weights and biases: each pair is just above 256 kB
    assert timeline.overlapped is not None
    assert 0 < timeline.overlapped < 1


@pytest.mark.slow
def test_beside_torchs_own(world: World) -> None:
    def compare() -> list[Any]:
        import torch
        from torch import nn

        from labkit.network import rank_context
        from labkit.network.training import measure_steps
        from labkit.network.training.compare import WAYS

        def model() -> nn.Module:
            torch.manual_seed(0)
            return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))

        def loss(wrapped: nn.Module, step: int) -> torch.Tensor:
            torch.manual_seed(100 * step + rank_context().rank)
            return wrapped(torch.randn(8, 64)).square().mean()

        return [measure_steps(way, model, loss, steps=4) for way in WAYS]

    for ours, plain, ddp, fsdp in world(2).run(compare):
        for other in (plain, ddp, fsdp):
            assert other.losses == pytest.approx(ours.losses, rel=1e-4)
        elements = 2 * 64 * 256 + 256 + 64
        assert ours.payload_bytes == plain.payload_bytes == 4 * elements
        assert ours.weight_bytes == ddp.weight_bytes == 4 * elements
        assert fsdp.weight_bytes == pytest.approx(2 * elements, rel=0.02)
        for way in (ours, ddp):
            assert way.wire_bytes == pytest.approx(4 * elements, rel=0.1)
        # weights gathered twice, gradients scattered once; gloo makes of that an all-reduce, which is twice as much
        assert 1.4 * 4 * elements < fsdp.wire_bytes < 2.2 * 4 * elements
        assert "torch DDP" in repr(ddp)


def test_a_way_nobody_knows(world: World) -> None:
    from labkit.network.training import measure_steps

    with pytest.raises(LabkitError, match="no way to train here: labkit,"):
        measure_steps("horovod", lambda: None, lambda *_: None)  # type: ignore[arg-type,return-value]
