"""All-reduces over message size: what the alpha-beta model says, and what was measured beside it."""

from __future__ import annotations

from math import ceil, floor, log10
from typing import Any

from labkit.hardware.units import show_bytes, show_rate, show_time
from labkit.network import collectives_cost as cost
from labkit.network.benchmark.report import BandwidthReport
from labkit.widgets import theme

_BELOW = {"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom"}
MODELS = {
    "ring": cost.ring,
    "tree": cost.binomial_all_reduce,
    "halving-doubling": cost.halving_doubling,
}


def collective_times(
    ranks: int, alpha: float, beta: float, report: BandwidthReport | None = None, most: int = 2**30
) -> Any:
    """A line an algorithm, modelled; a star where ring and tree cross; points of a report, measured.

    Parameters
    ----------
    ranks : int
    alpha, beta : float
        Of a link: seconds a message, bytes a second.
    report : BandwidthReport, optional
        Rows of all_reduce whose implementation is ``"ring"``, ``"tree"`` or ``"halving-doubling"`` are drawn.
    most : int
        The largest size in bytes.
    """
    sizes = [2 ** (power / 2) for power in range(6, 2 * most.bit_length() - 1)]
    colours = dict(zip(MODELS, theme.COLOURS, strict=False))
    traces = [_line(name, sizes, (ranks, alpha, beta), colours[name]) for name in MODELS]
    if report is not None:
        traces += [_points(name, report, colours[name]) for name in MODELS]
    where = cost.crossing(MODELS["ring"], MODELS["tree"], ranks, alpha, beta)
    if where is not None and sizes[0] <= where <= sizes[-1]:
        traces.append(_star(where, cost.ring(where, ranks, alpha, beta)))
    layout = {
        "xaxis": theme.axis("bytes in the message", **_sizes(most)),
        "yaxis": theme.axis("time", **_times(traces)),
        "legend": _BELOW,
        "margin": {"l": 64, "r": 24, "t": 56, "b": 110},
    }
    link = f"alpha {show_time(alpha)}, beta {show_rate(beta)}"
    title = f"All-reduce on {ranks} ranks: {link}"
    return theme.figure(traces, layout, title, height=480)


def _line(name: str, sizes: list[float], link: tuple[int, float, float], colour: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{name} (modelled)",
        "x": sizes,
        "y": [MODELS[name](size, *link) for size in sizes],
        "line": {"color": colour, "width": 2, "dash": "dash"},
        "hovertemplate": f"%{{x:.3s}}B: %{{y:.3s}}s<extra>{name}, modelled</extra>",
    }


def _points(name: str, report: BandwidthReport, colour: str) -> dict[str, Any]:
    rows = [row for row in report.rows if (row.operation, row.implementation) == ("all_reduce", name)]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{name} (measured)",
        "x": [row.size_bytes for row in rows],
        "y": [row.seconds for row in rows],
        "error_y": theme.spread(
            [row.seconds - row.low for row in rows], [row.high - row.seconds for row in rows]
        ),
        "marker": {"color": colour, "size": 9},
        "hovertemplate": f"%{{x:.3s}}B: %{{y:.3s}}s<extra>{name}, measured</extra>",
    }


def _star(size: float, seconds: float) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"ring and tree cross at {show_bytes(size)}",
        "x": [size],
        "y": [seconds],
        "marker": {"symbol": "star", "size": 15, "color": theme.RED},
        "hoverinfo": "name",
    }


def _times(traces: list[dict[str, Any]]) -> dict[str, Any]:
    """Powers of ten, with 2 and 5 between them where there are few."""
    every = [seconds for trace in traces for seconds in trace["y"]]
    steps = (1, 2, 5) if max(every) < 300 * min(every) else (1,)
    decades = range(floor(log10(min(every))), ceil(log10(max(every))) + 1)
    ticks = [step * 10.0**decade for decade in decades for step in steps]
    return {"type": "log", "tickvals": ticks, "ticktext": [show_time(tick) for tick in ticks]}


def _sizes(most: int) -> dict[str, Any]:
    ticks = [2**power for power in range(3, most.bit_length(), 3)]
    return {"type": "log", "tickvals": ticks, "ticktext": [show_bytes(size) for size in ticks]}
