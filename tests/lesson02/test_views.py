"""Views of inspections: their data are the inspections', and a slider works outside a notebook too."""

from __future__ import annotations

import json

import numpy as np
import pytest

import labkit
from labkit.compute import model
from labkit.compute.kernels import matmul, reduction, transpose
from labkit.compute.occupancy import occupancy as calculated
from labkit.errors import LabkitError
from labkit.widgets import memory_figures, occupancy_view, warp_view


@pytest.fixture(scope="module")
def products():
    a, b = np.random.default_rng(1).random((2, 32, 32), np.float32)
    out = np.empty_like(a)
    return [
        labkit.inspect(matmul.launch(kernel, out), a, b, out, gpu="A100")
        for kernel in (matmul.matmul_columns, matmul.matmul_tiled)
    ]


@pytest.fixture(scope="module")
def steps():
    image = np.zeros((32, 32), np.float32)
    return labkit.warp_view(transpose.launch(transpose.transpose_tile, image), image, image.copy())


def test_every_frame_replaces_all_traces(steps):
    assert len(steps.frames) == len(steps.layout.sliders[0].steps) == 16
    kinds = {tuple(trace.mode for trace in frame.data) for frame in steps.frames}
    assert kinds == {("lines", "lines", "lines", "markers", "text")}
    assert [trace.x for trace in steps.data] == [trace.x for trace in steps.frames[0].data]


def test_a_column_of_a_tile_is_one_bank_and_32_rows(steps):
    names = [step.label for step in steps.layout.sliders[0].steps]
    column = next(k for k, name in enumerate(names) if "32 passes" in name)
    wanted = [x for x in steps.frames[column].data[1].x if x is not None]
    assert max(wanted) - min(wanted) < 1
    assert len(wanted) == 5 * 32  # a polygon of five corners for each pass


def test_the_cells_of_a_coalesced_read_are_its_four_sectors(steps):
    cells, wanted, wires = steps.frames[0].data[:3]
    assert sum(x is None for x in cells.x) == 4
    assert sum(x is None for x in wanted.x) == sum(x is None for x in wires.x) == 32


def test_sectors_that_are_no_neighbours_have_names_with_their_bytes():
    image = np.zeros((32, 32), np.float32)
    figure = labkit.warp_view(transpose.launch(transpose.transpose_naive, image), image, image.copy())
    texts = figure.frames[1].data[4].text
    assert texts[:3] == ("byte 0", "byte 896", "byte 1,792")


def test_what_a_view_weighs_in_a_notebook(steps):
    assert len(json.dumps(json.loads(steps.to_json()))) < 200_000


def test_the_exported_animation_waits_for_its_slider(steps):
    text = steps.to_html(include_plotlyjs=False)
    assert "Plotly.addFrames" in text
    assert "Plotly.animate" not in text


def test_points_stand_on_the_roof_at_their_intensity(products):
    figure = labkit.roofline(*products, names=["direct", "tiled"], gpu="T4")
    roof = model.roofline("T4")
    for one, trace in zip(products, figure.data[1:], strict=True):
        assert trace.x == (one.roofline.intensity,)
        assert trace.y == (roof.attainable(one.roofline.intensity),)
        assert "emulated" in trace.name
        assert "modelled" in trace.name
    assert max(figure.data[0].y) == roof.peak_flops
    assert "T4" in figure.layout.title.text


def test_a_measured_launch_has_a_second_point(products):
    from dataclasses import replace

    seen = replace(products[0], measured_s=1e-3)
    *_, last = labkit.roofline(seen).data
    assert last.y == (products[0].totals.flops / 1e-3,)
    assert "measured" in last.name


def test_what_has_no_place_on_a_roofline(products):
    image = np.zeros((32, 32), np.float32)
    moved = labkit.inspect(transpose.launch(transpose.copy, image), image, image.copy(), gpu="A100")
    with pytest.raises(LabkitError, match="'copy' does no floating-point operation"):
        labkit.roofline(moved)
    with pytest.raises(LabkitError, match=r"draws what labkit\.inspect returns, not ndarray"):
        labkit.roofline(image)
    with pytest.raises(LabkitError, match="2 launches and 1 names"):
        labkit.roofline(*products, names=["one"])
    with pytest.raises(LabkitError, match=r"H1OO"):
        labkit.roofline(products[0], gpu="H1OO")


def test_the_explorer_agrees_with_the_calculator():
    here = calculated(256, 16 * 1024, 40, "A100")
    threads, registers, shared = occupancy_view.sweeps(here)
    for points, x in ((threads, 256), (registers, 40)):
        (mine,) = [point for point in points if point[0] == x]
        assert mine[1:3] == (100 * here.fraction, here.limited_by)
    assert {point[2] for point in shared} >= {"registers", "shared memory"}
    assert max(point[0] for point in shared) == 163  # KiB: all that a block can have


def test_a_block_that_does_not_fit_is_a_point_and_no_error():
    figure = labkit.occupancy(1024, 0, 64, gpu="A100")
    grey = [trace for trace in figure.data if trace.name == "does not fit" and trace.xaxis == "x2"]
    assert min(grey[0].x) == 72  # 1024 threads of 72 registers are more than the file holds
    assert set(grey[0].y) == {0}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"registers": 0}, "1 to 255 registers"),
        ({"threads_per_block": 2000}, "1 to 1024 threads"),
        ({"shared_bytes": 10**6}, "use a smaller tile"),
        ({"gpu": "A1O0"}, "A1O0"),
    ],
)
def test_what_no_multiprocessor_can_hold(arguments, says):
    with pytest.raises(LabkitError, match=says):
        labkit.occupancy(**arguments)


def test_a_comparison_has_the_counters_of_both(products):
    both = labkit.compare(*products)
    rows = {row.name: row for row in both.rows}
    assert rows["global load sectors"].before == products[0].totals.global_load_sectors
    assert rows["global load sectors"].after == products[1].totals.global_load_sectors
    assert rows["global load sectors"].change == "÷ 8"
    assert rows["shared load requests"].change == "new"
    assert rows["flops fp32"].change == "the same"
    assert both.label == "emulated, exact"
    assert "÷ 8" in both._repr_html_()
    assert "÷ 8" in repr(both)
    assert both.to_dict()["rows"][0]["name"] == "sectors a load request"


def test_the_bars_are_shares_of_the_first(products):
    (bars,) = labkit.compare(*products).figure().data
    shares = dict(zip(bars.y, bars.x, strict=True))
    assert shares["global load sectors"] == pytest.approx(100 / 8)
    assert "flops fp32" not in shares


def test_comparing_what_cannot_be_compared(products):
    same = labkit.compare(products[0], products[0])
    assert same.changed == ()
    assert same.before == "matmul_columns (first)"
    with pytest.raises(LabkitError, match="nothing to draw"):
        same.figure()
    with pytest.raises(LabkitError, match="one of these is an int"):
        labkit.compare(products[0], 3)


def test_steps_are_drawn_as_given():
    figure = memory_figures.over_step({"a": {1: 4, 33: 0}}, "title", "sectors", best=4)
    assert figure.data[0].x == ("1", "33")
    assert figure.data[0].y == (4, 0)
    assert figure.layout.shapes[0].y0 == 4


def test_reductions_are_drawn_warp_by_warp():
    x, out = np.ones(512, np.float32), np.zeros(1, np.float32)
    figure = warp_view.warp_view(reduction.launch(reduction.sum_tree, x), x, out, warp=7, block=1)
    assert "block (1, 0, 0), warp 7" in figure.layout.title.text
    assert out[0] == 0


@pytest.mark.browser
def test_the_slider_works_in_exported_html(steps, tmp_path, chromium):
    page = chromium.new_context(viewport={"width": 800, "height": 500}).new_page()
    path = tmp_path / "steps.html"
    steps.write_html(path)
    page.goto(path.as_uri())
    label = page.locator(".slider-label").first  # the words above the slider; the others are its hidden ticks
    label.wait_for()
    assert label.text_content().startswith("1 of 16, line")
    before = page.locator(".js-fill").first.get_attribute("d")
    track = page.locator(".slider-rail-touch-rect")
    track.click(position={"x": track.bounding_box()["width"] * 0.53, "y": 4})
    page.wait_for_timeout(300)
    assert page.locator(".js-fill").first.get_attribute("d") != before
    assert label.text_content().endswith("32 lanes, 32 passes")
    page.context.close()
