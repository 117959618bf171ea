"""1-bit Adam and local SGD: what they do before, at and after the moment at which they start to send less."""

from __future__ import annotations

from typing import Any

import pytest
from support.needs import require

require("torch")
import torch  # noqa: E402

from labkit.errors import LabkitError  # noqa: E402
from labkit.network.compression import LocalSGD, OneBitAdam  # noqa: E402
from labkit.network.stage import play  # noqa: E402

SHAPES = ((5, 3), (4,))


def weights(seed: int = 0) -> list[torch.nn.Parameter]:
    random = torch.Generator().manual_seed(seed)
    return [torch.nn.Parameter(torch.randn(*shape, generator=random)) for shape in SHAPES]


def gradient(rank: int, step: int, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(100 * step + rank))


def run_adam(rank: int, warm_up: int, steps: int) -> dict[str, Any]:
    ones = weights(rank)  # ranks begin differently: the optimizer spreads rank 0's
    optimizer = OneBitAdam(ones, lr=0.01, warm_up=warm_up, by="labkit")
    variances = []
    for step in range(steps):
        for one, shape in zip(ones, SHAPES, strict=True):
            one.grad = gradient(rank, step, shape)
        optimizer.step()
        variances.append(optimizer.state[ones[0]]["variance"].clone())
    return {"weights": [one.detach().clone() for one in ones], "variances": variances}


def test_the_warm_up_is_adam_on_averaged_gradients() -> None:
    ones = weights(0)
    reference = torch.optim.Adam(ones, lr=0.01)
    for step in range(5):
        for one, shape in zip(ones, SHAPES, strict=True):
            one.grad = (gradient(0, step, shape) + gradient(1, step, shape)) / 2
        reference.step()
    for found in play(run_adam, 2, [(rank, 9, 5) for rank in range(2)]).results:
        torch.testing.assert_close(found["weights"], [one.detach() for one in ones])


def test_after_the_warm_up_the_variance_is_frozen_and_a_bit_an_element_is_sent() -> None:
    played = play(run_adam, 2, [(rank, 3, 8) for rank in range(2)])
    first, second = played.results
    assert all(torch.equal(*pair) for pair in zip(first["weights"], second["weights"], strict=True))
    moved = [not torch.equal(a, b) for a, b in zip(first["variances"], first["variances"][1:], strict=False)]
    assert moved == [True, True] + [False] * 5
    count = 15 + 4
    signs = -(-count // 8) + 4 * len(SHAPES)
    spread = played.bytes_sent[0] - played.bytes_sent[1]
    assert played.bytes_sent[1] == pytest.approx(3 * 4 * count + 5 * signs, abs=3 * 4)  # chunks are uneven
    assert abs(spread - 4 * count) <= 2 * 3 * 4  # rank 0 sent its weights once


def test_the_momentum_that_was_sent_and_kept_is_the_momentum() -> None:
    def run(rank: int) -> torch.Tensor:
        one = torch.nn.Parameter(torch.zeros(6))
        optimizer = OneBitAdam([one], lr=0.01, warm_up=1, by="labkit")
        one.grad = gradient(rank, 0, (6,))
        optimizer.step()
        before = optimizer.state[one]["momentum"].clone()
        one.grad = gradient(rank, 1, (6,))
        optimizer.step()
        wanted = 0.9 * before + 0.1 * one.grad  # of this rank; what it sent is this less the remainder
        return torch.stack([wanted - optimizer.residuals.of(one), optimizer.state[one]["momentum"]])

    (sent_0, mean), (sent_1, _) = play(run, 2, [(0,), (1,)]).results
    torch.testing.assert_close((sent_0 + sent_1) / 2, mean)


def test_a_weight_without_a_gradient_so_far_stays() -> None:
    def run(rank: int) -> list[float]:
        one = torch.nn.Parameter(torch.ones(3))
        optimizer = OneBitAdam([one], lr=0.1, warm_up=2, by="labkit")
        for _ in range(5):
            one.grad = torch.tensor([1.0 + rank, 0.0, -1.0])
            optimizer.step()
        return one.tolist()

    found = play(run, 2, [(0,), (1,)]).results[0]
    assert found[1] == 1.0
    assert found[0] < 1 < found[2] < 10


def test_there_is_no_one_bit_adam_without_a_warm_up() -> None:
    with pytest.raises(LabkitError, match="no variance to freeze"):
        OneBitAdam(weights(), warm_up=0, by="labkit")


def run_local(rank: int, every: int, steps: int) -> list[torch.Tensor]:
    ones = weights(rank)
    optimizer = LocalSGD(torch.optim.SGD(ones, lr=0.1), every, by="labkit")
    seen = []
    for step in range(steps):
        for one, shape in zip(ones, SHAPES, strict=True):
            one.grad = gradient(rank, step, shape)
        optimizer.step()
        seen.append(ones[0].detach().clone())
    optimizer.finish()
    return [*seen, ones[0].detach().clone()]


def test_averages_every_few_steps_and_at_the_end() -> None:
    first, second = play(run_local, 2, [(rank, 3, 7) for rank in range(2)]).results
    same = [torch.equal(*pair) for pair in zip(first, second, strict=True)]
    assert same == [False, False, True, False, False, True, False, True]


def test_averaging_every_step_is_training_in_step() -> None:
    one = weights(0)[0].detach()
    for step in range(4):
        one -= 0.1 * (gradient(0, step, SHAPES[0]) + gradient(1, step, SHAPES[0])) / 2
    played = play(run_local, 2, [(rank, 1, 4) for rank in range(2)])
    for found in played.results:
        torch.testing.assert_close(found[-1], one)
    rarely = play(run_local, 2, [(rank, 4, 4) for rank in range(2)])
    start = 4 * 19  # rank 0's weights
    assert sum(played.bytes_sent) - start == 4 * (sum(rarely.bytes_sent) - start)


def test_averages_are_taken_every_so_many_steps() -> None:
    with pytest.raises(LabkitError, match="every 1, 2, 3"):
        LocalSGD(torch.optim.SGD(weights(), lr=0.1), 0, by="labkit")
