"""Pictures draw what the results say, and call it modelled."""

from __future__ import annotations

import numpy as np
import pytest

import labkit
from labkit import LabkitError
from labkit.network.fabric import link_use


@pytest.fixture(scope="module")
def views(require):
    require("lab")
    from labkit.widgets import fabric_views

    return fabric_views


@pytest.fixture(scope="module")
def made():
    return labkit.fabric("dgx-h100", nodes=2)


def by_name(figure) -> dict[str, object]:
    return {trace.name: trace for trace in figure.data if trace.name}


def cables(trace) -> int:
    return sum(x is None for x in trace.x)


def test_links_are_sorted_by_heat(views, made):
    result = made.all_reduce("64MiB")
    figure = views.topology(made, result)
    found, busy = by_name(figure), np.array([load.busy for load in result.links])
    drawn = {word: cables(found[word]) for word in views.STEPS}
    assert sum(drawn.values()) == 90
    assert drawn["up to 100 % busy"] == np.count_nonzero(busy > 0.8)  # one direction of each such cable
    assert "simulated (modelled)" in figure.layout.title.text
    assert len(found["gpu"].x) == 16


@pytest.mark.parametrize(
    "name",
    [
        "ring",
        "torus",
        "torus-2d",
        "leaf-spine",
        "fat-tree",
        "dragonfly",
        "full-mesh",
        "pcie-tree",
        "dgx-v100",
    ],
)
def test_every_shape_can_be_drawn_without_two_nodes_in_one_place(views, name):
    made = labkit.fabric(name)
    figure = views.topology(made)
    points = [
        (x, y)
        for trace in figure.data
        if trace.marker.size == 11
        for x, y in zip(trace.x, trace.y, strict=True)
    ]
    assert len(points) == made.graph.number_of_nodes()
    assert len({(round(x, 6), round(y, 6)) for x, y in points}) == len(points)


def test_names_stand_where_there_is_room(views):
    few, many = (labkit.fabric("leaf-spine", racks=racks, hosts=8) for racks in (3, 8))
    shown = [[text for text in by_name(views.topology(made))["gpu"].text if text] for made in (few, many)]
    assert [len(names) for names in shown] == [24, 0]
    switches = by_name(views.topology(many))["switch"]
    assert dict(zip(switches.text, switches.textposition, strict=True))["leaf3"] == "middle right"
    assert by_name(views.topology(many))["gpu"].customdata[63] == "g63"  # the pointer tells all names


def test_a_cable_that_closes_a_torus_is_drawn_as_two_stubs(views):
    made = labkit.fabric("torus", dims=(3, 4))
    idle = by_name(views.topology(made))["idle"]
    assert cables(idle) == 2 * 12 + 3 + 4


def test_a_replay_shows_the_load_over_simulated_time(views, made):
    result = made.all_reduce("1MiB", "hierarchical", timeline=True)
    figure = views.replay(made, result, frames=20)
    assert len(figure.frames) == 20
    rails = [made.topology.links.names.index("n0.nic0->rail0")]
    spans = [np.array([0, end]) for end in (result.seconds / 5, result.seconds)]
    shares = [link_use.use(made.topology, result.timeline, edges)[0, rails[0]] for edges in spans]
    assert shares[0] == 0  # the first fifth is inside the servers
    assert shares[1] == pytest.approx(result.links["n0.nic0->rail0"].busy, rel=1e-6)
    assert "modelled" in figure.layout.title.text
    with pytest.raises(LabkitError, match="timeline=True"):
        views.replay(made, made.all_reduce("1MiB"))


def test_scaling_and_size_sweeps_tell_modelled_from_measured(views):
    results = [labkit.fabric("star", nodes=n).all_reduce("64MiB") for n in (4, 16, 64)]
    scaling = views.scaling({"ring": results}, "seconds")
    assert list(scaling.data[0].x) == [4, 16, 64]
    assert list(scaling.data[0].y) == [result.seconds for result in results]
    sweep = views.size_sweep({"ring": results}, {"a log": [(1e3, 1e-5), (1e6, 1e-3)]})
    assert [trace.name for trace in sweep.data] == ["ring (modelled)", "a log (measured)"]
    assert sweep.data[1].mode == "markers"
    with pytest.raises(LabkitError, match="cannot be drawn"):
        views.scaling({"ring": results}, "joy")


def test_too_large_a_fabric_is_refused(views):
    with pytest.raises(LabkitError, match="too many to tell apart"):
        views.topology(labkit.fabric("star", nodes=4000))
