"""The reference of the checks, in NumPy, is what torch computes; and the cases tell mistakes apart."""

from __future__ import annotations

import numpy as np
import pytest
from support import needs

from labkit.course import seeds
from labkit.course.lessons import l07_cases as cases
from labkit.course.lessons import l07_serial as serial
from labkit.course.lessons import l07_why_more as more
from labkit.network.memory_model import least_stage, training_memory


def test_gradients_are_those_of_torch() -> None:
    needs.require("torch")
    from labkit.course.lessons import l07_torch as nets

    ((x, y),) = serial.batches(5, 1, 6, serial.WIDTH, serial.WIDTH)
    model = nets.tied(5)
    ((tx, ty),) = nets.tensors([(x, y)])
    nets.mean_square(model(tx), ty).backward()
    found = nets.gradients(model)
    for name, wanted in serial.tied_gradient(serial.tied_weights(5), x, y).items():
        np.testing.assert_allclose(found[name], wanted, rtol=1e-10)
    assert found["frozen.weight"] is None

    ((x, y),) = serial.batches(6, 1, 4, cases.CHAIN[0], cases.CHAIN[-1])
    chain = nets.chain(cases.CHAIN, 6)
    ((tx, ty),) = nets.tensors([(x, y)])
    nets.mean_square(chain(tx), ty).backward()
    found = nets.gradients(chain)
    for name, wanted in serial.chain_gradient(serial.chain_weights(cases.CHAIN, 6), x, y).items():
        np.testing.assert_allclose(found[name], wanted, rtol=1e-10)
    sizes = [one.numel() * 8 for one in chain.parameters()]
    assert sizes == cases.chain_sizes()


def test_buckets_are_packed_as_data_parallel_packs_them() -> None:
    needs.require("torch")
    from labkit.course.lessons import l07_torch as nets
    from labkit.network.training import assign

    for limit in (64, 256, 700, 100_000):
        buckets = assign(nets.chain(cases.CHAIN, 1).named_parameters(), limit)
        assert [one.nbytes for one in buckets] == cases.packed(cases.chain_sizes()[::-1], limit)


@pytest.mark.parametrize("who", range(40))
def test_tables_of_zero_agree_with_the_memory_model(who: int) -> None:
    table = cases.zero_table(seeds.generator("07.zero", f"learner {who}"))
    memory = training_memory(table["parameters"], ranks=table["ranks"], activations=table["activations"])
    fits = least_stage(memory, table["memory"])
    stage = cases.fitting(**table)
    assert stage is not None
    assert stage > 0
    assert fits is not None
    assert fits.zero_stage == stage


def test_each_mistake_about_zero_is_alone_with_its_stage_in_some_case() -> None:
    calls = list(cases.zero(cases.zero_table(seeds.generator("07.zero", "somebody"))))
    for place in range(len(more.zero_guesses(**calls[0].arguments))):
        wrong = [call for call in calls if more.zero_guesses(**call.arguments)[place][0] != call.expected]
        value, why = more.zero_guesses(**wrong[0].arguments)[place]
        trouble = more.zero(wrong[0], value)
        assert trouble is not None
        assert trouble[1] == why


def test_unused_cases_are_what_backward_leaves_without_a_gradient() -> None:
    needs.require("torch")
    import torch

    from labkit.course.lessons import l07_torch as nets

    for name, forward in nets.NETS.items():
        if "60 levels" in name:
            continue
        model = nets.Branches()
        output = forward(model, torch.ones(2, 4))
        if output.requires_grad:
            output.sum().backward()
        left = sorted(key for key, one in model.named_parameters() if one.grad is None)
        assert left == sorted(cases.UNUSED[name]), name
