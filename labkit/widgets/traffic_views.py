"""Figures of lesson 10: what training costs in bytes, what a thin matrix leaves out, what a slow link costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from labkit.hardware.units import show_bytes, show_rate
from labkit.widgets import theme

Course = Sequence[tuple[float, float]]  # bytes sent so far, share recognised
_NETWORKS = {"eth40": "Ethernet", "ib_edr": "InfiniBand"}
_DASHES = ("solid", "dot", "dash", "dashdot")


def accuracy_over_bytes(courses: Mapping[str, Course], title: str) -> Any:
    """A line for each way to train, from its first test to its last; bytes on a scale of powers."""
    traces = []
    for number, (way, course) in enumerate(courses.items()):
        look = {"color": theme.COLOURS[number % len(theme.COLOURS)], "width": 2}
        look["dash"] = _DASHES[number // len(theme.COLOURS) % len(_DASHES)]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": way,
                "x": [sent for sent, _ in course],
                "y": [100 * right for _, right in course],
                "line": look,
                "marker": {"size": 5},
                "text": [show_bytes(sent) for sent, _ in course],
                "hovertemplate": "%{text} sent: %{y:.1f} % right<extra>" + way + "</extra>",
            }
        )
    layout = {
        "xaxis": theme.axis("bytes that a rank has sent (counted)", type="log", **_ticks(courses)),
        "yaxis": theme.axis("held-out digits recognised (%)"),
        "legend": {"orientation": "h", "x": 0, "y": -0.22, "yanchor": "top"},
        "margin": {"l": 64, "r": 24, "t": 56, "b": 100},
    }
    return theme.figure(traces, layout, title, height=500)


def _ticks(courses: Mapping[str, Course]) -> dict[str, Any]:
    """Every fourth power of two that is in reach."""
    all_sent = [sent for course in courses.values() for sent, _ in course if sent > 0]
    low, high = min(all_sent, default=1), max(all_sent, default=1)
    values = [2.0**power for power in range(0, 50, 2) if low / 4 <= 2.0**power <= 4 * high]
    return {"tickvals": values, "ticktext": [show_bytes(one) for one in values]}


def singular_values(values: Sequence[float], shape: tuple[int, int], title: str) -> Any:
    """For each rank the share of a matrix that is left out, and the share of its bytes that is sent."""
    rows, columns = shape
    squares = [one**2 for one in values]
    ranks = list(range(1, len(values) + 1))
    left = [100 * (max(0.0, 1 - sum(squares[:rank]) / sum(squares))) ** 0.5 for rank in ranks]
    sent = [100 * rank * (rows + columns) / (rows * columns) for rank in ranks]
    traces = [
        _line("left out (of its length)", ranks, left, theme.RED),
        _line("sent (of its bytes)", ranks, sent, theme.BLUE),
    ]
    layout = {
        "xaxis": theme.axis("rank r: columns of P and Q", type="log", tickvals=[1, 2, 4, 8, 16, 32, 64]),
        "yaxis": theme.axis("%", range=[0, 105]),
    }
    return theme.figure(traces, layout, title)


def step_parts(rows: Sequence[Mapping[str, Any]], title: str) -> Any:
    """A bar for each row of a profile: where the milliseconds of one training step go."""
    names = [_row_name(one) for one in rows]
    parts = (
        ("forward", "forward_ms", theme.GREEN),
        ("backward", "backward_ms", theme.BLUE),
        ("other", "other_ms", theme.GREY),
        ("all-reduce", "allreduce_ms", theme.RED),
    )
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": names,
            "x": [one[key] for one in rows],
            "marker": {"color": colour},
            "hovertemplate": "%{y}: %{x:.0f} ms<extra>" + name + "</extra>",
        }
        for name, key, colour in parts
    ]
    layout = {
        "barmode": "stack",
        "xaxis": theme.axis("milliseconds a step"),
        "yaxis": theme.axis("", autorange="reversed"),
        "legend": {"orientation": "h", "x": 0, "y": -0.16, "yanchor": "top"},
    }
    return theme.figure(traces, layout, title, height=140 + 28 * len(rows))


def _row_name(row: Mapping[str, Any]) -> str:
    network = _NETWORKS.get(row["network"], row["network"])
    return (
        f"{network}, {row['nodes']:g} x {row['gpus'] / row['nodes']:g} GPUs, batch {row['batch_per_gpu']:g}"
    )


def step_over_rate(
    measured: Mapping[str, Sequence[tuple[float, float]]], even: float | None, title: str
) -> Any:
    """Seconds a step over the link's rate (bytes/s), one line for each way; a mark where they should meet."""
    traces = []
    for colour, (way, points) in zip(theme.colours(), measured.items(), strict=False):
        rates = [rate for rate, _ in points]
        line = _line(way, rates, [1e3 * seconds for _, seconds in points], colour)
        line["text"] = [show_rate(rate, bits=True) for rate in rates]
        line["hovertemplate"] = "%{text}: %{y:.1f} ms a step<extra>" + way + "</extra>"
        traces.append(line)
    rates = sorted({rate for points in measured.values() for rate, _ in points})
    said = [show_rate(rate, bits=True) for rate in rates]
    ticks = {"tickvals": rates, "ticktext": said, "tickangle": 0}
    layout: dict[str, Any] = {
        "xaxis": theme.axis("rate of the link", type="log", **ticks),
        "yaxis": theme.axis("milliseconds a step (measured)", type="log"),
    }
    if even:
        layout["shapes"] = [_upright(even)]
        layout["annotations"] = [_said("break-even, computed", even)]
    return theme.figure(traces, layout, title)


def _line(name: str, x: Sequence[float], y: Sequence[float], colour: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": list(x),
        "y": list(y),
        "line": {"color": colour, "width": 2},
        "hovertemplate": "%{x}: %{y:.1f} %<extra>" + name + "</extra>",
    }


def _upright(x: float) -> dict[str, Any]:
    line = {"color": theme.INK, "width": 1, "dash": "dash"}
    return {"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def _said(text: str, x: float) -> dict[str, Any]:
    return {
        "text": text,
        "x": math.log10(x),
        "y": 1,
        "yref": "paper",
        "yanchor": "top",
        "xanchor": "right",
        "showarrow": False,
    }
