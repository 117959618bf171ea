"""Figures of lesson 08: links and all-reduce, bytes that leave nodes, failures of many nodes, a run that resumed."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labkit.hardware.units import show_bytes, show_rate
from labkit.network.fabric.goodput import goodput
from labkit.widgets import theme

_SHARES = [0, 0.25, 0.5, 0.75, 1]
_MILLISECONDS = [digit * 10.0**power for power in range(-1, 6) for digit in (1, 2, 5)]
_BELOW = {"orientation": "h", "x": 0, "y": -0.22, "yanchor": "top"}


def link_speed(
    measured: Mapping[float, float], predicted: Mapping[float, float], title: str, how: str
) -> Any:
    """Seconds of an all-reduce over the speed of the links: points that were measured, and a line that was predicted.

    Parameters
    ----------
    measured, predicted : mapping
        Bytes/s of a link -> seconds.
    how : str
        How the points came about: ``"measured"`` or ``"emulated"``.
    """
    rates = sorted(predicted)
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "predicted from point to point (modelled)",
            "x": rates,
            "y": [1e3 * predicted[rate] for rate in rates],
            "line": {"color": theme.GREY, "width": 2, "dash": "dash"},
            "hovertemplate": "%{y:.1f} ms<extra>predicted</extra>",
        },
        {
            "type": "scatter",
            "mode": "markers",
            "name": f"all-reduce ({how})",
            "x": list(measured),
            "y": [1e3 * seconds for seconds in measured.values()],
            "marker": {"color": theme.BLUE, "size": 11},
            "hovertemplate": f"%{{y:.1f}} ms<extra>{how}</extra>",
        },
    ]
    ticks = sorted({*measured, *predicted})
    layout = {
        "xaxis": theme.axis(
            "speed of every link, each way",
            type="log",
            tickvals=ticks,
            ticktext=[show_rate(rate, bits=True) for rate in ticks],
        ),
        "yaxis": theme.axis("milliseconds", type="log", tickvals=_MILLISECONDS),
        "legend": _BELOW,
        "margin": {"l": 64, "r": 24, "t": 56, "b": 96},
    }
    return theme.figure(traces, layout, title)


def across(sent: Mapping[str, float], limit: float, title: str) -> Any:
    """A bar for each way: bytes that leave one node, counted; a line at the least there can be."""
    names = list(sent)
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "y": names,
            "x": list(sent.values()),
            "text": [show_bytes(value) for value in sent.values()],
            "textposition": "inside",
            "insidetextanchor": "start",
            "marker": {"color": [theme.COLOURS[n % len(theme.COLOURS)] for n in range(len(names))]},
            "hovertemplate": "%{y}: %{text}<extra>counted</extra>",
        }
    ]
    line = {"type": "line", "yref": "paper", "x0": limit, "x1": limit, "y0": 0, "y1": 1}
    words = {
        "text": f"2 (m - 1) / m of the data: {show_bytes(limit)}",
        "x": limit,
        "y": 1.02,
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
    }
    layout = {
        "xaxis": theme.axis("bytes that leave a node in one all-reduce (counted)", rangemode="tozero"),
        "yaxis": theme.axis("", autorange="reversed"),
        "shapes": [{**line, "line": {"color": theme.INK, "dash": "dot"}}],
        "annotations": [words],
        "margin": {"l": 64, "r": 24, "t": 84, "b": 56},
    }
    return theme.figure(traces, layout, title, height=230 + 42 * len(names))


def failures(nodes: Sequence[int], node_mtbf: str, checkpoint: str, restart: str, title: str) -> Any:
    """Hours between two failures of a job, and between two checkpoints, over its nodes; what is left of the time.

    Derived: nodes fail independently. See `labkit.network.fabric.goodput`.
    """
    found = [goodput(count, node_mtbf, checkpoint, restart) for count in nodes]
    lines = (
        ("hours between failures", [one.between_failures_s / 3600 for one in found], theme.RED, "y"),
        (
            "hours of work between checkpoints, at best",
            [one.best_interval_s / 3600 for one in found],
            theme.BLUE,
            "y",
        ),
        ("useful share of the time (right)", [one.share for one in found], theme.GREEN, "y2"),
    )
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": list(nodes),
            "y": values,
            "yaxis": axis,
            "line": {"color": colour, "width": 2, "dash": "solid" if axis == "y" else "dot"},
            "hovertemplate": f"%{{x}} nodes: %{{y:.3~g}}<extra>{name}</extra>",
        }
        for name, values, colour, axis in lines
    ]
    layout = {
        "xaxis": theme.axis("nodes", type="log", tickvals=list(nodes), ticktext=[f"{n:,}" for n in nodes]),
        "yaxis": theme.axis("hours (derived)", type="log", dtick=1),
        "yaxis2": theme.axis(
            "useful (derived)",
            overlaying="y",
            side="right",
            tickformat=".0%",
            range=[0, 1.02],
            tickmode="array",  # by itself an axis that lies over another takes that one's ticks
            tickvals=_SHARES,
            showgrid=False,
        ),
        "legend": {**_BELOW, "orientation": "v"},
        "margin": {"l": 64, "r": 64, "t": 56, "b": 140},
    }
    return theme.figure(traces, layout, title, height=480)


@dataclass(frozen=True)
class Step:
    """One step of a training: when (seconds from any zero), its number, how many ranks took part, and the loss."""

    at: float
    step: int
    world: int
    loss: float


def resumed(steps: Sequence[Step], title: str) -> Any:
    """Loss over time, a colour for each number of ranks; where time passes without a step, a grey band.

    Steps that were made twice, since the checkpoint before the failure was older, are drawn twice.
    """
    zero = steps[0].at
    lives: list[list[Step]] = [[steps[0]]]
    for before, now in itertools.pairwise(steps):
        if now.world != before.world or now.step <= before.step:
            lives.append([])
        lives[-1].append(now)
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": f"{life[0].world} ranks, from step {life[0].step}",
            "x": [one.at - zero for one in life],
            "y": [one.loss for one in life],
            "line": {"color": theme.COLOURS[number % len(theme.COLOURS)], "width": 2},
            "text": [f"step {one.step}" for one in life],
            "hovertemplate": "%{x:.2f} s, %{text}: loss %{y:.3f}<extra></extra>",
        }
        for number, life in enumerate(lives)
    ]
    bands = [
        {
            "type": "rect",
            "yref": "paper",
            "x0": before[-1].at - zero,
            "x1": after[0].at - zero,
            "y0": 0,
            "y1": 1,
            "fillcolor": theme.GREY,
            "opacity": 0.2,
            "line": {"width": 0},
        }
        for before, after in itertools.pairwise(lives)
    ]
    layout = {
        "xaxis": theme.axis("seconds (measured)"),
        "yaxis": theme.axis("loss", rangemode="tozero"),
        "shapes": bands,
        "legend": _BELOW,
        "margin": {"l": 64, "r": 24, "t": 56, "b": 96},
    }
    return theme.figure(traces, layout, title)
