"""The drawings of protocols: what is in them, and that they say how it was found."""

from __future__ import annotations

import pytest
from support import needs

from labkit.network import protocols
from labkit.network.protocols.channel import Counts
from labkit.network.protocols.copies import CopyRow, HostCopies
from labkit.network.protocols.many_to_one import Incast, IncastRow, fair_share
from labkit.network.protocols.message_times import EagerRendezvous, ProtocolTime
from labkit.widgets import protocol_views


@pytest.fixture(autouse=True)
def plotly() -> None:
    needs.require("lab")


def _times(cross: int) -> EagerRendezvous:
    """Eager is faster below ``cross`` bytes."""
    rows = [
        ProtocolTime(size, name, seconds, seconds / 2, 2 * seconds, Counts(messages=1), Counts(messages=1))
        for size in (64, 1024, 4096, 65536)
        for name, seconds in (("eager", 1e-6 * size), ("rendezvous", 1e-6 * cross))
    ]
    return EagerRendezvous(tuple(rows), 1e-6, 1e9, "a test")


def test_both_protocols_and_both_crossovers_are_drawn() -> None:
    figure = protocol_views.eager_rendezvous_view(_times(2000)).to_plotly_json()
    assert [trace["name"] for trace in figure["data"]] == ["eager", "rendezvous"]
    words = [one["text"] for one in figure["layout"]["annotations"]]
    assert words == ["crossover measured: 1.953 KiB", "crossover modelled: 1.953 KiB"]
    assert [line["x0"] for line in figure["layout"]["shapes"]] == pytest.approx([2000, 2000], rel=1e-6)


def test_a_crossover_that_is_not_seen_is_not_drawn() -> None:
    figure = protocol_views.eager_rendezvous_view(_times(10**9)).to_plotly_json()
    assert [one["text"] for one in figure["layout"]["annotations"]] == ["crossover modelled: 1.953 KiB"]


def test_headers_are_drawn_by_size_with_their_label() -> None:
    figure = protocol_views.header_view(protocols.header_share(["1B", "1KiB"])).to_plotly_json()
    (trace,) = figure["data"]
    assert list(trace["x"]) == [1, 1024]
    assert list(trace["y"]) == pytest.approx([66 / 67, 66 / 1090])
    assert trace["name"].startswith("derived: TCP over IPv4")


def test_copies_are_stacked_by_kind() -> None:
    rows = (
        CopyRow("send", 100, 1e-3, 1e-3, 4, to_kernel=100, from_kernel=100, in_memory=0),
        CopyRow("in place", 100, 1e-5, 1e-5, 4, to_kernel=0, from_kernel=0, in_memory=0),
    )
    figure = protocol_views.copies_view(HostCopies(rows, "a test")).to_plotly_json()
    assert figure["layout"]["title"]["text"] == "One message of 100 B, two ways"
    assert [list(trace["x"]) for trace in figure["data"]] == [[0, 1], [0, 1], [0, 0]]
    assert figure["layout"]["annotations"][1]["text"] == "1 ms, 4 system calls"


def test_incast_is_drawn_with_its_link_and_says_how_it_was_found() -> None:
    rows = (IncastRow(1, 1000, (1e-3,), 0, 0), IncastRow(4, 1000, (1e-3, 2e-3, 2e-3, 0.2), 9, 8))
    found = Incast(rows, 1e6, 32768, "cubic", "measured and counted: a test")
    figure = protocol_views.incast_view(found).to_plotly_json()
    drops, goodput = figure["data"]
    assert list(drops["y"]) == [0, 8]
    assert list(goodput["y"]) == pytest.approx([1e6, 2e4])
    assert figure["layout"]["shapes"][0]["y0"] == 1e6
    assert "(measured)" in figure["layout"]["title"]["text"]
    modelled = protocol_views.incast_view(fair_share((1,), 10, 1e6, 99, "Why.")).to_plotly_json()
    assert "(modelled)" in modelled["layout"]["title"]["text"]
