"""Other right answers than the one in the solutions pass as well."""

from __future__ import annotations

import pytest
from support import needs

import labkit
from labkit.course import sources
from labkit.course.lessons.l08_wrong_training import TORCHRUN

_PARALLEL = """
def train(data, epochs, path):
    import os

    import torch
    from torch import distributed as dist

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else "cpu"
    torch.manual_seed(3)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 10).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        order = torch.randperm(len(data), generator=torch.Generator().manual_seed(epoch)).tolist()
        for k in range(0, len(order), 24):
            mine = order[k : k + 24][rank :: dist.get_world_size()]
            images, labels = zip(*(data[i] for i in mine))
            loss = torch.nn.functional.cross_entropy(model(torch.stack(images)), torch.tensor(labels))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    if not rank:
        torch.save(model.module.state_dict(), path)
    dist.barrier()
    dist.destroy_process_group()
    return model.module
"""


def test_torchs_own_data_parallel_module_and_shares_by_hand():
    needs.require("torch")
    result = labkit.exercise("08.torchrun").check(sources.answer(_PARALLEL, "train"), seconds=40)
    assert result.passed, result


_BY_HAND = """
def hierarchical(data, rank, nodes, per_node):
    from labkit.network import binomial_broadcast, binomial_reduce, exchange

    first = rank - rank % per_node
    size = len(data) // per_node
    for place in range(per_node):  # each rank gathers the sums of its own chunk
        chunk = data[place * size : (place + 1) * size]
        binomial_reduce(chunk, root=first + place, members=range(first, first + per_node))
    mine = data[rank % per_node * size : (rank % per_node + 1) * size]
    part, me = size // nodes, rank // per_node
    ring = [rank % per_node + node * per_node for node in range(nodes)]
    for reduce in (True, False):
        for step in range(nodes - 1):
            out, into = (me - step - 1, me - step - 2) if reduce else (me - step, me - step - 1)
            got = np.empty(part)
            out, into = out % nodes * part, into % nodes * part
            exchange(mine[out : out + part], ring[(me + 1) % nodes], got, ring[me - 1])
            if reduce:
                mine[into : into + part] += got
            else:
                mine[into : into + part] = got
    for place in range(per_node):
        chunk = data[place * size : (place + 1) * size]
        binomial_broadcast(chunk, root=first + place, members=range(first, first + per_node))
"""


def test_two_levels_from_sends_and_other_collectives():
    result = labkit.exercise("08.hierarchical").check(sources.answer(_BY_HAND, "hierarchical"))
    assert result.passed, result


@pytest.mark.parametrize("kilo", [1.0, 1000.0])
def test_the_claims_number_may_be_in_either_unit(kilo: float):
    claim = {
        "verdict": "False",
        "number": 1.6 * kilo,
        "unit": "us" if kilo == 1 else "ns",
        "left_out": ["the cards at both ends"],
    }
    assert labkit.exercise("08.claim").check(claim).passed


def test_the_wrong_scripts_differ_from_the_right_one_in_what_they_are_named_after():
    assert len({one.source for one in TORCHRUN}) == len(TORCHRUN) >= 15


def test_labkits_own_two_levels_are_no_answer():
    text = "def hierarchical(data, rank, nodes, per_node):\n"
    text += "    from labkit.network import hierarchical_all_reduce\n\n    hierarchical_all_reduce(data, per_node)\n"
    result = labkit.exercise("08.hierarchical").check(sources.answer(text, "hierarchical"))
    assert result.outcome == "failed"
    assert result.message == "The sums are right, and a ready-made hierarchical_all_reduce has made them."


@pytest.mark.parametrize(
    ("body", "says", "hint"),
    [
        ("while True: pass", "did not come to an end", "does a loop before it never end?"),
        (
            "import os; os._exit(0)",
            "Rank 0 of 4 ended its process in the middle of train.",
            "return the model",
        ),
    ],
)
def test_a_script_that_ends_in_no_usual_way_is_told_so(body: str, says: str, hint: str):
    needs.require("torch")
    text = f"def train(data, epochs, path):\n    {body}\n"
    result = labkit.exercise("08.torchrun").check(sources.answer(text, "train"))
    assert result.outcome == "failed"
    assert says in result.message
    assert hint in result.why
