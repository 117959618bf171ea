"""Protocols drawn: eager against rendezvous, what headers take, what copies cost, incast."""

from __future__ import annotations

from typing import Any

from labkit.hardware.units import show_bytes
from labkit.network.protocols.crossover import EagerRendezvous
from labkit.network.protocols.headers import HeaderShare
from labkit.widgets import theme


def eager_rendezvous_view(found: EagerRendezvous) -> Any:
    """Time by size, a line a protocol with quartiles; where they cross, measured and modelled."""
    traces = [
        _times(found, "eager", theme.BLUE, "circle"),
        _times(found, "rendezvous", theme.ORANGE, "diamond"),
    ]
    layout = {
        "xaxis": theme.axis("size of the message", **_sizes(found.sizes)),
        "yaxis": theme.axis("seconds, one way (measured)", type="log", exponentformat="SI", dtick=1),
        **_marks(found),
    }
    return theme.figure(traces, layout, "One copy more, or one round trip more", height=460)


def _times(found: EagerRendezvous, protocol: str, colour: str, symbol: str) -> dict[str, Any]:
    rows = found.of(protocol)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": protocol,
        "x": [row.size for row in rows],
        "y": [row.seconds for row in rows],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [row.high - row.seconds for row in rows],
            "arrayminus": [row.seconds - row.low for row in rows],
            "thickness": 1,
        },
        "line": {"color": colour, "width": 2},
        "marker": {"size": 7, "symbol": symbol},
        "hovertemplate": f"%{{x}} B: %{{y:.3s}}s<extra>{protocol}, measured</extra>",
    }


def _marks(found: EagerRendezvous) -> dict[str, Any]:
    """Upright lines at the crossovers, with words at different heights so that they never lie on each other."""
    from math import log10

    places = [
        ("measured", found.crossover, theme.GREEN, 1.0),
        ("modelled", found.modelled, theme.PURPLE, 0.9),
    ]
    seen = [one for one in places if one[1] is not None and found.sizes[0] <= one[1] <= found.sizes[-1]]
    lines = [
        {
            "type": "line",
            "yref": "paper",
            "x0": at,
            "x1": at,
            "y0": 0,
            "y1": 1,
            "line": {"color": colour, "dash": "dot"},
        }
        for _, at, colour, _ in seen
    ]
    words = [
        {
            "text": f"crossover {how}: {show_bytes(at or 0)}",
            "x": log10(at or 1),
            "y": height,
            "yref": "paper",
            "xanchor": "right",
            "yanchor": "top",
            "showarrow": False,
            "font": {"color": colour},
        }
        for how, at, colour, height in seen
    ]
    return {"shapes": lines, "annotations": words}


def header_view(*shares: HeaderShare) -> Any:
    """Share of headers by message size; one line for each set given, such as derived and counted."""
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": share.label,
            "x": [row.size for row in share.rows],
            "y": [row.share for row in share.rows],
            "line": {"color": theme.COLOURS[number % len(theme.COLOURS)], "width": 2},
            "marker": {"size": 7, "symbol": "circle" if share.where else "circle-open"},
            "hovertemplate": "%{x} B: %{y:.1%} headers<extra></extra>",
        }
        for number, share in enumerate(shares)
    ]
    sizes = sorted({row.size for share in shares for row in share.rows})
    layout = {
        "xaxis": theme.axis("size of the message", **_sizes(sizes)),
        "yaxis": theme.axis("headers, of all bytes on the interface", tickformat=".0%", range=[0, 1.02]),
    }
    return theme.figure(traces, layout, "What headers take")


def _sizes(sizes: Any) -> dict[str, Any]:
    ticks = sorted(set(sizes))
    ticks = ticks[:: -(-len(ticks) // 8)]
    return {"type": "log", "tickvals": ticks, "ticktext": [show_bytes(size) for size in ticks]}
