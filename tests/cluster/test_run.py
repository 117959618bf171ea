"""Functions on the nodes of a cluster: everything that `labkit.ranks` promises, with torchrun underneath."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import labkit
from labkit.errors import LabkitError
from labkit.network.cluster.machine import Cluster
from labkit.network.errors import RankError


def test_ranks_are_where_they_should_be_and_torchrun_has_started_them(
    ring: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    def who(greeting: str) -> tuple:
        import socket

        import torch
        import torch.distributed as dist

        total = torch.ones(1) * dist.get_rank()
        dist.all_reduce(total)
        place = labkit.rank_context()
        names = ("LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID")
        print(f"{greeting} from {place.rank}")
        return place.rank, place.node, socket.gethostname(), int(total), *(os.environ[name] for name in names)

    results = ring.run(who, "hello", ranks_per_node=2)
    assert [result[0] for result in results] == list(range(6))
    assert all(node == host for _, node, host, *_ in results)
    assert {result[3] for result in results} == {15}
    assert sorted((result[1], result[4]) for result in results) == [(n, r) for n in ring.nodes for r in "01"]
    assert all(result[6] == "6" and result[7].startswith(ring.handle.place.id) for result in results)
    shown = capfd.readouterr()
    assert {f"[rank {rank}] hello from {rank}" for rank in range(6)} == set(shown.out.splitlines())
    assert shown.err == ""
    assert results.backend == "gloo"
    assert "ring of 3" in results.reason
    assert repr(results).startswith("ClusterResults(6 on gloo: [(0, ")


def test_the_bytes_of_a_collective_are_counted_on_the_wires(ring: Cluster) -> None:
    def reduce(elements: int) -> float:
        import torch

        from labkit.network import ring_all_reduce

        data = torch.ones(elements)
        ring_all_reduce(data)
        return float(data.sum())

    elements = 3 * 2**18
    results = ring.run(reduce, elements)
    assert list(results) == [3.0 * elements] * 3
    each = 4 * elements * 2 * 2 / 3  # a ring of three: everybody sends four thirds of the data
    assert [one.bytes_sent for one in results.traffic] == [each] * 3
    carried = sum(link.total for link in results.links.values())
    assert (
        3 * each < carried < 1.1 * 3 * each
    )  # every rank's neighbour in the collective is its node's neighbour
    assert results.to_dict()["links"]["n0-n1"]["forth"] > 0
    assert "Counted by the links" in results._repr_html_()


def test_big_arguments_and_results_travel_and_a_trace_is_taken(ring: Cluster) -> None:
    def double(data: np.ndarray) -> np.ndarray:
        import torch.distributed as dist

        dist.barrier()
        return 2 * data

    data = np.arange(2_000_000)
    results = ring.run(double, data, trace=True)
    assert all(np.array_equal(one, 2 * data) for one in results)
    assert results.timeline().ranks == 3


def test_the_first_failure_is_told_with_its_line_and_what_the_others_did(ring: Cluster) -> None:
    def fails() -> None:
        import torch.distributed as dist

        dist.barrier()
        if dist.get_rank() == 1:
            raise ValueError("no such thing")
        dist.barrier()

    with pytest.raises(RankError) as caught:
        ring.run(fails)
    assert str(caught.value).startswith("Rank 1 of 3 failed with ValueError: no such thing\n")
    assert 'raise ValueError("no such thing")' in str(caught.value)
    assert caught.value.rank == 1
    assert set(caught.value.others) == {0, 2}
    assert ring.run(int) == [0, 0, 0]


@pytest.mark.slow
def test_a_deadlock_is_told_at_the_users_timeout(ring: Cluster) -> None:
    def mismatched() -> None:
        import torch
        import torch.distributed as dist

        dist.barrier()
        (dist.all_reduce if dist.get_rank() else dist.recv)(torch.ones(3))

    with pytest.raises(RankError, match=r"did not all return within 10 s") as caught:
        ring.run(mismatched, timeout=10)
    assert caught.value.kind == "timeout"
    assert "Rank 0 was in recv" in str(caught.value)


def test_a_run_across_a_cut_link_says_so(ring: Cluster) -> None:
    ring.link("n0", "n1").cut()
    with pytest.raises(RankError) as caught:
        ring.run(int, timeout=2)
    assert "did not meet in time" in str(caught.value)
    assert str(caught.value).endswith("The link n0-n1 is cut.")
    assert caught.value.kind == "launcher"


def _train(folder: str, steps: int) -> tuple[int, int, str]:
    """Steps in which all take part; each is noted, and a later attempt goes on where the last note is."""
    import torch
    import torch.distributed as dist

    note = Path(folder, "step")
    first = int(note.read_text()) if note.exists() else 0
    begin = torch.tensor([float(first)])
    dist.broadcast(begin, 0)
    for step in range(int(begin), steps):
        dist.all_reduce(torch.ones(1000))
        if dist.get_rank() == 0:
            note.write_text(str(step))
        time.sleep(0.02)
    return int(begin), dist.get_world_size(), os.environ["TORCHELASTIC_RESTART_COUNT"]


def _when(folder: Path, step: int, action: object, *args: object) -> threading.Thread:
    """Do something once a training has come so far."""

    def wait() -> None:
        limit = time.monotonic() + 100
        note = folder / "step"
        while time.monotonic() < limit:
            if note.exists() and int(note.read_text() or 0) >= step:
                action(*args)  # type: ignore[operator]
                return
            time.sleep(0.01)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_a_node_killed_in_a_collective_ends_the_run_with_a_sentence(ring: Cluster, tmp_path: Path) -> None:
    thread = _when(tmp_path, 5, ring.kill, "n1")
    with pytest.raises(RankError) as caught:
        ring.run(_train, str(tmp_path), 2000)
    thread.join()
    assert str(caught.value).startswith("Node n1 was killed with rank ")
    assert "lost the connection to it" in str(caught.value)
    assert ring.handle.processes(ring.nodes) == {}


@pytest.mark.slow
def test_a_killed_node_is_gone_without_and_one_that_comes_back_is_taken_in(
    ring: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    threads = [_when(tmp_path, 10, ring.kill, "n2"), _when(tmp_path, 40, ring.start, "n2")]
    results = ring.run(_train, str(tmp_path), 150, restarts=2, min_nodes=2, timeout=90)
    for thread in threads:
        thread.join()
    assert [world for _, world, _ in results] == [3, 3, 3]
    assert all(begin >= 39 for begin, _, _ in results)  # on from where they were
    assert results.restarts == 2
    without, taken_in = capsys.readouterr().out.splitlines()
    assert without == "[labkit] restarted (1 of 2 spent), now 2 ranks: node n2 was killed"
    assert taken_in == "[labkit] restarted (1 of 2 spent), now 3 ranks: a node has come back"


def test_a_failing_rank_is_started_again_until_no_restart_is_left(
    ring: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def unlucky(folder: str, times: int) -> str:
        import torch.distributed as dist

        attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
        dist.barrier()
        if dist.get_rank() == 1 and int(attempt) < times:
            raise OSError("bad luck")
        dist.barrier()
        return attempt

    assert ring.run(unlucky, str(tmp_path), 1, restarts=1) == ["1", "1", "1"]
    assert "now 3 ranks: rank 1 failed with OSError: bad luck" in capsys.readouterr().out
    with pytest.raises(RankError, match="Rank 1 of 3 failed with OSError: bad luck"):
        ring.run(unlucky, str(tmp_path), 2, restarts=1)


def test_a_killed_first_node_takes_the_rendezvous_with_it(ring: Cluster, tmp_path: Path) -> None:
    thread = _when(tmp_path, 5, ring.kill, "n0")
    with pytest.raises(RankError, match=r"Node n0 was killed .*\(n0 is the first node\).* topology='switch'"):
        ring.run(_train, str(tmp_path), 2000, restarts=2, min_nodes=1)
    thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("topology", ["switch", "tree"])
def test_where_there_is_a_switch_a_run_goes_on_without_its_first_node(
    make: Callable[..., Cluster], tmp_path: Path, capsys: pytest.CaptureFixture[str], topology: str
) -> None:
    cluster = make(3, topology, "1Gbit/s")
    thread = _when(tmp_path, 5, cluster.kill, "n0")
    results = cluster.run(_train, str(tmp_path), 40, restarts=5, min_nodes=2)
    thread.join()
    assert [world for _, world, _ in results] == [2, 2]
    assert all(begin >= 4 for begin, _, _ in results)
    assert "now 2 ranks: node n0 was killed" in capsys.readouterr().out
    assert cluster.handle.processes(cluster.nodes) == {}


@pytest.mark.slow
def test_a_run_outlasts_a_link_that_is_cut_for_30_s(ring: Cluster, tmp_path: Path) -> None:
    link = ring.link("n0", "n1")

    def cut() -> None:
        link.cut()
        time.sleep(31)
        link.heal()

    thread = _when(tmp_path, 10, cut)
    results = ring.run(_train, str(tmp_path), 40, timeout=110)
    thread.join()
    assert [(begin, world) for begin, world, _ in results] == [
        (0, 3)
    ] * 3  # the same ranks, from the beginning
    assert results.seconds > 31
    assert results.restarts == 0


@pytest.mark.slow
def test_a_link_that_stays_cut_ends_the_run_at_the_users_timeout_with_a_sentence(
    ring: Cluster, tmp_path: Path
) -> None:
    thread = _when(tmp_path, 5, ring.link("n0", "n1").cut)
    with pytest.raises(RankError) as caught:
        ring.run(_train, str(tmp_path), 20000, timeout=40)
    thread.join()
    assert "did not all return within 40 s" in str(caught.value)
    assert "in all_reduce" in str(caught.value)
    assert str(caught.value).endswith("The link n0-n1 is cut.")
    assert ring.handle.processes(ring.nodes) == {}


def test_a_link_that_is_cut_for_a_while_only_delays(ring: Cluster, tmp_path: Path) -> None:
    link = ring.link("n0", "n1")

    def cut() -> None:
        link.cut()
        time.sleep(1.5)
        link.heal()

    thread = _when(tmp_path, 10, cut)
    results = ring.run(_train, str(tmp_path), 40)
    thread.join()
    assert [world for _, world, _ in results] == [3, 3, 3]
    assert results.seconds > 2


def test_stop_ends_the_ranks_and_nothing_is_left_in_the_nodes(ring: Cluster, tmp_path: Path) -> None:
    thread = _when(tmp_path, 5, os.kill, os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        ring.run(_train, str(tmp_path), 2000)
    thread.join()
    assert ring.handle.processes(ring.nodes) == {}
    assert ring.run(int) == [0, 0, 0]


def test_many_runs_leave_no_descriptor_open(ring: Cluster) -> None:
    ring.run(int)
    before = len(os.listdir("/proc/self/fd"))
    ring.run(int)
    with pytest.raises(RankError):
        ring.run(lambda: 1 / 0)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ranks_per_node": 0}, "ranks_per_node=0 is not a whole number from 1 on"),
        ({"ranks_per_node": 30}, "are 90 ranks: at most 64"),
        ({"restarts": -1}, "restarts=-1"),
        ({"min_nodes": 4}, "more than the 3 nodes"),
        ({"timeout": 0}, "no time to run"),
    ],
)
def test_what_cannot_be_run(ring: Cluster, options: dict, words: str) -> None:
    with pytest.raises(LabkitError, match=words):
        ring.run(int, **options)


def test_what_cannot_travel_and_where_nothing_is_up(ring: Cluster, tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file, pytest.raises(LabkitError, match="an open file"):
        ring.run(print, file)
    for node in ring.nodes:
        ring.kill(node)
    with pytest.raises(LabkitError, match="All nodes of this cluster are down"):
        ring.run(int)
