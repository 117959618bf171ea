"""Amdahl, Gustafson, crossings; and figures whose data are the data they were given."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.compute import rates
from labkit.compute.curves import Curve, crossing
from labkit.compute.host import Run
from labkit.compute.scaling import Scaling, amdahl, gustafson, measure, over_size
from labkit.course.photo import photograph
from labkit.errors import LabkitError
from labkit.widgets import figures, theme

SHARES = st.floats(0, 1)
CREWS = st.integers(1, 10_000)


@given(CREWS, SHARES)
def test_amdahl_lies_between_one_and_both_of_its_limits(workers, serial):
    speedup = amdahl(workers, serial)
    assert 1 - 1e-9 <= speedup <= workers * (1 + 1e-9)
    assert speedup * serial <= 1 + 1e-9


@given(CREWS, SHARES)
def test_amdahl_is_a_quotient_of_times(workers, serial):
    total = 8.0
    assert amdahl(workers, serial) == pytest.approx(total / (total * serial + total * (1 - serial) / workers))


@given(CREWS, SHARES)
def test_both_laws_agree_when_the_share_is_seen_from_the_same_side(workers, serial):
    """Amdahl's share is of one worker's time, Gustafson's of the many workers': converted, they agree."""
    of_many = serial / (serial + (1 - serial) / workers)
    assert gustafson(workers, of_many) == pytest.approx(amdahl(workers, serial))


def test_known_values():
    assert amdahl(4, 0.1) == pytest.approx(3.0769, rel=1e-4)
    assert gustafson(4, 0.1) == pytest.approx(3.7)
    with pytest.raises(LabkitError, match="between 0 and 1"):
        amdahl(4, 1.5)


def line(label: str, seconds: tuple[float, ...], how: str = "measured") -> Curve:
    return Curve(label, how, "a test", (10, 100, 1000), seconds)


def test_crossing_of_power_laws_is_exact():
    grows, flat = line("CPU", (1e-6, 1e-5, 1e-4)), line("GPU", (3e-5, 3e-5, 3e-5), "modelled")
    assert crossing(grows, flat) == pytest.approx(300)


def test_crossing_counts_the_last_time_only():
    old, new = line("old", (1.0, 1.0, 1.0)), line("new", (0.5, 2.0, 0.5))
    assert crossing(old, new) == pytest.approx(100 * 10**0.5)


def test_no_crossing_and_always_faster():
    slow, fast = line("slow", (2.0, 2.0, 2.0)), line("fast", (1.0, 1.0, 1.0))
    assert crossing(fast, slow) is None
    assert crossing(fast, fast) is None
    assert crossing(slow, fast) == 10


def test_curves_refuse_nonsense():
    with pytest.raises(LabkitError, match="not 'guessed'"):
        line("x", (1.0, 1.0, 1.0), "guessed")
    with pytest.raises(LabkitError, match="3 sizes and 2 times"):
        line("x", (1.0, 1.0))
    with pytest.raises(LabkitError, match="must rise"):
        Curve("x", "measured", "a test", (10, 10), (1.0, 1.0))
    with pytest.raises(LabkitError, match="same sizes"):
        crossing(line("x", (1.0, 1.0, 1.0)), Curve("y", "measured", "a test", (10,), (1.0,)))


def test_scaling_ratios():
    scaling = Scaling((1, 2, 4), (8.0, 4.0, 4.0), (2.0, 2.0, 4.0), cores=2)
    assert scaling.strong == (1, 2, 2)
    assert scaling.weak == (1, 2, 2)
    assert scaling.to_dict()["how"] == "measured"


def test_scaling_is_measured_with_real_workers():
    scaling = measure("brighten", photograph()[:64].astype("float32"), workers=(1, 2), repeats=1)
    assert scaling.workers == (1, 2)
    assert scaling.cores >= 1
    assert min(*scaling.strong_s, *scaling.weak_s) > 0


def test_over_size_measures_three_ways():
    alone, warm, cold = over_size("brighten", photograph().astype("float32"), (16, 32))
    assert alone.sizes == warm.sizes == cold.sizes == (256, 1024)
    start_s = {round(c - w, 9) for w, c in zip(warm.seconds, cold.seconds, strict=True)}
    assert len(start_s) == 1
    assert start_s.pop() > 0


def data_of(figure) -> list[dict]:
    return json.loads(figure.to_json())["data"]


def test_time_over_size_draws_what_it_is_given():
    curves = [line("CPU", (1e-6, 1e-5, 1e-4)), line("GPU", (3e-5, 3e-5, 3e-5), "modelled")]
    figure = figures.time_over_size(curves, "t", crossings={"GPU wins": 300.0, "never": None})
    measured, modelled, stars = data_of(figure)
    assert measured["y"] == [1e-6, 1e-5, 1e-4]
    assert (measured["name"], modelled["name"]) == ("CPU (measured)", "GPU (modelled)")
    assert (measured["line"]["dash"], modelled["line"]["dash"]) == ("solid", "dash")
    assert (stars["x"], stars["text"]) == ([300.0], ["GPU wins"])
    assert len(data_of(figures.time_over_size(curves, "t"))) == 2
    assert json.loads(figure.to_json())["layout"]["yaxis"]["ticktext"] == ["1 µs", "10 µs", "100 µs"]


def test_where_time_goes_adds_up():
    runs = [Run("brighten", 0, 9, 0.0, 0.0, 0.002, 0.0), Run("brighten", 2, 9, 0.1, 0.003, 0.001, 0.004)]
    bars = data_of(figures.where_time_goes(runs, "t"))
    assert [sum(bar["x"][row] for bar in bars) for row in (0, 1)] == pytest.approx([2, 108])
    assert [bar["name"] for bar in data_of(figures.where_time_goes(runs[:1], "t"))] == ["work"]
    assert bars[0]["y"] == ["brighten, no worker", "brighten, 2 workers"]


def test_speedups_mark_points_beyond_the_cores():
    scaling = Scaling((1, 2, 4), (8.0, 4.0, 4.0), (2.0, 2.0, 4.0), cores=2)
    traces = data_of(figures.speedups(scaling, serial=(0.1,), up_to=8))
    *laws, strong, weak = traces
    assert strong["y"] == [1, 2, 2]
    assert weak["y"] == [1, 2, 2]
    assert strong["marker"]["symbol"] == ["circle", "circle", "circle-open"]
    ends = {(trace["name"], trace["yaxis"]): trace["y"][-1] for trace in laws}
    assert ends["10% serial (modelled)", "y"] == pytest.approx(amdahl(8, 0.1))
    assert ends["10% serial (modelled)", "y2"] == pytest.approx(gustafson(8, 0.1))
    assert ends["perfect", "y"] == pytest.approx(8)


def test_processors_are_points_at_their_rates():
    found = [rates.SERVER_2020, rates.catalogued("A100")]
    figure = figures.processors(found)
    (peaks,) = data_of(figure)
    assert (peaks["x"], peaks["y"]) == ([204.8e9, 2039e9], [4.608e12, 19.5e12])
    assert peaks["text"] == ["64-core server CPU (2020)", "A100 SXM4 80 GB"]
    own = rates.Rates("this machine's CPU", "measured", 1e11, 1e10, "a test")
    measured, peaks = data_of(figures.processors([*found, own]))
    assert (measured["name"], measured["x"], measured["marker"]["symbol"]) == ("measured", [1e10], "circle")
    assert (len(peaks["x"]), peaks["marker"]["symbol"]) == (2, "circle-open")
    ticks = json.loads(figure.to_json())["layout"]["xaxis"]
    assert ticks["ticktext"] == ["100 GB/s", "1 TB/s"]
    assert ticks["tickvals"] == [1e11, 1e12]


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colour", [theme.INK, *theme.COLOURS])
@pytest.mark.parametrize("background", ["#ffffff", "#111111"])
def test_ink_and_lines_are_readable_on_light_and_on_dark(colour, background):
    """WCAG 2.2 asks 3 to 1 of lines, 4.5 to 1 of small text; no one colour gives 4.5 on both."""
    brighter, darker = sorted((luminance(colour), luminance(background)), reverse=True)
    contrast = (brighter + 0.05) / (darker + 0.05)
    assert contrast > (4 if colour == theme.INK else 2.5)
