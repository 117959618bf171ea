"""What links carry over simulated time, and the recording that a live plot replays."""

from __future__ import annotations

import numpy as np
import pytest

import labkit
from labkit import LabkitError
from labkit.network.fabric import link_use


@pytest.fixture(scope="module")
def made():
    return labkit.fabric("dgx-h100", nodes=2)


@pytest.fixture(scope="module")
def result(made):
    return made.all_reduce("64MiB", "hierarchical", timeline=True)


def test_over_the_whole_time_it_is_what_the_result_says(made, result):
    shares = link_use.use(made.topology, result.timeline, np.linspace(0, result.seconds, 8))
    assert shares.shape == (7, len(result.links))
    assert shares.mean(axis=0) == pytest.approx(result.links.busy, rel=1e-9)


def test_classes_name_what_links_join(made):
    found = link_use.classes(made.topology)
    assert len(found["gpu to nvswitch"]) == 16
    assert len(found["rail to spine"]) == 8
    assert sum(map(len, found.values())) == len(made.topology.links.names)


def test_a_torus_has_a_class_for_each_way_of_each_dimension():
    found = link_use.classes(labkit.fabric("torus", dims=(3, 4)).topology)
    assert {name: len(links) for name, links in found.items()} == {
        f"dimension {dimension}, {way}": 12 for dimension in (0, 1) for way in ("up", "down")
    }


def test_a_recording_follows_the_phases_and_says_that_it_is_simulated(made, result):
    flat = made.all_reduce("64MiB", "ring", timeline=True)
    recording = made.recording({"flat": flat, "in three phases": result}, seconds=20)
    assert "simulated (modelled)" in recording.machine
    assert {series.provenance for series in recording.series} == {"modelled"}
    assert [span.name for span in recording.spans] == ["flat", "in three phases"]
    times, _ = recording.samples()
    assert times[-1] == pytest.approx(21, abs=1.5)
    network, inside = recording.values("link.nic to rail"), recording.values("link.gpu to nvswitch")
    phases = next(span for span in recording.spans if span.name.startswith("in"))
    during = (times > phases.start + 0.5) & (times < phases.end - 0.5)
    assert (
        (network[during] > 1) & (inside[during] > 1)
    ).sum() <= 3  # but where one phase hands over to the next
    assert network[during].max() > 50
    assert inside[during].max() > 50


def test_lanes_may_be_links(made, result):
    name = "n0.nic0->rail0"
    assert [one.name for one in made.recording(result, [name]).series] == [name]
    assert len(made.recording(result, "hottest").series) == 8
    assert [one.of for one in made.recording(result, ["rail to spine"]).series] == ["mean of 8 links"]


def test_a_recording_can_be_replayed(made, result, require):
    require("lab")
    play = labkit.replay(made.recording(result, seconds=20), speed=20)
    assert "simulated (modelled)" in play._origin
    play.stop()


@pytest.mark.parametrize(
    ("results", "lanes", "says"),
    [
        ({}, "classes", "no result"),
        (None, "classes", "timeline=True"),
        ("whole", ["x->y"], "'x->y' is neither a link"),
    ],
)
def test_one_sentence(made, result, results, lanes, says):
    chosen = {"whole": result, None: made.all_reduce("1MiB")}.get(results, {}) if results != {} else {}
    with pytest.raises(LabkitError, match=says):
        made.recording(chosen, lanes)
