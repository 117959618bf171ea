"""Pictures of simulated fabrics: links by heat, a replay in simulated time, curves over size and over ranks.

Results in, a plain Plotly ``Figure`` out, nothing simulated. What is drawn is modelled and says so; measured points
are drawn as points, and called measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labkit.errors import LabkitError
from labkit.hardware.units import show_bytes, show_time
from labkit.network.fabric import link_use
from labkit.network.fabric.machine import Fabric
from labkit.network.fabric.measurements import measured
from labkit.network.fabric.result import CollectiveResult
from labkit.widgets import theme
from labkit.widgets.fabric_layout import Places, places, strokes

MOST_LINKS = 6_000
MOST_NAMES = 24  # side by side; more would run into each other in a narrow window
# Grey for idle, then by lightness and hue from cool to hot.
HEAT = ("rgba(128,132,138,0.35)", "#7fb2e0", "#3f8fd2", "#8c7bc9", "#e0812a", "#d9534f")
STEPS = ("idle", "up to 20 %", "up to 40 %", "up to 60 %", "up to 80 %", "up to 100 % busy")
SYMBOLS = {"gpu": "circle", "nvswitch": "diamond", "switch": "square", "nic": "triangle-up", "pcie": "cross"}


def topology(fabric: Fabric, result: CollectiveResult | None = None) -> Any:
    """The nodes and links of a fabric; with a result, links coloured by how busy it kept them."""
    _drawable(fabric)
    where, busy = places(fabric.topology), _both_ways(fabric, None if result is None else result.links.busy)
    traces = [
        *_links(fabric, where, busy, result is not None),
        _hover(fabric, where, result),
        *_nodes(fabric, where),
    ]
    title = (
        fabric.name
        if result is None
        else f"{fabric.name}: {result.operation}, {result.algorithm}, {result.label}"
    )
    return theme.figure(traces, _bare(), title, height=480)


def replay(fabric: Fabric, result: CollectiveResult, frames: int = 40) -> Any:
    """The load of every link over the simulated time, to play and to drag; the result needs ``timeline=True``."""
    _drawable(fabric)
    if result.timeline is None:
        raise LabkitError(
            "There is no timeline to replay: ask for one, as in all_reduce(size, timeline=True)."
        )
    where, edges = places(fabric.topology), np.linspace(0, result.seconds, frames + 1)
    shares = [_both_ways(fabric, share) for share in link_use.use(fabric.topology, result.timeline, edges)]
    still = [_hover(fabric, where, result), *_nodes(fabric, where)]
    drawn = [_links(fabric, where, share, True) for share in shares]
    title = f"{fabric.name}: {result.operation}, {result.algorithm}, in simulated time (modelled)"
    figure = theme.figure([*drawn[0], *still], {**_bare(), **_controls(edges)}, title, height=560)
    figure.frames = [
        {"name": str(number), "data": traces, "traces": list(range(len(traces)))}
        for number, traces in enumerate(drawn)
    ]
    return figure


def scaling(results: Mapping[str, Sequence[CollectiveResult]], what: str = "bus_bandwidth") -> Any:
    """A curve over ranks for each name; `what` is ``bus_bandwidth``, ``algorithm_bandwidth`` or ``seconds``."""
    units = {"bus_bandwidth": "B/s", "algorithm_bandwidth": "B/s", "seconds": "s"}
    if what not in units:
        raise LabkitError(f"{what!r} cannot be drawn over ranks: use {', '.join(units)}.")
    traces = [
        _curve(
            name, [r.ranks for r in line], [getattr(r, what) for r in line], colour, "%{x} ranks: %{y:.4s}"
        )
        for (name, line), colour in zip(results.items(), _colours(len(results)), strict=True)
    ]
    ticks = sorted({result.ranks for line in results.values() for result in line})
    scale = {"type": "log", "dtick": "D2", "exponentformat": "SI", "ticksuffix": units[what]}
    layout = {
        "xaxis": theme.axis("ranks", type="log", tickvals=ticks, ticktext=[str(ranks) for ranks in ticks]),
        "yaxis": theme.axis(f"{what.replace('_', ' ')}, modelled", **scale),
    }
    return theme.figure(traces, layout, "Scaling, simulated (modelled)")


def size_sweep(
    modelled: Mapping[str, Sequence[CollectiveResult]], points: Mapping[str, Any] | None = None
) -> Any:
    """Time over size: a dashed curve for each name of `modelled`, points for each name of `points` (measured).

    Parameters
    ----------
    points : mapping
        Name -> what `labkit.network.fabric.measurements.measured` reads.
    """
    colours = _colours(len(modelled) + len(points or {}))
    traces = [
        _curve(name, [r.size_bytes for r in line], [r.seconds for r in line], colour, "%{x:.3s}B: %{y:.4s}s")
        for (name, line), colour in zip(modelled.items(), colours, strict=False)
    ]
    for (name, source), colour in zip((points or {}).items(), colours[len(modelled) :], strict=True):
        known = measured(source, name)
        traces.append(_points(name, known.sizes, known.seconds, colour))
    layout = {
        "xaxis": theme.axis("bytes", type="log", exponentformat="SI"),
        "yaxis": theme.axis("seconds", type="log", exponentformat="SI", ticksuffix="s"),
    }
    return theme.figure(
        traces, layout, "Time over size: modelled curves" + (", measured points" if points else "")
    )


def _colours(count: int) -> list[str]:
    return [theme.COLOURS[number % len(theme.COLOURS)] for number in range(count)]


def _curve(name: str, x: Sequence[float], y: Sequence[float], colour: str, hover: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "name": f"{name} (modelled)",
        "x": list(x),
        "y": list(y),
        "mode": "lines+markers",
        "line": {"color": colour, "dash": "dash", "width": 2},
        "marker": {"size": 5},
        "hovertemplate": f"{hover}<br>modelled<extra>{name}</extra>",
    }


def _points(name: str, x: Sequence[float], y: Sequence[float], colour: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "name": f"{name} (measured)",
        "x": list(x),
        "y": list(y),
        "mode": "markers",
        "marker": {"size": 9, "color": colour, "symbol": "x"},
        "hovertemplate": f"%{{x:.3s}}B: %{{y:.4s}}s<br>measured<extra>{name}</extra>",
    }


def _drawable(fabric: Fabric) -> None:
    if len(fabric.topology.links.names) > MOST_LINKS:
        raise LabkitError(
            f"{fabric.name} has {len(fabric.topology.links.names):,} links, too many to tell apart in a picture "
            f"(at most {MOST_LINKS:,}): draw a smaller one, or look at result.links.hottest(10)."
        )


def _pairs(fabric: Fabric) -> tuple[np.ndarray, np.ndarray]:
    """Each cable once, and the number of the cable of every link."""
    links = fabric.topology.links
    ends = np.sort(np.stack([links.tail, links.head], axis=1), axis=1)
    cables, cable = np.unique(ends, axis=0, return_inverse=True)
    return cables, cable.ravel()


def _both_ways(fabric: Fabric, busy: np.ndarray | None) -> np.ndarray:
    """Of each cable, the busier of its two directions."""
    cables, cable = _pairs(fabric)
    top = np.zeros(len(cables))
    if busy is not None:
        np.maximum.at(top, cable, busy)
    return top


def _links(fabric: Fabric, where: Places, busy: np.ndarray, legend: bool) -> list[dict[str, Any]]:
    """One trace for each step of heat: Plotly gives a line one colour."""
    names, cables = list(fabric.topology.graph.nodes), _pairs(fabric)[0]
    step = np.where(busy > 1e-9, np.clip(np.ceil(np.round(busy, 9) * 5), 1, 5), 0)
    traces = []
    for heat, colour in enumerate(HEAT):
        x: list[float | None] = []
        y: list[float | None] = []
        for one, other in cables[step == heat]:
            for start, end in strokes(fabric.topology, names[one], names[other], where):
                x += [start[0], end[0], None]
                y += [start[1], end[1], None]
        line = {"color": colour, "width": 1 + 0.8 * heat}
        trace = {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": line, "hoverinfo": "skip"}
        traces.append({**trace, "name": STEPS[heat], "showlegend": legend})
    return traces


def _hover(fabric: Fabric, where: Places, result: CollectiveResult | None) -> dict[str, Any]:
    """Invisible points in the middle of each cable that say what it is, and what it carried."""
    cables, cable = _pairs(fabric)
    names, links = list(fabric.topology.graph.nodes), fabric.topology.links
    texts: list[list[str]] = [[] for _ in cables]
    for number, (name, kind, speed) in enumerate(zip(links.names, links.kinds, links.capacity, strict=True)):
        load = ""
        if result is not None:
            load = f": {show_bytes(result.links.bytes[number])}, {result.links.busy[number]:.0%} busy"
        texts[cable[number]].append(f"{name} ({kind}, {speed / 1e9:.4g} GB/s){load}")
    middle = [np.mean([where[names[one]], where[names[other]]], axis=0) for one, other in cables]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [float(x) for x, _ in middle],
        "y": [float(y) for _, y in middle],
        "text": ["<br>".join(lines) for lines in texts],
        "marker": {"size": 9, "color": "rgba(0,0,0,0)"},
        "hovertemplate": "%{text}<extra>modelled</extra>",
        "showlegend": False,
    }


def _nodes(fabric: Fabric, where: Places) -> list[dict[str, Any]]:
    """A trace for each kind of node: GPUs stand out a little, everything else is told by its shape."""
    kinds: dict[str, list[Any]] = {}
    for node, facts in fabric.topology.graph.nodes(data=True):
        kinds.setdefault(facts["kind"], []).append(node)
    labels = _labels(where)
    return [
        {
            "type": "scatter",
            "mode": "markers+text",
            "name": kind,
            "x": [where[node][0] for node in nodes],
            "y": [where[node][1] for node in nodes],
            "text": [labels[node][0] for node in nodes],
            "textposition": [labels[node][1] for node in nodes],
            "textfont": {"size": 9},
            "customdata": [str(node) for node in nodes],
            "marker": {
                "size": 11,
                "symbol": SYMBOLS.get(kind, "hexagon"),
                "color": theme.GREEN if kind == "gpu" else theme.GREY,
            },
            "hovertemplate": f"%{{customdata}}<extra>{kind}</extra>",
        }
        for kind, nodes in kinds.items()
    ]


def _labels(where: Places) -> dict[Any, tuple[str, str]]:
    """Node -> its name where there is room for it, and where the name stands: below the lowest, else beside."""
    rows: dict[float, int] = {}
    for _, y in where.values():
        rows[y] = rows.get(y, 0) + 1
    lowest, highest = min(rows), max(rows)
    beside = {lowest: "bottom center", highest: "top center"}
    return {
        node: (str(node) if rows[y] <= MOST_NAMES else "", beside.get(y, "middle right"))
        for node, (_, y) in where.items()
    }


def _bare() -> dict[str, Any]:
    hidden = {"visible": False, "showgrid": False, "zeroline": False}
    return {
        "xaxis": hidden,
        "yaxis": hidden,
        "legend": {"orientation": "h", "x": 0, "y": 0, "yanchor": "top"},
    }


def _controls(edges: np.ndarray) -> dict[str, Any]:
    settings = {
        "mode": "immediate",
        "frame": {"duration": 120, "redraw": False},
        "transition": {"duration": 0},
    }
    stop = {**settings, "frame": {"duration": 0, "redraw": False}}
    steps = [
        {"label": show_time(float(time)), "method": "animate", "args": [[str(number)], stop]}
        for number, time in enumerate(edges[:-1])
    ]
    buttons = [
        {"label": "Play", "method": "animate", "args": [None, {**settings, "fromcurrent": True}]},
        {"label": "Pause", "method": "animate", "args": [[None], stop]},
    ]
    menu = {"type": "buttons", "direction": "left", "x": 0, "y": -0.22, "xanchor": "left", "yanchor": "top"}
    return {
        "margin": {"l": 64, "r": 24, "t": 56, "b": 150},
        "updatemenus": [{**menu, "buttons": buttons, "showactive": False}],
        "sliders": [
            {"x": 0.2, "len": 0.8, "y": -0.18, "currentvalue": {"prefix": "simulated time "}, "steps": steps}
        ],
    }
