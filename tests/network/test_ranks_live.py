"""What ranks are doing right now, as the monitor reads it; and the emulated link."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from labkit.network import live
from labkit.network.link import Bucket, Pace
from labkit.network.ranks import Ranks
from labkit.telemetry.sources.ranks import RanksSource

World = Callable[..., Ranks]


def _watched(group: Ranks, function: Callable[[], Any], look: Callable[[], Any]) -> list[Any]:
    """What ``look()`` gives every 50 ms while the function runs."""
    seen: list[Any] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            seen.append(look())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        group.run(function)
    finally:
        done.set()
        watcher.join()
    return seen


def _straggle() -> None:
    """Rank 1 computes for a second, rank 0 waits for it; then a few MB move."""
    import torch
    import torch.distributed as dist

    data = torch.ones(1 << 20)
    if dist.get_rank() == 1:
        time.sleep(1.0)
    dist.all_reduce(data)
    time.sleep(0.3)


def test_a_waiting_rank_is_told_from_a_computing_one(world: World) -> None:
    seen = [states for states in _watched(world(2), _straggle, live.active) if len(states) == 2]
    during = [tuple(state.state for state in states) for states in seen]
    assert ("wait", "compute") in during
    late = max((states for states in seen), key=lambda states: states[0].bytes_sent)
    assert late[0].call == "" or late[0].call == "all_reduce"
    assert late[0].wait_s > 0.5 > late[1].wait_s
    assert late[1].compute_s > 0.9
    assert 4 * 2**20 <= late[0].bytes_sent < 4 * 2**20 + 20_000  # half to it, half back, and headers
    assert late[0].calls == 1
    waiting = [states[0].call for states in seen if states[0].state == "wait"]
    assert set(waiting) == {"all_reduce"}


def test_between_runs_nothing_is_active(world: World) -> None:
    world(2).run(int)
    assert live.active() == ()
    assert RanksSource().read() == []


def test_the_monitors_source_gives_shares_and_rates(world: World) -> None:
    source = RanksSource()
    read = _watched(world(2), _straggle, source.read)
    values: dict[str, list[float]] = {}
    for readings in read:
        for reading in readings:
            assert reading.series.provenance == "measured"
            if reading.value is not None:
                values.setdefault(reading.series.key, []).append(reading.value)
    assert len(values) == 11  # five a rank, and their imbalance
    assert 1.0 <= max(values["ranks.imbalance"]) <= 2.0
    assert max(values["rank.0.wait"]) > 80
    assert max(values["rank.1.compute"]) > 80
    assert max(values["rank.0.sent"]) > 1  # MB/s
    assert all(0 <= value <= 100 for key in ("rank.0.wait", "rank.1.compute") for value in values[key])


def _uneven_work() -> None:
    """Rank 0 has six items of 0.1 s and rank 1 one; what came before does not count."""
    import torch.distributed as dist

    from labkit.network import run_split

    time.sleep(0.4 * dist.get_rank())
    run_split(lambda item: time.sleep(0.1), 7, "proportional", speeds=[6, 1])


def test_imbalance_is_seen_while_it_is_there(world: World) -> None:
    source = RanksSource()
    read = _watched(world(2), _uneven_work, source.read)
    rows = [{one.series.key: one.value for one in readings} for readings in read]
    done = [(row["rank.0.done"], row["rank.1.done"]) for row in rows if "rank.1.done" in row]
    assert done == sorted(done)  # it only grows
    assert any(0 < first < 80 for first, _ in done)  # while it goes on, not at the end alone
    assert done[-1] == pytest.approx((600 / 7, 100 / 7))
    late = [row for row in rows if row.get("rank.0.done", 0) > 50]
    assert late
    assert all(row["rank.1.wait"] > 50 for row in late[1:3])
    assert 1.5 < late[-1]["ranks.imbalance"] < 1.9  # 0.6 s over the mean of 0.6 and 0.1: 1.71


def test_work_done_outside_of_ranks_is_nothing() -> None:
    live.work_done(1, 2)
    assert live.active() == ()


def test_the_board_says_what_was_written() -> None:
    from labkit.network.launch import wire

    file = wire.memory_file()
    board, other = live.Board(file, 2), live.Board(file, 2)
    os.close(file)
    board.set(1, process=42, state=2, call=1, began=10.0, since=12.0, in_calls=1.0, waited=0.5, bytes_sent=7)
    state = other.read(1, "cpu", now=13.0)
    assert (state.busy_s, state.whole) == (1.0, 0.0)
    assert (state.process, state.state, state.call, state.bytes_sent) == (42, "communicate", "all_reduce", 7)
    assert (state.compute_s, state.communicate_s, state.wait_s, state.state_s) == (1.0, 1.5, 0.5, 1.0)
    assert other.read(0, "cpu", now=13.0).state == "starting"


@pytest.mark.parametrize("rate", ["100Mbit/s", None])
def test_a_message_over_the_emulated_link_takes_alpha_plus_n_over_beta(
    world: World, rate: str | None
) -> None:
    def measure() -> tuple[float, float]:
        import torch
        import torch.distributed as dist

        from labkit.network import recv, send

        data = torch.ones(250_000)  # 1 MB: 80 ms at 100 Mbit/s
        dist.barrier()
        began = time.monotonic()
        if dist.get_rank() == 0:
            send(data, 1)
        else:
            recv(data, 0)
        return began, time.monotonic()

    results = world(2, link=rate, latency="20ms").run(measure)
    took = results[1][1] - results[0][0]  # from the sender's start to the receiver's end
    least = 0.1 if rate else 0.02
    assert least <= took < least + 1.0  # a busy machine may add to it, never take away
    assert results.traffic[0].bytes_sent == results.traffic[1].bytes_received == 1_000_000
    assert dict(results.traffic[0].sent) == {1: 1_000_000}
    assert "Emulated link of each rank" in results._repr_html_()


def test_a_bucket_lets_bytes_pass_in_turn() -> None:
    bucket = Bucket(100.0)
    assert bucket.reserve(50, now=1.0) == 1.5
    assert bucket.reserve(50, now=1.2) == 2.0  # behind the first
    assert bucket.reserve(10, now=5.0) == 5.1  # the link had rested


def test_senders_to_one_rank_share_its_link() -> None:
    receiver = Pace(100.0, 0.5)
    assert receiver.arrives(100, start=0.0) == 1.5
    assert receiver.arrives(100, start=0.0) == 2.5


def test_traffic_shows_itself(world: World) -> None:
    from labkit.network import ring_all_reduce

    def reduce() -> None:
        import torch

        ring_all_reduce(torch.ones(300))

    results = world(3).run(reduce)
    assert [one.bytes_sent for one in results.traffic] == [1600] * 3  # 2 (p - 1) / p of 1200 bytes
    assert repr(results.traffic[0]) == (
        "RankTraffic(rank 0: 4 messages, 1600 bytes sent, 1600 bytes received)"
    )
