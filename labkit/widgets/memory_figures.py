"""Figures of lesson 02: a counter over the step between neighbouring lanes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labkit.widgets import theme


def over_step(
    series: Mapping[str, Mapping[int, float]], title: str, counted: str, best: float | None = None
) -> Any:
    """A line of points for each access pattern.

    Parameters
    ----------
    series : mapping
        Name -> (step in elements between neighbouring lanes -> the counter, emulated).
    counted : str
        What the counter is, for the axis.
    best : float, optional
        The least that is possible, drawn as a line.
    """
    traces = [
        _points(name, points, colour)
        for (name, points), colour in zip(series.items(), theme.colours(), strict=False)
    ]
    layout: dict[str, Any] = {
        "xaxis": theme.axis("step from lane to lane, in elements", type="category"),
        "yaxis": theme.axis(f"{counted} (emulated, exact)", rangemode="tozero"),
        "showlegend": len(series) > 1,
    }
    if best is not None:
        line = {"color": theme.GREY, "dash": "dot", "width": 2}
        layout["shapes"] = [
            {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": best, "y1": best, "line": line}
        ]
    return theme.figure(traces, layout, title, height=400)


def _points(name: str, points: Mapping[int, float], colour: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": [str(step) for step in points],
        "y": list(points.values()),
        "line": {"color": colour, "width": 2},
        "marker": {"size": 9},
        "hovertemplate": f"{name}, step %{{x}}: %{{y:.4g}}<extra></extra>",
    }
