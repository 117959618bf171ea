"""Compression of gradients: what is sent is small, nothing is lost where feedback keeps it, and all ranks agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.needs import require

require("torch")
import torch  # noqa: E402
from torch import nn  # noqa: E402

from labkit.errors import LabkitError  # noqa: E402
from labkit.network.compression import Fp16, Plain, PowerSGD, Sign, TopK, pack_signs, unpack_signs  # noqa: E402
from labkit.network.stage import play  # noqa: E402

SHAPES = ((6, 5), (3,), (1,), (4, 3, 2))
SIZES = [math.prod(shape) for shape in SHAPES]
METHODS: dict[str, Callable[[], Any]] = {
    "plain": lambda: Plain(by="labkit"),
    "fp16": lambda: Fp16(by="labkit"),
    "top-k": lambda: TopK(0.1, by="labkit"),
    "sign": lambda: Sign(by="labkit"),
    "PowerSGD": lambda: PowerSGD(1, by="labkit"),
}
FEEDBACK = ("top-k", "sign", "PowerSGD")


def parameters(shapes: Sequence[Sequence[int]] = SHAPES) -> list[torch.Tensor]:
    return [torch.zeros(*shape, dtype=torch.float64) for shape in shapes]


def gradients(seed: int, ranks: int, steps: int, count: int = sum(SIZES)) -> torch.Tensor:
    """(ranks, steps, elements), of sizes that differ from element to element."""
    random = np.random.default_rng(seed)
    return torch.from_numpy(random.normal(size=(ranks, steps, count)) * random.lognormal(size=count))


def average_steps(make: Callable[[], Any], of_rank: torch.Tensor) -> tuple[list[Any], torch.Tensor]:
    """All averages that a rank gets, and what it keeps in the end."""
    method, ones = make(), parameters()
    means = [method.average(one.clone(), ones) for one in of_rank]
    kept = [method.residuals.of(one).reshape(-1) for one in ones] if hasattr(method, "residuals") else []
    return means, torch.cat(kept) if kept else torch.zeros_like(of_rank[0])


@given(st.lists(st.floats(allow_nan=False), max_size=70))
def test_signs_are_packed_to_a_bit_each_and_come_back(values: list[float]) -> None:
    given_ = torch.tensor(values, dtype=torch.float64)
    packed = pack_signs(given_)
    assert packed.dtype == torch.uint8
    np.testing.assert_array_equal(packed.numpy(), np.packbits(given_.numpy() >= 0, bitorder="little"))
    np.testing.assert_array_equal(unpack_signs(packed, len(values)).numpy(), np.where(given_ >= 0, 1, -1))


@pytest.mark.parametrize("name", FEEDBACK)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), ranks=st.integers(1, 3), steps=st.integers(1, 5))
def test_all_that_was_sent_and_all_that_is_kept_are_all_gradients(
    name: str, seed: int, ranks: int, steps: int
) -> None:
    given_ = gradients(seed, ranks, steps)
    played = play(lambda own: average_steps(METHODS[name], own), ranks, [(one,) for one in given_])
    sent = sum(played.results[0][0]) * ranks  # the average, times ranks, is the sum of what they sent
    kept = sum(rank[1] for rank in played.results)
    torch.testing.assert_close(sent + kept, given_.sum((0, 1)))


@pytest.mark.parametrize("name", METHODS)
def test_every_rank_gets_the_same_bits_and_keeps_its_own_remainder(name: str) -> None:
    played = play(lambda own: average_steps(METHODS[name], own), 3, [(one,) for one in gradients(1, 3, 4)])
    (first, own), *others = played.results
    for means, kept in others:
        assert all(torch.equal(*pair) for pair in zip(first, means, strict=True))
        assert (name in FEEDBACK) == (not torch.equal(own, kept))


def test_without_feedback_nothing_is_kept() -> None:
    for make in (
        lambda: TopK(0.1, feedback=False, by="labkit"),
        lambda: Sign(feedback=False, by="labkit"),
        lambda: PowerSGD(1, feedback=False, by="labkit"),
    ):
        own = gradients(2, 1, 2)[0]
        assert not play(lambda make=make, own=own: average_steps(make, own), 1).results[0][1].any()


def sent_in_one_step(make: Callable[[], Any], ranks: int) -> tuple[int, ...]:
    given_ = gradients(3, ranks, 1)
    return play(lambda own: average_steps(make, own.float()), ranks, [(one,) for one in given_]).bytes_sent


@pytest.mark.parametrize("ranks", [2, 3])
def test_messages_are_as_small_as_they_say(ranks: int) -> None:
    count, others = sum(SIZES), ranks - 1
    assert sum(sent_in_one_step(METHODS["plain"], ranks)) == 2 * others * 4 * count
    assert sum(sent_in_one_step(METHODS["fp16"], ranks)) == 2 * others * 2 * count
    signs = math.ceil(count / 8) + 4 * len(SHAPES)  # a bit an element, a scale a parameter
    assert sent_in_one_step(METHODS["sign"], ranks) == (others * signs,) * ranks
    assert sent_in_one_step(METHODS["top-k"], ranks) == (others * 8 * math.ceil(count / 10),) * ranks
    thin = (6 + 5) + (4 + 6) + 3 + 1  # rank 1 of the two matrices, the others as they are
    assert sum(sent_in_one_step(METHODS["PowerSGD"], ranks)) == 2 * others * 4 * thin


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("shapes", [(), ((0,),), ((1,),), ((1, 1), (0, 3)), ((2, 9),)])
def test_empty_and_small_buckets(name: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    ones = parameters(shapes)
    flat = torch.full((sum(map(torch.numel, ones)),), 2.0, dtype=torch.float64)
    played = play(lambda: METHODS[name]().average(flat.clone(), ones), 2)
    for mean in played.results:
        assert mean.shape == flat.shape
        if name in ("plain", "fp16", "sign", "PowerSGD"):  # all elements are alike: nothing is lost
            torch.testing.assert_close(mean, flat)


def test_top_k_sends_the_largest() -> None:
    flat = torch.tensor([1.0, -7.0, 3.0, 0.5])
    played = play(lambda: TopK(0.5, by="labkit").average(flat.clone(), [torch.zeros(4)]), 2)
    assert played.results[1].tolist() == [0, -7, 3, 0]


def test_fp16_divides_before_it_converts() -> None:
    def mean(own: list[float]) -> list[float]:
        return Fp16(by="labkit").average(torch.tensor(own), [torch.zeros(len(own))]).tolist()

    results = play(mean, 2, [([120_000.0, 1e6, 1e-9],), ([0.0, 0.0, 1e-9],)]).results
    assert results == ([60_000.0, math.inf, 0.0],) * 2  # the second does not fit, and nobody hides it


@pytest.mark.parametrize("name", FEEDBACK)
def test_a_gradient_that_is_not_finite_is_seen_once_and_by_all(name: str) -> None:
    broken, sound = torch.full((30,), 1.0), torch.full((30,), 1.0)
    broken[4] = math.nan

    def twice(first: torch.Tensor) -> list[bool]:
        method, ones = METHODS[name](), [torch.zeros(6, 5)]
        return [bool(method.average(one.clone(), ones).isfinite().all()) for one in (first, sound, sound)]

    results = play(twice, 2, [(broken,), (sound,)]).results
    assert results[0] == results[1]
    assert not results[0][0]
    assert results[0][1:] == [True, True]


def test_power_sgd_finds_a_matrix_of_low_rank() -> None:
    random = torch.Generator().manual_seed(5)
    matrix = torch.randn(8, 2, generator=random) @ torch.randn(2, 9, generator=random)

    def relative_error(rank: int) -> float:
        means = PowerSGD(rank, feedback=False, by="labkit")
        shape = [torch.zeros(8, 9)]
        for _ in range(4):
            mean = means.average(matrix.reshape(-1).clone(), shape)
        return float((mean - matrix.reshape(-1)).norm() / matrix.norm())

    errors = [play(lambda rank=rank: relative_error(rank), 2).results[0] for rank in (1, 2)]
    assert errors[0] > 0.1
    assert errors[1] < 1e-5


def test_warm_start_gets_closer_with_every_step() -> None:
    random = torch.Generator().manual_seed(6)
    scaled = torch.randn(12, 12, generator=random) * torch.logspace(0, -2, 12)

    def errors() -> list[float]:
        method, shape = PowerSGD(2, feedback=False, by="labkit"), [torch.zeros(12, 12)]
        means = [method.average(scaled.reshape(-1).clone(), shape) for _ in range(6)]
        return [float((mean - scaled.reshape(-1)).norm()) for mean in means]

    found = play(errors, 1).results[0]
    best = float(torch.linalg.svdvals(scaled)[2:].norm())
    assert found[0] > 1.05 * best
    assert found[-1] == pytest.approx(best, rel=0.05)


@pytest.mark.parametrize("make", [lambda: TopK(0), lambda: TopK(1.5), lambda: PowerSGD(0)])
def test_settings_that_make_no_sense(make: Callable[[], Any]) -> None:
    with pytest.raises(LabkitError):
        make()


# ------------------------------------------------------------------------------------------------ on real ranks


def net() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 7), nn.Tanh(), nn.Linear(7, 4))


def batch(rank: int, step: int) -> torch.Tensor:
    """Uneven: rank 1 has more samples."""
    return torch.randn(3 + rank, 6, generator=torch.Generator().manual_seed(10 * step + rank))


def trained(kind: str, name: str, bucket_bytes: float = 1e6, steps: int = 4) -> dict[str, Any]:
    """Weights after some steps, and what each parameter's averages and remainders add up to."""
    from labkit.network import rank_context
    from labkit.network.compression import hook
    from labkit.network.training import DataParallel

    module = net()
    state = METHODS[name]()
    ddp = nn.parallel.DistributedDataParallel
    model = (
        ddp(module, bucket_cap_mb=bucket_bytes / 2**20)
        if kind == "torch"
        else DataParallel(module, bucket_bytes)
    )
    seen: list[tuple[list[int], torch.Tensor, torch.Tensor]] = []
    order = {id(one): place for place, one in enumerate(module.parameters())}

    class Recorded:
        def average(self, flat: torch.Tensor, ones: list[torch.Tensor]) -> torch.Tensor:
            own = flat.clone()
            mean = state.average(flat, ones)
            seen.append(([order[id(one)] for one in ones], own, mean.clone()))
            return mean

    model.register_comm_hook(Recorded(), hook)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for step in range(steps):
        model(batch(rank_context().rank, step)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    given_, means = ({place: torch.zeros(0) for place in order.values()} for _ in range(2))
    sizes = [one.numel() for one in module.parameters()]
    for places, own, mean in seen:
        for totals, flat in ((given_, own), (means, mean)):
            for place, part in zip(places, flat.split([sizes[p] for p in places]), strict=True):
                totals[place] = totals[place] + part if len(totals[place]) else part.clone()
    kept = [state.residuals.of(one).reshape(-1) for one in module.parameters()]
    return {
        "weights": [one.detach() for one in module.parameters()],
        "buckets": [places for places, *_ in seen],
        "sent": torch.cat([given_[p] - kept[p] for p in range(len(sizes))]),
        "means": torch.cat([means[p] for p in range(len(sizes))]),
    }


@pytest.mark.parametrize("kind", ["torch", "labkit"])
def test_remainders_belong_to_parameters_also_when_buckets_are_regrouped(world: Any, kind: str) -> None:
    found = world(2).run(trained, kind, "sign", 300)
    first = found[0]
    assert len(first["buckets"]) > 4  # more than one a step
    if kind == "torch":
        assert first["buckets"][0] not in first["buckets"][-4:]  # torch has regrouped them
    torch.testing.assert_close((first["sent"] + found[1]["sent"]) / 2, first["means"])
    assert all(torch.equal(*pair) for pair in zip(first["weights"], found[1]["weights"], strict=True))


def test_the_same_hook_in_torchs_ddp_and_in_labkits(world: Any) -> None:
    def both() -> list[Any]:
        return [trained(kind, "sign")["weights"] for kind in ("torch", "labkit")]

    for theirs, ours in world(2).run(both):
        torch.testing.assert_close(theirs, ours)


def test_a_hook_of_torchs_own_works_in_labkits_data_parallel(world: Any) -> None:
    def run() -> Any:
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

        from labkit.network import rank_context
        from labkit.network.training import DataParallel

        module = net()
        model = DataParallel(module, 300)
        buckets: list[Any] = []

        def hook(state: Any, bucket: Any) -> Any:
            shapes = [one.shape for one in bucket.gradients()]
            buckets.append(
                (bucket.index(), bucket.is_last(), shapes == [one.shape for one in bucket.parameters()])
            )
            return fp16_compress_hook(state, bucket)

        model.register_comm_hook(None, hook)
        model(batch(rank_context().rank, 2)).square().mean().backward()
        return buckets, torch.cat(
            [one.grad.reshape(-1) for one in module.parameters() if one.grad is not None]
        )

    (buckets, first), (_, second) = world(2).run(run)
    assert buckets == [(0, False, True), (1, False, True), (2, True, True)]
    assert torch.equal(first, second)
    reference = net()
    for rank in range(2):
        (reference(batch(rank, 2)).square().mean() / 2).backward()
    wanted = torch.cat([one.grad.reshape(-1) for one in reference.parameters() if one.grad is not None])
    torch.testing.assert_close(first, wanted, rtol=1e-2, atol=1e-4)


def test_torchs_own_collectives_carry_it_as_well(world: Any) -> None:
    def differences() -> list[float]:
        from labkit.network import rank_context

        own = gradients(4, 2, 1)[rank_context().rank, 0]
        makers: list[Callable[[str], Any]] = [Plain, Fp16, Sign, TopK, PowerSGD]
        pairs = [
            [make(by=by).average(own.clone(), parameters()) for by in ("labkit", "torch")] for make in makers
        ]
        return [float((a - b).abs().max()) for a, b in pairs]

    assert max(max(rank) for rank in world(2).run(differences)) < 1e-2


def test_wire_counts_what_connections_delivered(world: Any) -> None:
    def counted() -> tuple[int, int]:
        import time

        from labkit.network.compression import Wire
        from labkit.network.p2p import endpoint

        here: Any = endpoint()
        wire, before = Wire(), sum(here.sent.values())
        for _ in range(4):
            Plain().average(torch.zeros(100_000), [])
        time.sleep(0.05)  # a byte counts once it has been acknowledged
        return wire.sent(), sum(here.sent.values()) - before

    for sent, payload in world(2).run(counted):
        assert payload == 4 * 400_000
        assert payload <= sent <= 1.05 * payload
