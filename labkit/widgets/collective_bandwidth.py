"""Bus bandwidth over message size, with the fitted model and the limit of the link."""

from __future__ import annotations

from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.catalog import link as catalogued
from labkit.hardware.units import parse, show_bytes, show_rate
from labkit.network.benchmark.fit import Fit, fit, modelled
from labkit.network.benchmark.report import BandwidthReport, bus_factor
from labkit.widgets import theme


def collective_bandwidth(report: BandwidthReport, link: str | float | None = None) -> Any:
    """A line a kind: points measured, with quartiles; dotted, the alpha-beta model fitted to them.

    Parameters
    ----------
    link : str or float, optional
        The limit to draw: a rate (``"1Gbit/s"``), or a link of the catalogue (``"nvlink4"``). By default the
        fastest send and receive of the report, when it has any.
    """
    fits = {(one.operation, one.implementation): one for one in (fit(report) if report.ranks > 1 else ())}
    traces: list[dict[str, Any]] = []
    for number, kind in enumerate(report.kinds()):
        colour = theme.COLOURS[number % len(theme.COLOURS)]
        traces.append(_measured(report.of(*kind), colour, dashed=kind[1] == "torch"))
        if kind in fits:
            traces.append(_model(fits[kind], report, colour))
    layout = {
        "xaxis": theme.axis("size of the message", **_sizes([row.size_bytes for row in report.rows])),
        "yaxis": theme.axis("bus bandwidth, bytes/s", type="log", dtick=1, exponentformat="SI"),
        **_limit(report, link),
    }
    found = theme.figure(traces, layout, report.where, height=520)
    found.layout.title.subtitle = {"text": "measured; dotted: alpha-beta model, fitted", "font": {"size": 12}}
    return found


def _measured(report: BandwidthReport, colour: str, dashed: bool) -> dict[str, Any]:
    rows, first = report.rows, report.rows[0]
    middle = [row.bus_bandwidth for row in rows]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": f"{first.operation}, {first.implementation}",
        "legendgroup": f"{first.operation} {first.implementation}",
        "x": [row.size_bytes for row in rows],
        "y": middle,
        "error_y": theme.spread(
            [y * (1 - row.seconds / row.high) for y, row in zip(middle, rows, strict=True)],
            [y * (row.seconds / row.low - 1) for y, row in zip(middle, rows, strict=True)],
        ),
        "line": {"color": colour, "width": 2, "dash": "dash" if dashed else "solid"},
        "marker": {"size": 7, "symbol": "circle-open" if dashed else "circle"},
        "hovertemplate": "%{x} B: %{y:.3s}B/s<extra>measured</extra>",
    }


def _model(one: Fit, report: BandwidthReport, colour: str) -> dict[str, Any]:
    sizes = [row.size_bytes for row in report.of(one.operation, one.implementation).rows]
    factor = bus_factor(one.operation, report.ranks)
    return {
        "type": "scatter",
        "mode": "lines",
        "showlegend": False,
        "legendgroup": f"{one.operation} {one.implementation}",
        "x": sizes,
        "y": [factor * size / modelled(one, size, report.ranks) for size in sizes],
        "line": {"color": colour, "width": 1, "dash": "dot"},
        "hovertemplate": f"{one.operation}, {one.implementation}: %{{y:.3s}}B/s<extra>modelled</extra>",
    }


def _limit(report: BandwidthReport, link: str | float | None) -> dict[str, Any]:
    rate, said = _rate(report, link)
    if rate is None:
        return {}
    from math import log10

    look = {"color": theme.GREY, "dash": "dash", "width": 2}
    line = {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": rate,
        "y1": rate,
        "line": look,
    }
    words = {"text": said, "xref": "paper", "x": 0, "xanchor": "left", "y": log10(rate)}
    return {"shapes": [line], "annotations": [{**words, "yanchor": "bottom", "showarrow": False}]}


def _rate(report: BandwidthReport, link: str | float | None) -> tuple[float | None, str]:
    if link is None:
        rates = [row.bus_bandwidth for row in report.rows if row.operation == "send_recv"]
        best = max(rates, default=None)
        return best, f"fastest send and receive here: {show_rate(best)}" if best else ""
    try:
        rate = parse(link, "rate")
        return rate, f"link: {show_rate(rate, bits=True)} each way"
    except LabkitError:
        if not isinstance(link, str):
            raise
        found = catalogued(link)
        return found.raw_GBps * 1e9, f"{found.id}: {found.raw_GBps:g} GB/s one way (data sheet)"


def _sizes(sizes: list[int]) -> dict[str, Any]:
    ticks = sorted(set(sizes))
    ticks = ticks[:: max(1, len(ticks) // 8)]
    return {"type": "log", "tickvals": ticks, "ticktext": [show_bytes(size) for size in ticks]}
