"""Collectives against torch's own: any world, uneven sizes, every type that torch reduces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labkit.errors import LabkitError
from labkit.network import collectives
from labkit.network.collectives import COLLECTIVES, chunks
from labkit.network.collectives_cost import crossing
from labkit.network.ranks import Ranks

World = Callable[..., Ranks]
INTEGERS = ("uint8", "int8", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
ARITHMETIC = ("sum", "product", "min", "max")
BITWISE = ("band", "bor", "bxor")

CASES = st.one_of(
    st.tuples(st.sampled_from(INTEGERS), st.sampled_from(ARITHMETIC + BITWISE)),
    st.tuples(st.sampled_from(FLOATS), st.sampled_from(ARITHMETIC)),
).flatmap(lambda pair: st.tuples(st.just(pair[0]), st.just(pair[1]), st.integers(0, 40), st.integers(0, 99)))


def _compare(cases: list[tuple[str, str, int, int]]) -> list[str]:
    """Run all cases on this rank; a line for each difference."""
    import torch
    import torch.distributed as dist

    from labkit.network import collectives as ours

    me, size = dist.get_rank(), dist.get_world_size()
    wrong: list[str] = []

    def expect(what: object, got: Any, wanted: Any) -> None:
        try:
            torch.testing.assert_close(got, wanted, rtol=2e-2, atol=1e-6)
        except AssertionError as error:
            wrong.append(f"rank {me} of {size}: {what}: {error}")

    for case in cases:
        dtype, op, count, seed = case
        kind = getattr(torch, dtype)
        every = torch.randint(0, 4, (size, count), generator=torch.Generator().manual_seed(seed)).to(kind)
        mine, root, node = every[me], seed % size, 1 + seed % size
        total = mine.clone()
        dist.all_reduce(total, getattr(dist.ReduceOp, op.upper()))
        for all_reduce, extra in (
            (ours.ring_all_reduce, ()),
            (ours.binomial_all_reduce, ()),
            (ours.recursive_halving_doubling, ()),
            (ours.hierarchical_all_reduce, (node,)),
        ):
            data = mine.clone()
            all_reduce(data, *extra, op=op)
            expect((all_reduce, case), data, total)
        data = mine.clone()
        own = ours.ring_reduce_scatter(data, op)
        expect(("reduce_scatter", case), data[own], total[own])
        data = torch.zeros_like(mine)
        data[own] = total[own]
        ours.ring_all_gather(data)
        expect(("all_gather", case), data, total)
        data = mine.clone()
        ours.binomial_broadcast(data, root)
        expect(("broadcast", case), data, every[root])
        data = mine.clone()
        ours.binomial_reduce(data, op, root)
        if me == root:
            expect(("reduce", case), data, total)
        sent = [mine[: (me + to) % (count + 1)] + 0 for to in range(size)]
        received = [torch.zeros((me + source) % (count + 1), dtype=kind) for source in range(size)]
        ours.pairwise_all_to_all(received, sent)
        for source in range(size):
            expect(("all_to_all", case), received[source], every[source][: (me + source) % (count + 1)])
    return wrong


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cases=st.lists(CASES, min_size=3, max_size=4))
def test_equal_to_torchs_own(world: World, ranks: int, cases: list[tuple[str, str, int, int]]) -> None:
    for differences in world(ranks).run(_compare, cases):
        assert differences == []


def test_a_part_of_the_ranks_can_reduce_alone(world: World) -> None:
    def odd_ones() -> float:
        import torch

        from labkit.network import rank_context, ring_all_reduce

        data = torch.tensor([float(rank_context().rank)])
        if rank_context().rank % 2:
            ring_all_reduce(data, members=[3, 1])
        return data.item()

    assert world(4).run(odd_ones) == [0.0, 4.0, 2.0, 4.0]


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_the_ring_sends_the_least_possible_and_each_collective_what_its_cost_says(
    world: World, ranks: int
) -> None:
    count = 8 * 9 * 5

    def all_of_them() -> None:
        import torch

        from labkit.network import ring_all_reduce

        ring_all_reduce(torch.ones(count))

    traffic = world(ranks).run(all_of_them).traffic
    assert {one.bytes_sent for one in traffic} == {2 * (ranks - 1) * 4 * count // ranks}
    assert {one.messages for one in traffic} == {2 * (ranks - 1)}


def test_bytes_over_the_slow_link(world: World) -> None:
    """Nodes of two: what leaves a node is 2 (m - 1) / m of each rank's half, in the ring of m nodes."""
    count = 240

    def reduce() -> None:
        import torch

        from labkit.network import hierarchical_all_reduce

        hierarchical_all_reduce(torch.ones(count), 2)

    traffic = world(6).run(reduce).traffic
    for one in traffic:
        far = sum(sent for to, sent in one.sent.items() if to // 2 != one.rank // 2)
        assert far == 2 * 2 * (4 * count // 2) // 3


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda x, ours: ours.ring_all_reduce(x.reshape(2, 3).t()), "not contiguous"),
        (lambda x, ours: ours.ring_all_reduce(x, op="mean"), "'mean' is no reduction"),
        (lambda x, ours: ours.binomial_broadcast(x, root=9), "Rank 9 is not among the members"),
        (lambda x, ours: ours.pairwise_all_to_all([x], [x]), "needs 2 tensors each way"),
        (lambda x, ours: ours.hierarchical_all_reduce(x, 3), "node_size=3 is not between 1 and the 2"),
    ],
)
def test_mistakes_are_sentences(world: World, mistake: Callable[..., None], words: str) -> None:
    def run() -> None:
        import torch

        mistake(torch.ones(6), collectives)

    with pytest.raises(LabkitError, match=words):
        world(2).run(run)


def test_a_collective_outside_ranks_is_a_sentence() -> None:
    with pytest.raises(LabkitError, match=r"labkit\.ranks\(n\)\.run"):
        collectives.ring_all_reduce([1.0])


def test_messages_to_oneself_are_refused(world: World) -> None:
    def to_myself() -> None:
        import torch

        from labkit.network import rank_context, send

        send(torch.ones(1), rank_context().rank)

    with pytest.raises(LabkitError, match="others are 0 to 1, and not"):
        world(2).run(to_myself)


def test_grouped_exchanges_as_nccl_needs_them_give_the_same(world: World) -> None:
    def both_ways() -> tuple[bool, int]:
        import torch

        from labkit.network import ring_all_reduce
        from labkit.network.p2p import endpoint

        here: Any = endpoint()
        sums = []
        for here._grouped in (False, True):
            data = torch.arange(7.0) + here.rank
            ring_all_reduce(data)
            sums.append(data)
        return torch.equal(*sums), here.messages

    assert world(3).run(both_ways) == [(True, 8)] * 3


def test_chunks_cover_everything_once() -> None:
    assert [(part.start, part.stop) for part in chunks(7, 3)] == [(0, 3), (3, 5), (5, 7)]
    assert [(part.start, part.stop) for part in chunks(1, 3)] == [(0, 1), (1, 1), (1, 1)]


def test_where_two_costs_cross() -> None:
    alpha, beta = 5e-3, 1e7
    ring, tree, halving = (
        one.cost
        for one in (
            collectives.ring_all_reduce,
            collectives.binomial_all_reduce,
            collectives.recursive_halving_doubling,
        )
    )
    for ranks in (4, 7, 64):
        size = crossing(ring, tree, ranks, alpha, beta)
        assert ring(size, ranks, alpha, beta) == pytest.approx(tree(size, ranks, alpha, beta))
    assert crossing(ring, tree, 4, alpha, beta) == pytest.approx(40_000)
    assert crossing(ring, halving, 4, alpha, beta) is None  # as many bytes, fewer messages
    assert crossing(ring, tree, 2, alpha, beta) is None


def test_costs_in_the_alpha_beta_model() -> None:
    n, p, alpha, beta = 8e6, 4, 1e-5, 1e9
    assert collectives.ring_all_reduce.cost(n, p, alpha, beta) == pytest.approx(6 * alpha + 1.5 * n / beta)
    assert collectives.ring_all_gather.cost(n, p, alpha, beta) == pytest.approx(3 * alpha + 0.75 * n / beta)
    assert collectives.binomial_broadcast.cost(n, 5, alpha, beta) == pytest.approx(3 * (alpha + n / beta))
    tree = collectives.binomial_all_reduce.cost
    assert tree(n, 5, alpha, beta) == pytest.approx(6 * (alpha + n / beta))
    halving = collectives.recursive_halving_doubling.cost
    assert halving(n, p, alpha, beta) == pytest.approx(4 * alpha + 1.5 * n / beta)
    assert halving(n, 6, alpha, beta) == pytest.approx(6 * alpha + 3.5 * n / beta)
    far = collectives.hierarchical_all_reduce.cost(n, p, alpha, beta, node_size=2, far_beta=1e8)
    assert far == pytest.approx(2 * (alpha + n / 2 / beta) + 2 * (alpha + n / 4 / 1e8))
    assert all(one.cost(n, 1, alpha, beta) == 0 for one in COLLECTIVES)
    with pytest.raises(LabkitError, match="beta above 0"):
        halving(n, 4, alpha, 0)


def test_a_collective_says_its_formula() -> None:
    assert repr(collectives.ring_all_reduce) == (
        "<collective ring_all_reduce: 2 (p - 1) alpha + 2 (p - 1)/p n/beta>"
    )
