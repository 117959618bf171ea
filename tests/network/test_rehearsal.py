"""Collectives in rehearsal, and their animation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from labkit.errors import LabkitError
from labkit.network import collectives as ours
from labkit.network import exchange, irecv, isend, recv, rehearse, send
from labkit.network.p2p import endpoint

EVERYBODY = {
    ours.ring_all_reduce: (),
    ours.recursive_halving_doubling: (),
    ours.hierarchical_all_reduce: (2,),
}


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("collective", EVERYBODY, ids=lambda one: one.name)
def test_an_all_reduce_brings_everybody_to_everybody(collective: ours.Collective, ranks: int) -> None:
    arguments = () if ranks == 1 and EVERYBODY[collective] else EVERYBODY[collective]
    if ranks == 1 and EVERYBODY[collective]:
        arguments = (1,)
    played = rehearse(collective, ranks, arguments=arguments)
    assert played.states[-1] == ((tuple(range(ranks)),) * ranks,) * ranks
    assert len(played.states) == played.steps + 1


def test_steps_and_messages_of_the_ring() -> None:
    played = rehearse(ours.ring_all_reduce, 4)
    assert played.steps == 6
    assert repr(played) == "Rehearsal(ring_all_reduce on 4 ranks: 6 steps, 24 messages)"
    first = [(one.source, one.to, one.start) for one in played.messages if one.step == 0]
    assert first == [(0, 1, 3), (1, 2, 0), (2, 3, 1), (3, 0, 2)]
    after_reduce_scatter = played.states[3]
    assert all(after_reduce_scatter[rank][rank] == (0, 1, 2, 3) for rank in range(4))
    assert "0 to 1 (3:4)" in played._repr_html_()
    assert played.to_dict()["steps"] == 6


@pytest.mark.parametrize(("ranks", "steps"), [(2, 1), (4, 2), (5, 3), (8, 3), (9, 4)])
def test_trees_take_log2_steps(ranks: int, steps: int) -> None:
    spread = rehearse(ours.binomial_broadcast, ranks)
    assert (spread.steps, len(spread.messages)) == (steps, ranks - 1)
    assert spread.states[-1] == (((0,),) * ranks,) * ranks
    gathered = rehearse(ours.binomial_reduce, ranks)
    assert (gathered.steps, len(gathered.messages)) == (steps, ranks - 1)
    assert gathered.states[-1][0] == (tuple(range(ranks)),) * ranks


def test_ones_own_function_can_be_rehearsed() -> None:
    def shift(data) -> None:
        here = endpoint()
        coming = data.copy()
        receiving = irecv(coming, (here.rank - 1) % here.size)
        isend(data, (here.rank + 1) % here.size).wait()
        receiving.wait()
        data[...] = coming

    def shift_at_once(data) -> None:
        here = endpoint()
        coming = data.copy()
        exchange(data, (here.rank + 1) % here.size, coming, (here.rank - 1) % here.size)
        data[...] = coming

    played = rehearse(shift, 3, elements=1)
    assert played.name == "shift"
    assert rehearse(shift_at_once, 3, elements=1).messages == played.messages
    assert played.states[-1] == (((2,),), ((0,),), ((1,),))


def test_a_deadlock_names_who_waits_for_whom() -> None:
    def everybody_receives_first(data) -> None:
        here = endpoint()
        recv(data, (here.rank + 1) % here.size)
        send(data, (here.rank - 1) % here.size)

    with pytest.raises(LabkitError, match="rank 0 waits to receive from rank 1 and rank 1 waits to"):
        rehearse(everybody_receives_first, 2)


def test_a_mistake_of_one_rank_is_what_is_raised() -> None:
    def fails(data) -> None:
        if endpoint().rank == 1:
            raise ZeroDivisionError("mine")
        recv(data, 1)

    with pytest.raises(ZeroDivisionError, match="mine"):
        rehearse(fails, 3)


@pytest.mark.parametrize("ranks", [0, 17])
def test_too_few_or_too_many(ranks: int) -> None:
    with pytest.raises(LabkitError, match="1 to 16 ranks"):
        rehearse(ours.ring_all_reduce, ranks)


def test_sizes_that_differ_are_a_sentence() -> None:
    def uneven(data) -> None:
        if endpoint().rank:
            recv(data[:1], 0)
        else:
            send(data, 1)

    with pytest.raises(LabkitError, match="Rank 1 receives 1 elements from rank 0, which sent 2"):
        rehearse(uneven, 2)


def test_the_animation_has_a_frame_a_step_and_the_result(require: Callable[..., None]) -> None:
    require("lab")
    from labkit.widgets.collective_steps import collective_steps

    figure = collective_steps(rehearse(ours.ring_all_reduce, 4))
    assert [frame.name for frame in figure.frames] == [f"step {k} of 6" for k in range(1, 7)] + ["result"]
    cells, arrows = figure.frames[0].data
    assert list(cells.text[3]) == ["0", "1", "2", "3"]
    assert list(arrows.x[:3]) == [0, 1, None]
    assert set(figure.frames[-1].data[0].text[0]) == {"all"}
    assert "modelled" in figure.layout.title.text
    assert len(figure.layout.sliders[0].steps) == 7
    assert figure.layout.updatemenus[0].buttons[0].label == "Play"
    assert "step 3 of 6" in figure.to_html(include_plotlyjs=False)


def test_a_rehearsal_needs_no_torch() -> None:
    code = (
        "import sys; from labkit.network import rehearse, ring_all_reduce\n"
        "rehearse(ring_all_reduce, 3); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
