"""Plays: ranks on threads, their messages, and who waits for whom."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import pytest

from labkit.errors import LabkitError
from labkit.network import collectives as ours
from labkit.network import exchange, irecv, isend, play, rank_context, recv, send
from labkit.network.played import Deadlock


def world() -> tuple[int, int]:
    here = rank_context()
    return here.rank, here.world_size


def to_the_right(data: np.ndarray) -> np.ndarray:
    rank, ranks = world()
    coming = np.empty_like(data)
    exchange(data, (rank + 1) % ranks, coming, (rank - 1) % ranks)
    return coming


def blocks(ranks: int, elements: int = 2, dtype: type = np.float32) -> list[tuple[np.ndarray]]:
    return [(np.full(elements, rank, dtype),) for rank in range(ranks)]


@pytest.mark.parametrize("ranks", [2, 3, 8, 33])
def test_results_messages_and_bytes(ranks: int) -> None:
    played = play(to_the_right, ranks, blocks(ranks))
    assert [list(one) for one in played.results] == [[(r - 1) % ranks] * 2 for r in range(ranks)]
    assert played.bytes_sent == played.bytes_received == (8,) * ranks
    assert played.steps == 1
    assert not played.unreceived
    assert {(m.source, m.to, m.elements, m.bytes, m.kind) for m in played.messages} == {
        (r, (r + 1) % ranks, 2, 8, "send") for r in range(ranks)
    }


def test_every_run_is_the_same() -> None:
    first, second = (play(ours.ring_all_reduce, 5, blocks(5, 7)) for _ in range(2))
    assert first.messages == second.messages
    assert first.events == second.events
    assert [one.order for one in first.messages] == list(range(40))


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float64, np.complex64, np.bool_])
def test_any_type_of_numbers(dtype: type) -> None:
    played = play(to_the_right, 2, blocks(2, 3, dtype))
    assert played.results[0].dtype == dtype
    assert played.messages[0].bytes == 3 * np.dtype(dtype).itemsize


@pytest.mark.parametrize(
    ("op", "result"),
    [("sum", 10), ("product", 24), ("min", 1), ("max", 4), ("band", 0), ("bor", 7), ("bxor", 4)],
)
def test_collectives_reduce_as_they_are_told(op: str, result: int) -> None:
    data = [(np.full(5, rank + 1), op) for rank in range(4)]
    played = play(ours.ring_all_reduce, 4, data)
    assert all((one == result).all() for one, _ in data)
    assert {message.kind for message in played.messages} == {"all_reduce"}


def test_torch_tensors(require: Callable[..., None]) -> None:
    require("torch")
    import torch

    data = [(torch.full((3,), float(rank), requires_grad=True),) for rank in range(3)]
    played = play(ours.binomial_broadcast, 3, data)
    assert all((one == 0).all() for (one,) in data)
    assert [(m.source, m.to, m.step, m.bytes) for m in played.messages] == [(0, 1, 0, 12), (0, 2, 1, 12)]
    whole = [(torch.full((4,), rank + 1, dtype=torch.bfloat16), "max") for rank in range(2)]
    play(ours.recursive_halving_doubling, 2, whole)
    assert (whole[0][0] == 2).all()


def test_a_message_with_nothing_in_it_is_not_sent() -> None:
    played = play(to_the_right, 3, blocks(3, 0))
    assert (played.messages, played.steps, played.bytes_sent) == ((), 0, (0, 0, 0))


def test_a_rank_sends_one_message_a_step() -> None:
    def to_all(data: np.ndarray) -> None:
        rank, ranks = world()
        if rank:
            recv(data, 0)
        else:
            for transfer in [isend(data, to) for to in range(1, ranks)]:
                transfer.wait()

    def from_all(data: np.ndarray) -> None:
        rank, ranks = world()
        if rank:
            send(data, 0)
        else:
            for transfer in [irecv(np.empty_like(data), source) for source in range(1, ranks)]:
                transfer.wait()

    for function in (to_all, from_all):
        assert [one.step for one in play(function, 5, blocks(5)).messages] == [0, 1, 2, 3]


def test_everybody_receives_first() -> None:
    def stuck(data: np.ndarray) -> None:
        rank, ranks = world()
        recv(data, (rank - 1) % ranks)
        send(data, (rank + 1) % ranks)

    began = time.monotonic()
    with pytest.raises(Deadlock) as caught:
        play(stuck, 3, blocks(3))
    assert time.monotonic() - began < 1
    assert "rank 0 waits to receive from rank 2, rank 1 waits to receive from rank 0 and rank 2" in str(
        caught.value
    )
    assert [(one.rank, one.what, one.other) for one in caught.value.waits] == [
        (0, "receive", 2),
        (1, "receive", 0),
        (2, "receive", 1),
    ]
    with pytest.raises(Deadlock, match="rank 5 waits to receive from rank 4 and 10 more ranks wait"):
        play(stuck, 16, blocks(16))


def test_everybody_sends_first() -> None:
    def shift(data: np.ndarray) -> np.ndarray:
        rank, ranks = world()
        coming = np.empty_like(data)
        send(data, (rank + 1) % ranks)
        recv(coming, (rank - 1) % ranks)
        return coming

    with pytest.raises(Deadlock, match=r"rank 0 waits to send to rank 1 and .* A send is over only when"):
        play(shift, 2, blocks(2))
    assert play(shift, 2, blocks(2), rendezvous=False).results[0][0] == 1


def test_who_waits_for_a_rank_that_has_ended() -> None:
    def late(data: np.ndarray) -> str:
        rank, _ = world()
        if rank == 2:
            recv(data, 0)
        elif rank == 1:
            send(data, 0)
        else:
            recv(data, 1)
        return "done"

    with pytest.raises(Deadlock, match="rank 2 waits to receive from rank 0, which has ended") as caught:
        play(late, 3, blocks(3))
    assert caught.value.play.results == ("done", "done", None)
    assert caught.value.play.bytes_sent == (0, 8, 0)
    assert [one.what for one in caught.value.play.events if one.rank == 1] == ["send", "ended"]


def test_a_mistake_on_one_rank_ends_all() -> None:
    def fails(data: np.ndarray) -> None:
        rank, _ = world()
        if rank == 2:
            raise ZeroDivisionError("mine")
        try:
            recv(data, 2)
        except Exception:
            pytest.fail("nothing of this rank's own went wrong")

    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        play(fails, 3, blocks(3))
    assert caught.value.__notes__ == ["(on rank 2 of 3)"]


def test_messages_that_nobody_takes() -> None:
    def lost(data: np.ndarray) -> None:
        if world()[0] == 0:
            isend(data, 1)

    assert [one.received for one in play(lost, 2, blocks(2)).unreceived] == [False]


def test_a_buffer_changed_while_it_is_being_sent() -> None:
    def hasty(data: np.ndarray) -> None:
        rank, _ = world()
        if rank == 0:
            transfer = isend(data, 1)
            data += 1
            transfer.wait()
        else:
            recv(data, 0)

    with pytest.raises(LabkitError, match="Rank 0 changed the data of its message to rank 1 before wait"):
        play(hasty, 2, blocks(2))


def test_a_receive_is_there_after_its_wait() -> None:
    def looks(data: np.ndarray) -> tuple[float, float]:
        rank, _ = world()
        if rank == 1:
            isend(data, 0).wait()
            return 0, 0
        transfer = irecv(data, 1)
        before = float(data[0])
        transfer.wait()
        transfer.wait()  # once more does nothing
        return before, float(data[0])

    assert play(looks, 2, blocks(2)).results[0] == (0.0, 1.0)


@pytest.mark.parametrize(
    ("mine", "theirs", "message"),
    [
        (np.zeros(3), np.zeros(2), "Rank 1 receives 3 elements from rank 0, which sent 2"),
        (np.zeros(3, np.float32), np.zeros(3), "Rank 1 receives float32 from rank 0, which sent float64"),
        (np.zeros((3, 3)).T, np.zeros(9), "not contiguous"),
        (np.zeros(3)[1], np.zeros(1), "not a float64: for one element, pass a slice"),
        ([0.0], np.zeros(1), "not a list"),
    ],
)
def test_what_does_not_fit(mine: object, theirs: np.ndarray, message: str) -> None:
    def once(data: np.ndarray) -> None:
        send(data, 1) if world()[0] == 0 else recv(data, 0)

    with pytest.raises(LabkitError, match=message):
        play(once, 2, [(theirs,), (mine,)])


def test_bad_worlds() -> None:
    for ranks, given in ((0, []), (65, [()] * 65), (2, [()])):
        with pytest.raises(LabkitError, match="1 to 64 ranks and arguments for each"):
            play(to_the_right, ranks, given)


def test_what_a_play_shows() -> None:
    played = play(to_the_right, 2, blocks(2))
    assert repr(played) == "Play(on 2 ranks: 1 steps, 2 messages, 16 bytes, counted)"
    assert "0 to 1 (2), 1 to 0 (2)" in played._repr_html_()
    assert played.to_dict()["messages"][0]["to"] == 1


def test_outside_a_play_nobody_is_a_rank() -> None:
    play(to_the_right, 2, blocks(2))
    with pytest.raises(LabkitError, match="known only inside"):
        rank_context()


def test_a_play_needs_no_torch() -> None:
    code = (
        "import sys, numpy as np; from labkit.network import play, ring_all_reduce\n"
        "play(ring_all_reduce, 3, [(np.ones(4),) for _ in range(3)]); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_real_ranks_take_arrays_too(require: Callable[..., None]) -> None:
    require("torch")
    import labkit

    results = labkit.ranks(3).run(to_the_right, np.full(2, 7.0))
    assert [list(one) for one in results] == [[7.0, 7.0]] * 3

    def total(data: np.ndarray) -> list[float]:
        ours.ring_all_reduce(data)
        return list(data)

    assert labkit.ranks(3).run(total, np.arange(4.0)) == [[0.0, 3.0, 6.0, 9.0]] * 3
