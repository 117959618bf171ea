"""Figures of lesson 04: number formats, gradients in a format's range, products by hand and by library, losses."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labkit.compute.formats import Format
from labkit.compute.products import BY_HAND, LIBRARY, Product
from labkit.widgets import theme


def range_and_spacing(formats: Sequence[Format], int8_largest: float = 1.0) -> Any:
    """Relative spacing against magnitude, a staircase a format; int8 with its range set to +-``int8_largest``."""
    traces = [_staircase(one, colour) for one, colour in zip(formats, theme.colours(), strict=False)]
    if int8_largest:
        step = int8_largest / 127
        sizes = [step, int8_largest]
        label = f"int8, scaled to {int8_largest:g}"
        traces.append(_curve(label, sizes, [step / size for size in sizes], theme.INK, "dot"))
    layout = {
        "xaxis": theme.axis(
            "size of the number", type="log", exponentformat="power", range=[-46, 40], dtick=10
        ),
        "yaxis": theme.axis(
            "spacing / number", type="log", exponentformat="power", range=[-7.6, 0.4], dtick=1
        ),
        "legend": {"orientation": "h", "x": 0, "y": -0.2, "yanchor": "top"},
    }
    return theme.figure(traces, layout, "How far a format reaches, and how finely it divides", height=460)


def _staircase(form: Format, colour: str) -> dict[str, Any]:
    """From the smallest number to the largest: one point a power of two is enough."""
    powers = np.arange(np.log2(form.smallest), np.log2(form.largest))
    sizes = [2.0**power for power in powers]
    spacings = [form.spacing(size) / size for size in sizes]
    return _curve(form.name, [*sizes, form.largest], [*spacings, form.epsilon], colour, "solid")


def _curve(name: str, x: Sequence[float], y: Sequence[float], colour: str, dash: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": list(x),
        "y": list(y),
        "line": {"color": colour, "width": 3, "dash": dash},
        "hovertemplate": f"{name}: near %{{x:.2g}} the next number is %{{y:.2g}} of it away<extra></extra>",
    }


def gradient_sizes(series: Mapping[str, Any], form: Format, title: str) -> Any:
    """Share of the non-zero gradients at each power of two, against where ``form`` ends on either side.

    ``series``: name -> gradients, any shape, as they would be without rounding.
    """
    traces = [
        _histogram(name, values, colour)
        for (name, values), colour in zip(series.items(), theme.colours(), strict=False)
    ]
    highest = max(max(trace["y"]) for trace in traces)
    marks = (
        (form.smallest / 2, f"{form.name}: zero below"),
        (form.smallest_normal, "full precision from here"),
        (form.largest, "infinity" if form.has_infinity else "NaN"),
    )
    layout = {
        "xaxis": theme.axis("size of a gradient, as a power of two", dtick=8, range=[-52, 20]),
        "yaxis": theme.axis("share of the gradients", tickformat=".0%", range=[0, 1.6 * highest]),
        "shapes": [_mark(float(np.log2(at))) for at, _ in marks],
        "annotations": [_said(float(np.log2(at)), text) for at, text in marks],
        "bargap": 0.05,
        "barmode": "overlay",
    }
    return theme.figure(traces, layout, title, height=440)


def _histogram(name: str, values: Any, colour: str) -> dict[str, Any]:
    sizes = np.abs(np.asarray(values, np.float64)).ravel()
    powers = np.floor(np.log2(sizes[sizes > 0])).astype(int)
    found, counts = np.unique(powers, return_counts=True)
    return {
        "type": "bar",
        "name": name,
        "x": (found + 0.5).tolist(),
        "y": (counts / counts.sum()).tolist(),
        "marker": {"color": colour},
        "opacity": 0.75,
        "hovertemplate": f"{name}: %{{y:.1%}} near 2^%{{x:.0f}}<extra></extra>",
    }


def _mark(at: float) -> dict[str, Any]:
    line = {"color": theme.RED, "dash": "dot", "width": 2}
    return {"type": "line", "yref": "paper", "x0": at, "x1": at, "y0": 0, "y1": 1, "line": line}


def _said(at: float, text: str) -> dict[str, Any]:
    return {
        "x": at,
        "y": 1,
        "yref": "paper",
        "text": text,
        "showarrow": False,
        "textangle": -90,
        "xanchor": "right",
        "yanchor": "top",
        "font": {"color": theme.RED, "size": 12},
    }


def products(found: Sequence[Product]) -> Any:
    """Operations a second of each way to multiply, grouped by card, on a logarithmic axis."""
    named = {one.name for one in found}
    names = sorted(named, key=[BY_HAND, *LIBRARY, *named].index)
    cards = list(dict.fromkeys(one.card for one in found))
    traces = []
    for name, colour in zip(names, theme.colours(), strict=False):
        own = {one.card: one for one in found if one.name == name}
        traces.append(
            {
                "type": "bar",
                "name": name,
                "x": [own[card].flops_per_s if card in own else None for card in cards],
                "y": cards,
                "orientation": "h",
                "marker": {"color": colour},
                "hovertext": [repr(own[card]) if card in own else "" for card in cards],
                "hovertemplate": "%{hovertext}<extra></extra>",
            }
        )
    ticks = [1e12, 1e13, 1e14, 1e15]
    layout = {
        "xaxis": theme.axis(
            "operations/s",
            type="log",
            range=[11.8, 15.5],
            tickvals=ticks,
            ticktext=["1 T", "10 T", "100 T", "1000 T"],
        ),
        "yaxis": theme.axis("", autorange="reversed"),
        "barmode": "group",
        "legend": {"orientation": "h", "x": 0, "y": -0.18, "yanchor": "top"},
    }
    hows = " and ".join(dict.fromkeys(one.how for one in found))
    return theme.figure(traces, layout, f"One product of {found[0].n} x {found[0].n}, {hows}", height=480)


def losses(series: Mapping[str, Sequence[float]], title: str, over: int = 20) -> Any:
    """Loss against step, each point the mean of the last ``over`` steps."""
    traces = []
    for (name, values), (colour, dash, width) in zip(series.items(), itertools.cycle(_LINES), strict=False):
        smooth = np.convolve(values, np.ones(over) / over, "valid")
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": list(range(over, len(values) + 1)),
                "y": smooth.tolist(),
                "line": {"color": colour, "width": width, "dash": dash},
                "hovertemplate": f"{name}, step %{{x}}: %{{y:.3f}}<extra></extra>",
            }
        )
    layout = {
        "xaxis": theme.axis("step"),
        "yaxis": theme.axis(f"loss, mean of {over} steps (measured)", rangemode="tozero"),
    }
    return theme.figure(traces, layout, title, height=420)


# colour, dash, width: a line that lies on an earlier one is thinner and leaves gaps, so that both are seen
_LINES = (
    (theme.BLUE, "solid", 7),
    (theme.ORANGE, "dash", 4),
    (theme.RED, "dot", 3),
    (theme.GREEN, "dashdot", 2),
)
