"""The Plotly figures of the lessons: results in, a plain Plotly ``Figure`` out, nothing computed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from labkit.compute.curves import Curve
from labkit.compute.host import Run
from labkit.compute.rates import Rates
from labkit.compute.scaling import Scaling, amdahl, gustafson
from labkit.widgets import theme

_PREFIXES = {-4: "p", -3: "n", -2: "µ", -1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T", 5: "P", 6: "E"}
DASHES = {"measured": "solid", "emulated": "dashdot", "modelled": "dash"}
STEPS = (
    ("start the processes", "start_s", theme.PURPLE),
    ("copy there", "send_s", theme.ORANGE),
    ("work", "work_s", theme.BLUE),
    ("copy back", "receive_s", theme.RED),
)


def time_over_size(
    curves: Sequence[Curve],
    title: str,
    unit: str = "pixels",
    crossings: Mapping[str, float | None] | None = None,
) -> Any:
    """Seconds against size, both logarithmic; a star on the axis at every size where one curve overtakes
    another.

    Parameters
    ----------
    crossings : mapping
        What happens there (shown when hovering) -> size; None draws nothing.
    """
    traces = [_line(curve, colour, unit) for curve, colour in zip(curves, theme.colours(), strict=False)]
    floor = min(min(curve.seconds) for curve in curves)
    stars = {text: size for text, size in (crossings or {}).items() if size is not None}
    if stars:
        traces.append(_stars(stars, floor, unit))
    layout = {
        "xaxis": theme.axis(unit, type="log", exponentformat="power", dtick=1),
        "yaxis": theme.axis("time", **_decades([s for curve in curves for s in curve.seconds], "s", 0.15)),
    }
    return theme.figure(traces, layout, title, height=460)


def _line(curve: Curve, colour: str, unit: str) -> dict[str, Any]:
    measured = curve.how == "measured"
    return {
        "type": "scatter",
        "name": curve.name,
        "x": list(curve.sizes),
        "y": list(curve.seconds),
        "mode": "lines+markers" if measured else "lines",
        "line": {"color": colour, "dash": DASHES[curve.how], "width": 2},
        "marker": {"size": 7},
        "hovertemplate": f"%{{x:,}} {unit}: %{{y:.3s}}s<br>{curve.how}, {curve.on}<extra></extra>",
    }


def _stars(stars: Mapping[str, float], floor: float, unit: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "name": "break-even",
        "x": list(stars.values()),
        "y": [floor] * len(stars),
        "text": list(stars),
        "mode": "markers",
        "marker": {"symbol": "star", "size": 14, "color": theme.GREEN},
        "hovertemplate": f"%{{text}}: from %{{x:,.0f}} {unit}<extra></extra>",
    }


def where_time_goes(runs: Sequence[Run], title: str) -> Any:
    """One bar a run, its milliseconds split into starting, copying, working and copying back."""
    names = [f"{run.filter}, {run.who}" for run in runs]
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "name": step,
            "y": names,
            "x": [1e3 * getattr(run, field) for run in runs],
            "marker": {"color": colour},
            "hovertemplate": f"{step}: %{{x:.3~g}} ms<extra>%{{y}}</extra>",
        }
        for step, field, colour in STEPS
        if any(getattr(run, field) for run in runs)
    ]
    layout = {
        "barmode": "stack",
        "xaxis": theme.axis("milliseconds, measured on this machine's CPU"),
        "yaxis": theme.axis("", autorange="reversed"),
        "legend": {"orientation": "h", "x": 0, "y": -0.45, "yanchor": "top", "traceorder": "normal"},
    }
    return theme.figure(traces, layout, title, height=210 + 40 * len(runs))


def speedups(scaling: Scaling, serial: Sequence[float] = (0.02, 0.1, 0.25), up_to: int = 64) -> Any:
    """Amdahl's curves on the left, Gustafson's lines on the right, the measured speed-ups upon both.

    Hollow points had more workers than cores.
    """
    traces = [*_laws(serial, up_to), *_measured(scaling)]
    ticks = [2**k for k in range(up_to.bit_length())]
    workers = {"type": "log", "tickvals": ticks, "ticktext": [str(n) for n in ticks]}
    layout = {
        "xaxis": theme.axis("workers: one photograph for all", domain=[0, 0.46], **workers),
        "xaxis2": theme.axis("workers: a photograph for each", domain=[0.54, 1], anchor="y2", **workers),
        "yaxis": theme.axis("speed-up", **workers),
        "yaxis2": theme.axis("", anchor="x2", matches="y", **workers),
        "legend": {"orientation": "h", "x": 0, "y": -0.24, "yanchor": "top"},
    }
    return theme.figure(traces, layout, "Amdahl (left) and Gustafson (right)", height=480)


def _laws(serial: Sequence[float], up_to: int) -> list[dict[str, Any]]:
    grid = [2 ** (step / 8) for step in range(8 * (up_to.bit_length() - 1) + 1)]
    traces = []
    for share, colour in zip(
        (0.0, *serial), (theme.GREY, theme.BLUE, theme.GREEN, theme.PURPLE), strict=False
    ):
        name = "perfect" if share == 0 else f"{share:.0%} serial (modelled)"
        for law, suffix in ((amdahl, ""), (gustafson, "2")):
            trace = {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "legendgroup": name,
                "showlegend": not suffix,
                "x": grid,
                "y": [law(n, share) for n in grid],
                "xaxis": "x" + suffix,
                "yaxis": "y" + suffix,
                "line": {"color": colour, "width": 2, "dash": "dot" if share == 0 else "dash"},
                "hovertemplate": f"{name}<br>%{{x:.0f}} workers: %{{y:.2f}} times<extra></extra>",
            }
            traces.append(trace)
    return traces


def _measured(scaling: Scaling) -> list[dict[str, Any]]:
    symbols = ["circle" if n <= scaling.cores else "circle-open" for n in scaling.workers]
    traces = []
    for speedup, suffix in ((scaling.strong, ""), (scaling.weak, "2")):
        trace = {
            "type": "scatter",
            "mode": "markers",
            "name": f"measured, {scaling.cores} cores (hollow: more workers than cores)",
            "legendgroup": "measured",
            "showlegend": not suffix,
            "x": list(scaling.workers),
            "y": list(speedup),
            "xaxis": "x" + suffix,
            "yaxis": "y" + suffix,
            "marker": {
                "color": theme.ORANGE,
                "size": 12,
                "symbol": symbols,
                "line": {"width": 2, "color": theme.ORANGE},
            },
            "hovertemplate": "%{x} workers: %{y:.2f} times<extra>measured</extra>",
        }
        traces.append(trace)
    return traces


def processors(rates: Sequence[Rates]) -> Any:
    """Operations a second against bytes a second, a point a processor; hollow: peaks of data sheets."""
    ordered = sorted(rates, key=lambda rate: rate.flops)
    layout = {
        "xaxis": theme.axis(
            "bytes/s to and from its own memory", **_decades([r.bytes_per_s for r in rates], "B/s", 0.4)
        ),
        "yaxis": theme.axis("float32 operations/s", **_decades([r.flops for r in rates], "FLOP/s", 0.5)),
    }
    layout["legend"] = {"orientation": "h", "x": 0, "y": -0.28, "yanchor": "top"}
    kinds = (("measured", theme.ORANGE, "circle"), ("data sheet", theme.BLUE, "circle-open"))
    traces = [_processors(ordered, *kind) for kind in kinds if any(rate.how == kind[0] for rate in rates)]
    return theme.figure(traces, layout, "What a processor does in a second", height=440)


def _processors(ordered: Sequence[Rates], how: str, colour: str, symbol: str) -> dict[str, Any]:
    """The points of one kind; names stand above and below in turn, so that neighbours leave each other room."""
    shown = [
        (rate, ("top center", "bottom center")[i % 2]) for i, rate in enumerate(ordered) if rate.how == how
    ]
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": how if how == "measured" else "peak, data sheet",
        "x": [rate.bytes_per_s for rate, _ in shown],
        "y": [rate.flops for rate, _ in shown],
        "text": [rate.name for rate, _ in shown],
        "textposition": [place for _, place in shown],
        "hovertext": [rate.source for rate, _ in shown],
        "marker": {"size": 14, "color": colour, "symbol": symbol, "line": {"width": 2, "color": colour}},
        "hovertemplate": "%{text}: %{x:.3s}B/s, %{y:.3s}FLOP/s<br>%{hovertext}<extra></extra>",
    }


def _decades(values: Sequence[float], unit: str, room: float) -> dict[str, Any]:
    """A logarithmic axis with a name at every power of ten, and ``room`` decades beyond the values."""
    low, high = math.log10(min(values)) - room, math.log10(max(values)) + room
    ticks = range(math.ceil(low), math.floor(high) + 1)
    names = [f"{10 ** (power % 3)} {_PREFIXES[power // 3]}{unit}" for power in ticks]
    return {
        "type": "log",
        "range": [low, high],
        "tickvals": [10.0**power for power in ticks],
        "ticktext": names,
    }
