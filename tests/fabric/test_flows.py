"""simulate_flows against an independent reference, by hand, and with bad input."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit import LabkitError
from labkit.network.fabric import simulate_flows

_spec = importlib.util.spec_from_file_location("fabric_reference", Path(__file__).with_name("reference.py"))
assert _spec
assert _spec.loader
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)

LINKS = [f"l{number}" for number in range(40)]


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, tuple[float, float]], list[tuple[float, list[str], float]]]:
    """40 links, 200 flows over one to five of them, started together, in waves, or one by one."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    even = draw(st.booleans())
    links = {
        name: (1e9 if even else float(rng.uniform(1e8, 1e9)), float(rng.choice([0.0, 1e-6, 5e-4])))
        for name in LINKS
    }
    spread = draw(st.sampled_from([0.0, 0.05, 1.0]))
    waves = draw(st.booleans())
    flows = []
    for _ in range(200):
        route = [str(name) for name in rng.choice(LINKS, int(rng.integers(1, 6)), replace=False)]
        start = float(rng.integers(0, 5)) * spread / 5 if waves else float(rng.uniform(0, 1)) * spread
        flows.append((float(rng.integers(0, 100)) * 1e6, route, start))
    return links, flows


@given(cases())
@settings(max_examples=12)
def test_finish_times_equal_progressive_filling(case):
    links, flows = case
    expected = reference.finish_times(links, flows)
    assert simulate_flows(links, flows) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@given(st.lists(st.tuples(st.floats(1, 1e9), st.floats(0, 10)), min_size=1, max_size=30))
def test_one_link_is_never_idle_while_it_has_work(jobs):
    """Work conservation: however shares are cut, the last byte leaves when a queue's would."""
    bandwidth, clock = 1e6, 0.0
    for size, start in sorted(jobs, key=lambda job: job[1]):
        clock = max(clock, start) + size / bandwidth
    finish = simulate_flows({"wire": (bandwidth, 0.0)}, [(size, ["wire"], start) for size, start in jobs])
    assert finish.max() == pytest.approx(clock, rel=1e-9)


def test_the_textbook_case_of_max_min_fairness():
    """Three flows share the first link, so the fourth gets what the one that goes on leaves of the second."""
    links = {"a": (3.0, 0.0), "b": (10.0, 0.0)}
    flows = [(1.0, ["a", "b"], 0.0), (1.0, ["a"], 0.0), (1.0, ["a"], 0.0), (9.0, ["b"], 0.0)]
    assert simulate_flows(links, flows) == pytest.approx([1.0, 1.0, 1.0, 1.0])


def test_a_flow_becomes_active_after_the_latencies_of_all_its_links():
    links = {"a": (100.0, 0.25), "b": (50.0, 0.5)}
    assert simulate_flows(links, [(100.0, ["a", "b"], 1.0)]) == pytest.approx([1.0 + 0.75 + 2.0])
    assert simulate_flows(links, [(0.0, ["a", "b"], 1.0), (5.0, [], 2.0)]) == pytest.approx([1.75, 2.0])


def test_a_flow_in_its_latency_takes_no_share():
    links = {"a": (100.0, 0.0), "far": (1000.0, 10.0)}
    assert simulate_flows(links, [(100.0, ["a"], 0.0), (100.0, ["a", "far"], 0.0)]) == pytest.approx(
        [1.0, 11.0]
    )


def test_words_are_understood_as_units():
    finish = simulate_flows({"wire": ("8Gbit/s", "5us")}, [("1MB", ["wire"], "1ms")])
    assert finish == pytest.approx([1e-3 + 5e-6 + 1e-3])


def test_no_flows_and_no_links():
    assert len(simulate_flows({}, [])) == 0


@pytest.mark.parametrize(
    ("links", "flows", "says"),
    [
        ({"a": (0.0, 0.0)}, [], "The link a has no bandwidth"),
        ({"a": (-1.0, 0.0)}, [], "The bandwidth of a cannot be used"),
        ({"a": (1.0, -1e-6)}, [], "The latency of a cannot be used"),
        ({"a": (float("inf"), 0.0)}, [], "The bandwidth of a cannot be used"),
        ({"a": 3.0}, [], "should be (bytes/s, latency in seconds)"),
        ({"a": (1.0, 0.0)}, [(1.0, ["b"], 0.0)], "Flow 0 crosses 'b'"),
        ({"a": (1.0, 0.0)}, [(-1.0, ["a"], 0.0)], "The size of flow 0"),
        ({"a": (1.0, 0.0)}, [(1.0, ["a"], -1.0)], "The start of flow 0"),
        ({"a": (1.0, 0.0)}, [(1.0, ["a"])], "Flow 0 is"),
    ],
)
def test_bad_input_gets_one_sentence(links, flows, says):
    with pytest.raises(LabkitError) as caught:
        simulate_flows(links, flows)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
