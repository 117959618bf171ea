"""One look for every Plotly figure: readable on white and on black, and as wide as its cell.

Figures are made from plain dictionaries: what is written is what travels to the browser, and Plotly is only
imported once a figure is really wanted.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

INK = "#767a80"  # text and axes: contrast about 4.3 to 1 on white and on JupyterLab's black
GRID = "rgba(128,132,138,0.25)"
# The series colours differ in lightness as well as in hue, so that they also part for colour-blind readers.
BLUE, ORANGE, GREEN, PURPLE, RED, GREY = "#3f8fd2", "#e0812a", "#23a07a", "#a274d8", "#d9534f", "#8d9299"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED, GREY)
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"

Axis = dict[str, Any]


def colours() -> Iterator[str]:
    """One after the other, and again from the first: for any number of lines."""
    return itertools.cycle(COLOURS)


def axis(title: str, **more: Any) -> Axis:
    """A quiet axis; keyword arguments go to Plotly as they are."""
    look: Axis = {
        "title": {"text": title, "standoff": 8},
        "gridcolor": GRID,
        "linecolor": INK,
        "zerolinecolor": GRID,
        "ticks": "outside",
        "tickcolor": GRID,
        "automargin": True,
    }
    return {**look, **more}


def spread(below: Sequence[float], above: Sequence[float]) -> dict[str, Any]:
    """A trace's ``error_y``: how far each point's bar reaches down and up."""
    return {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "thickness": 1}


def figure(data: list[dict[str, Any]], layout: Mapping[str, Any], title: str, height: int = 420) -> Any:
    """Return a Plotly ``Figure`` of these traces, in the common look."""
    from labkit.widgets.notebook_figure import Figure

    return Figure({"data": data, "layout": {**common(title), "height": height, **layout}})


def for_notebook(figure: Any) -> Any:
    """The same Plotly figure, by the short way into the notebook."""
    from labkit.widgets.notebook_figure import Figure

    return Figure(figure)


def common(title: str) -> dict[str, Any]:
    """The layout that all figures share."""
    heading = {"text": title, "x": 0, "xref": "paper", "yref": "container", "y": 0.97, "font": {"size": 16}}
    return {
        "title": heading,
        "font": {"family": FONT, "size": 13, "color": INK},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "legend": {"orientation": "h", "x": 0, "y": -0.2, "yanchor": "top"},
        "margin": {"l": 64, "r": 24, "t": 56, "b": 56},
        "hovermode": "closest",
        "template": "none",
    }
