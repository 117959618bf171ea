"""However many lines a figure is given, all are drawn: colours come again, lines do not go missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support import needs

from labkit.widgets import precision_figures, theme, traffic_views, training_figures, work_views

NAMES = [f"line {number}" for number in range(len(theme.COLOURS) + 2)]
LINES = {name: [2.0, 1.0] for name in NAMES}

FIGURES: dict[str, Callable[[], Any]] = {
    "curves": lambda: training_figures.curves(LINES, "title", "loss"),
    "over_bucket": lambda: training_figures.over_bucket([1024, 2048], LINES, "title"),
    "losses": lambda: precision_figures.losses(LINES, "title", over=1),
    "scaling": lambda: work_views.scaling_view({name: {1: 2.0, 2: 1.0} for name in NAMES}, {}, 2),
    "step_over_rate": lambda: traffic_views.step_over_rate(
        {name: [(1e6, 2.0)] for name in NAMES}, None, "title"
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_every_line_is_drawn(name: str) -> None:
    needs.require("lab")
    drawn = [trace.name.removesuffix(", modelled") for trace in FIGURES[name]().data]
    assert [one for one in drawn if one in NAMES] == NAMES
