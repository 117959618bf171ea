"""The picture and the plate: right, wherever they are computed, and counted to the byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from labkit.errors import LabkitError
from labkit.network import play, workloads
from labkit.network.splitting import simulate

SMALL = workloads.Picture(width=61, height=40, step=0.04, limit=50, tiles=7)


def test_the_picture_is_the_kernels_own(require: Callable[..., None]) -> None:
    require("torch")
    from labkit.compute.kernels.fractal import mandelbrot_reference

    view: Any = tuple(np.float32(n) for n in (SMALL.left, SMALL.top, SMALL.step))
    expected = mandelbrot_reference(view[0], view[1], view[2], SMALL.limit, (SMALL.height, SMALL.width))
    tiles = {tile: workloads.mandelbrot_tile(SMALL, tile) for tile in range(SMALL.tiles)}
    even, odd = ({n: rows for n, rows in tiles.items() if n % 2 == k} for k in (0, 1))
    # One ulp of x or y moves a point across the border of the set now and then; 50 turns are few.
    assert (workloads.assembled(SMALL, [odd, even]) != expected).mean() < 0.002
    assert tiles[0].dtype == np.int32
    with pytest.raises(LabkitError, match="Tile 0 was rendered by no rank"):
        workloads.assembled(SMALL, [odd])


def test_its_tiles_cost_differently(require: Callable[..., None]) -> None:
    """By the turns that are in them, which is what the lesson's imbalance rests on."""
    require("torch")
    picture = workloads.Picture(width=96, height=72, step=0.0225)
    turns = [float(workloads.mandelbrot_tile(picture, tile).sum()) for tile in range(picture.tiles)]
    assert max(turns) > 4 * min(turns)
    assert simulate(turns, [1.0, 1.0], "static").imbalance > 1.2
    assert simulate(turns, [1.0, 1.0], "dynamic").imbalance < 1.1


def _parts(whole: np.ndarray, heights: list[int]) -> list[np.ndarray]:
    return [part.copy() for part in np.split(whole, np.cumsum(heights)[:-1])]


@pytest.mark.parametrize("heights", [[12], [6, 6], [1, 8, 2, 1]])
def test_the_plate_in_parts_is_the_whole_plate_bit_by_bit(heights: list[int]) -> None:
    whole = workloads.plate(12, 9)
    played = play(workloads.heat_ranks, len(heights), [(part, 7) for part in _parts(whole, heights)])
    assert np.array_equal(np.concatenate(played.results), workloads.heat_serial(whole, 7))
    assert (
        sum(played.bytes_sent) == 7 * 2 * (len(heights) - 1) * 9 * 8
    )  # steps, ways, borders, columns, bytes


def test_everything_to_everybody_is_right_and_costs_its_bytes() -> None:
    whole = workloads.plate(12, 9)
    played = play(workloads.heat_ranks, 3, [(part, 5, True) for part in _parts(whole, [4, 4, 4])])
    assert np.array_equal(np.concatenate(played.results), workloads.heat_serial(whole, 5))
    assert sum(played.bytes_sent) == 5 * 2 * 2 * 4 * 9 * 8


def test_heat_flows_as_the_equation_says() -> None:
    whole = workloads.plate(20, 16)
    later = workloads.heat_serial(whole, 50)
    assert 0 <= later.min() <= later.max() < whole.max()  # no point gets hotter than the hottest
    assert later.sum() < whole.sum()  # the edges are cold
    one = np.zeros((5, 5))
    one[2, 2] = 1.0
    spread = workloads.heat_serial(one, 1)
    assert spread[2, 2] == pytest.approx(1 - 4 * workloads.RATE)
    assert spread[1, 2] == spread[2, 1] == spread[3, 2] == spread[2, 3] == pytest.approx(workloads.RATE)


def _on_ranks(whole: Any, steps: int) -> Any:
    import labkit

    assert labkit.rank_context().world_size == 3
    return workloads.in_memory(workloads.heat_ranks(workloads.my_rows(whole), steps))


def test_on_real_ranks(require: Callable[..., None]) -> None:
    require("torch")
    import labkit

    whole = workloads.plate(30, 16)
    results = labkit.ranks(3).run(_on_ranks, whole, 4)
    assert np.array_equal(np.concatenate(list(results)), workloads.heat_serial(whole, 4))
    assert [one.bytes_sent for one in results.traffic] == [4 * 128, 8 * 128, 4 * 128]


def test_the_figures(require: Callable[..., None]) -> None:
    require("lab")
    require("torch")
    from labkit.widgets.work_views import balance_view, scaling_view

    uneven = simulate([1.0] * 4, [1.0, 0.25], "static")
    figure = balance_view({"equal parts": uneven, "queue": simulate([1.0] * 4, [1.0, 0.25], "dynamic")})
    assert list(figure.data[0].x) == [2, 8, 3, 4]
    assert list(figure.data[1].x) == [6, 0, 1, 0]
    assert "equal parts 1.60, queue 1.14" in figure.layout.title.text
    curve = scaling_view({"queue": {1: 4.0, 2: 2.0}}, {"queue": {1: 4.0, 2: 2.5}}, devices=2)
    assert [trace.name for trace in curve.data] == ["queue, modelled", "queue, measured", "2 cores here"]
    assert list(curve.data[1].y) == [4.0, 2.5]
    assert curve.data[0].mode == "lines"
