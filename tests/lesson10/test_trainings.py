"""Real trainings in every way: what they send, as counted, what they learn, and that ranks stay in step."""

from __future__ import annotations

from typing import Any

import pytest
from support.needs import require

require("torch")

import labkit  # noqa: E402
from labkit.course.slow_training import Training, compress_seconds, train, with_link  # noqa: E402
from labkit.network.cluster.emulated import EmulatedCluster  # noqa: E402
from labkit.network.compression import WAYS  # noqa: E402

FEWER = {  # times fewer bytes than fp32: at least, at most
    "fp16": (1.9, 2.05),
    "top 1 %": (25, 50),
    "sign": (20, 31),
    "PowerSGD": (6, 10),
    "local SGD": (6.5, 8.5),
    "1-bit Adam": (3.5, 5.5),
}


@pytest.fixture(scope="module")
def trained() -> dict[str, list[Training]]:
    """All ways, 72 steps each, in one run of two ranks."""

    def all_ways() -> list[Training]:
        return [train(way, steps=72) for way in WAYS]

    results = labkit.ranks(2).run(all_ways, timeout=300)
    return {way: [rank[n] for rank in results] for n, way in enumerate(WAYS)}


@pytest.mark.parametrize("way", WAYS)
def test_ranks_end_with_the_same_weights(trained: dict[str, list[Training]], way: str) -> None:
    first, second = trained[way]
    assert first.checksum == second.checksum
    assert [one.accuracy for one in first.points][-1] == second.last.accuracy


@pytest.mark.parametrize("way", [way for way in WAYS if "no feedback" not in way])
def test_everything_learns_as_well_as_fp32(trained: dict[str, list[Training]], way: str) -> None:
    def in_the_end(one: str) -> float:
        return sum(point.accuracy for point in trained[one][0].points[-4:]) / 4

    assert in_the_end("fp32") > 0.9
    assert in_the_end(way) > in_the_end("fp32") - 0.05


@pytest.mark.parametrize("way", ["top 1 %", "PowerSGD"])
def test_feedback_makes_the_difference(trained: dict[str, list[Training]], way: str) -> None:
    def all_along(one: str) -> float:
        points = trained[one][0].points
        return sum(point.accuracy for point in points) / len(points)

    assert all_along(way) > all_along(f"{way}, no feedback") + 0.05


@pytest.mark.parametrize("way", FEWER)
def test_bytes_on_the_connections(trained: dict[str, list[Training]], way: str) -> None:
    full = trained["fp32"][1]  # rank 1 sends no weights at the start
    sent = [one[1].last.bytes_sent for one in (trained["fp32"], trained[way])]
    # A byte counts once it is acknowledged: what the last step sent may be out still.
    assert 1 - 1.5 / 72 < sent[0] / (72 * 4 * full.weights) < 1.05
    low, high = FEWER[way]
    assert 0.97 * low < sent[0] / sent[1] < 1.05 * high
    assert full.where == "this rank's TCP connections"


def test_an_incomplete_round_of_local_sgd_ends_with_an_average_that_counts() -> None:
    first, second = labkit.ranks(2).run(train, "local SGD", 12)  # the 8th step averages, and the end
    assert first.last.accuracy == second.last.accuracy
    for one in (first, second):
        averaged = one.last.bytes_sent - one.points[6].bytes_sent  # the last acknowledgement may be out still
        assert averaged > 1.3 * 4 * one.weights


def test_an_answer_in_place_of_the_hook_learns() -> None:
    def run() -> Any:
        from labkit.course.lessons.l10_ways import sign_mean
        from labkit.course.slow_training import train_with

        return train_with(sign_mean, steps=48)

    first, second = labkit.ranks(2).run(run)
    assert first.checksum == second.checksum
    assert first.last.accuracy > 0.8


def test_where_namespaces_are_forbidden_ranks_stand_in() -> None:
    stand_in = EmulatedCluster(("n0", "n1"), 1.25e6, 0.0, "No namespaces here.")
    slow = stand_in.run(train, "fp32", 4)[0]
    assert slow.last.seconds > 4 * 0.093  # 116 kB at 1.25 MB/s
    assert with_link(stand_in, "10Mbit/s").bandwidth == 1.25e6
    assert with_link(stand_in, "1Gbit/s").nodes == stand_in.nodes


def test_nodes_count_on_their_interface() -> None:
    require("netns")
    with labkit.cluster(2, bandwidth="100Mbit/s") as cluster:
        results = cluster.run(train, "fp32", 12)
        assert with_link(cluster, "1Gbit/s") is cluster
    for one, node, link in zip(results, ("n0", "n1"), results.links.values(), strict=True):
        assert one.where == f"the interface of {node}"
        assert 4 * one.weights * 0.99 < one.bytes_a_step < 4 * one.weights * 1.3
        assert (
            one.last.bytes_sent <= link.forth
        )  # the cable counts the launcher's words before and after, too


def test_compressing_takes_time() -> None:
    short, long = labkit.ranks(1).run(lambda: [compress_seconds(100, 9), compress_seconds(1_000_000, 9)])[0]
    assert 0 < short < long


def test_a_training_shows_itself() -> None:
    one = labkit.ranks(1).run(train, "fp32", 2)[0]
    assert one.to_dict()["label"] == "measured"
    assert repr(one).startswith("Training(fp32: 2 steps, ")
    with pytest.raises(
        labkit.network.RankError if hasattr(labkit, "network") else Exception, match="no way to train"
    ):
        labkit.ranks(1).run(train, "fp8", 2)
