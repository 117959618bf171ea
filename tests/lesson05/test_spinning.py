"""Modelled recordings of ranks that all read 100 %: what happens in them can be seen, and only where it should."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from labkit.telemetry.traces import spinning

NUMBERS = tuple(range(40))


def _means(number: int, key: str, start: float, end: float) -> list[float]:
    recording = spinning.recorded(number)
    times, _ = recording.samples()
    inside = (times > start) & (times <= end)
    return [float(np.nanmean(recording.values(key.format(rank))[inside])) for rank in range(spinning.RANKS)]


@pytest.mark.parametrize("number", NUMBERS[:12])
def test_utilisation_tells_nothing_and_state_tells_all(number: int) -> None:
    told = spinning.truth(number)
    (training,) = spinning.recorded(number).spans
    assert training.end is not None
    assert set(_means(number, "gpu.{}.utilization", training.start, training.end)) == {100.0}
    computes = _means(number, "rank.{}.compute", told.start, told.end)
    assert np.argmax(computes) == told.rank
    assert computes[told.rank] > 95
    assert max(np.delete(computes, told.rank)) < 55
    together = _means(number, "rank.{}.compute", *told.network)
    assert max(together) - min(together) < 5  # nobody is to blame there
    assert max(together) < 45


def test_power_tells_who_has_more_work_and_not_who_is_hot() -> None:
    for number in NUMBERS:
        told = spinning.truth(number)
        power = _means(number, "gpu.{}.power", told.start, told.end)
        others = np.delete(power, [told.rank, told.frugal])
        if told.cause == "work":
            assert power[told.rank] > 1.4 * max(others)
        else:
            assert power[told.rank] == pytest.approx(np.mean(others), rel=0.1)
            hot = _means(number, "gpu.{}.temperature", told.end - 3, told.end)
            assert np.argmax(hot) == told.rank
            assert hot[told.rank] > 80 > max(np.delete(hot, told.rank))


def test_they_differ_and_are_the_same_again() -> None:
    every = [spinning.truth(number) for number in NUMBERS]
    assert {told.rank for told in every} == set(range(spinning.RANKS))
    assert {told.cause for told in every} == set(spinning.CAUSES)
    assert {told.start < told.network[0] for told in every} == {True, False}
    assert all(told.rank != told.frugal for told in every)
    assert all(told.end - told.start >= 10 for told in every)
    one, again = spinning.recorded(7), spinning.recorded(7)
    assert np.array_equal(one.samples()[1], again.samples()[1], equal_nan=True)
    assert {series.provenance for series in one.series} == {"modelled"}
    assert one.machine.startswith("modelled: 4 ")


def test_a_rank_has_one_entry_in_the_legend_and_its_panels_say_what_they_show(
    require: Callable[..., None],
) -> None:
    require("lab")
    from labkit.widgets.monitor_figure import recording_figure

    figure = recording_figure(spinning.recorded(3), everything=True)
    ranks = [trace for trace in figure.data if trace.name.startswith("Rank 2")]
    assert len(ranks) == 2
    assert [trace.showlegend for trace in ranks] == [True, False]
    assert {trace.legendgroup for trace in ranks} == {"Rank 2"}
    assert len({trace.line.color for trace in ranks}) == 1
    alone = recording_figure(spinning.recorded(3))
    titles = [alone.layout[f"yaxis{number}"].title.text for number in ("", 2, 3)]
    assert titles == ["%", "W", "computes<br>% of time"]
