"""Protocols drawn: eager against rendezvous, what headers take, what copies cost, incast."""

from __future__ import annotations

from typing import Any

from labkit.hardware.units import show_bytes, show_time
from labkit.network.protocols.copies import HostCopies
from labkit.network.protocols.headers import HeaderShare
from labkit.network.protocols.many_to_one import Incast
from labkit.network.protocols.message_times import EagerRendezvous
from labkit.widgets import theme

_NUMBERS = ("no way", "one way", "two ways", "three ways", "four ways", "five ways")
# A legend of several rows, as in a narrow page, stays clear of the axis' title.
_ROOM_BELOW = {
    "legend": {"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom"},
    "margin": {"l": 64, "r": 24, "t": 56, "b": 116},
}


def eager_rendezvous_view(found: EagerRendezvous) -> Any:
    """Time by size, a line a protocol with quartiles; where they cross, measured and modelled."""
    traces = [
        _times(found, "eager", theme.BLUE, "circle"),
        _times(found, "rendezvous", theme.ORANGE, "diamond"),
    ]
    layout = {
        "xaxis": theme.axis("size of the message", **_sizes(found.sizes)),
        "yaxis": theme.axis(
            "one way (measured)", type="log", exponentformat="SI", minexponent=0, ticksuffix="s", dtick=1
        ),
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
        "error_y": theme.spread(
            [row.seconds - row.low for row in rows], [row.high - row.seconds for row in rows]
        ),
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
            "x": log10(min(place or 1 for _, place, _, _ in seen)),  # left of both lines
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
        "yaxis": theme.axis("share of headers", tickformat=".0%", range=[0, 1.02]),
        **_ROOM_BELOW,
    }
    return theme.figure(traces, layout, "What headers take")


def _sizes(sizes: Any) -> dict[str, Any]:
    ticks = sorted(set(sizes))
    ticks = ticks[:: -(-len(ticks) // 8)]
    return {"type": "log", "tickvals": ticks, "ticktext": [show_bytes(size) for size in ticks]}


def copies_view(found: HostCopies) -> Any:
    """Copies of the data, way by way and kind by kind, with the time and the calls beside them."""
    rows = found.rows[::-1]
    size = rows[0].size
    kinds = (
        ("out of the sender's memory", "to_kernel", theme.BLUE),
        ("into the receiver's memory", "from_kernel", theme.ORANGE),
        ("in shared memory", "in_memory", theme.GREEN),
    )
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": [row.way for row in rows],
            "x": [getattr(row, field) / size for row in rows],
            "marker": {"color": colour},
            "hovertemplate": f"%{{y}}: %{{x:.2g}} times the message {name}<extra></extra>",
        }
        for name, field, colour in kinds
    ]
    words = [
        {
            "text": f"{show_time(row.seconds)}, {row.system_calls:.3g} system calls",
            "y": row.way,
            "x": row.copied / size,
            "xanchor": "left",
            "xshift": 8,
            "showarrow": False,
        }
        for row in rows
    ]
    most = max(row.copied / size for row in rows)
    layout = {
        "barmode": "stack",
        "xaxis": theme.axis("times that the message is copied (counted)", range=[0, 2 * most or 1], dtick=1),
        "yaxis": theme.axis("", showgrid=False),
        "annotations": words,
        **_ROOM_BELOW,
    }
    return theme.figure(traces, layout, f"One message of {show_bytes(size)}, {_NUMBERS[len(rows)]}", 380)


def incast_view(found: Incast) -> Any:
    """Goodput over the number of senders, with what the link allows; drops beside it."""
    senders = [str(row.senders) for row in found.rows]
    goodput = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "goodput",
        "x": senders,
        "y": [row.goodput for row in found.rows],
        "line": {"color": theme.BLUE, "width": 2},
        "marker": {"size": 9},
        "yaxis": "y2",
        "hovertemplate": "%{x} senders: %{y:.3s}B/s<extra></extra>",
    }
    drops = {
        "type": "bar",
        "name": "packets dropped",
        "x": senders,
        "y": [row.drops for row in found.rows],
        "marker": {"color": theme.RED, "opacity": 0.35},
        "hovertemplate": "%{x} senders: %{y} dropped<extra></extra>",
    }
    line = {"type": "line", "xref": "paper", "yref": "y2", "x0": 0, "x1": 1}
    line |= {"y0": found.bandwidth, "y1": found.bandwidth}
    layout = {
        "xaxis": theme.axis("senders at once", type="category"),
        "yaxis": theme.axis("packets dropped", side="right", rangemode="tozero", showgrid=False),
        # in front of the bars
        "yaxis2": theme.axis(
            "goodput, bytes/s",
            overlaying="y",
            side="left",
            tickmode="auto",
            rangemode="tozero",
            exponentformat="SI",
        ),
        "shapes": [{**line, "line": {"color": theme.GREY, "dash": "dash", "width": 2}}],
        "annotations": [
            {
                "text": "the link",
                "xref": "paper",
                "x": 0,
                "xanchor": "left",
                "y": found.bandwidth,
                "yref": "y2",
                "yanchor": "bottom",
                "showarrow": False,
            }
        ],
        "margin": {"l": 64, "r": 72, "t": 56, "b": 56},
    }
    how = "modelled" if found.modelled else "measured"
    return theme.figure(
        [drops, goodput], layout, f"Incast at a queue of {show_bytes(found.queue)} ({how})", 440
    )
