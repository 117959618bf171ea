"""Training on several ranks, for study: losses, the step over the size of its buckets, memory by ZeRO stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labkit.hardware.units import show_bytes
from labkit.network.memory_model import TrainingMemory
from labkit.widgets import theme

_PARTS = {
    "weights": theme.BLUE,
    "gradients": theme.ORANGE,
    "optimizer": theme.GREEN,
    "activations": theme.PURPLE,
}


def curves(lines: Mapping[str, Sequence[float]], title: str, what: str, dashed: str = "") -> Any:
    """One line a name, over training steps; the one called ``dashed`` lets others be seen behind it."""
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": list(range(1, len(values) + 1)),
            "y": list(values),
            "line": {"color": colour, "width": 2, "dash": "dot" if name == dashed else "solid"},
            "hovertemplate": f"{name}, step %{{x}}: %{{y:.3~g}}<extra></extra>",
        }
        for (name, values), colour in zip(lines.items(), theme.colours(), strict=False)
    ]
    layout = {
        "xaxis": theme.axis("step"),
        "yaxis": theme.axis(what, rangemode="tozero"),
        "margin": {"l": 64, "r": 24, "t": 56, "b": 96},
    }
    return theme.figure(traces, layout, title, 380)


def over_bucket(
    sizes: Sequence[float], seconds: Mapping[str, Sequence[float]], title: str, how: str = "measured"
) -> Any:
    """The time of a step over the size of a bucket, a line a name."""
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": list(sizes),
            "y": [1e3 * one for one in values],
            "line": {"color": colour, "width": 2},
            "marker": {"size": 8},
            "hovertemplate": f"{name}<br>%{{text}}: %{{y:.3~g}} ms<extra></extra>",
            "text": [show_bytes(size) for size in sizes],
        }
        for (name, values), colour in zip(seconds.items(), theme.colours(), strict=False)
    ]
    ticks = {"tickvals": list(sizes), "ticktext": [show_bytes(size) for size in sizes], "type": "log"}
    layout = {
        "xaxis": theme.axis("most bytes a bucket has", **ticks),
        "yaxis": theme.axis(f"ms a step, {how}", rangemode="tozero"),
        "legend": {"orientation": "h", "x": 0, "y": -0.24, "yanchor": "top"},
        "margin": {"l": 64, "r": 24, "t": 56, "b": 110},
    }
    return theme.figure(traces, layout, title, 400)


def memory(rows: Mapping[str, TrainingMemory], title: str, capacity: float | None = None) -> Any:
    """A bar a row, of its parts, in GB a rank; a line where a card of ``capacity`` bytes is full."""
    names = list(rows)
    traces: list[dict[str, Any]] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": part,
            "y": names,
            "x": [getattr(one, part) / 1e9 for one in rows.values()],
            "marker": {"color": colour, "line": {"width": 0}},
            "hovertemplate": f"%{{y}}<br>{part}: %{{x:.3~g}} GB<extra></extra>",
        }
        for part, colour in _PARTS.items()
    ]
    layout: dict[str, Any] = {
        "barmode": "stack",
        "xaxis": theme.axis("GB a rank, modelled", rangemode="tozero"),
        "yaxis": theme.axis("", autorange="reversed", showgrid=False),
        "legend": {"orientation": "h", "x": 0, "y": -0.22, "yanchor": "top", "traceorder": "normal"},
        "margin": {"l": 64, "r": 24, "t": 70, "b": 100},
    }
    if capacity is not None:
        line = {"color": theme.RED, "width": 2, "dash": "dash"}
        full = {"type": "line", "x0": capacity / 1e9, "x1": capacity / 1e9, "yref": "paper", "y0": 0, "y1": 1}
        layout["shapes"] = [{**full, "line": line}]
        note = {"x": capacity / 1e9, "y": 1.0, "yref": "paper", "showarrow": False, "yanchor": "bottom"}
        layout["annotations"] = [
            {**note, "text": f"full at {capacity / 1e9:g} GB", "font": {"color": theme.RED}}
        ]
    return theme.figure(traces, layout, title, 190 + 44 * len(names))
