"""The timeline of a device model as a Gantt chart: a row an engine, coloured by stream, with what waits for what."""

from __future__ import annotations

from html import escape
from typing import Any

from labkit.compute.device_model.operations import HOST, HOST_WAIT, Operation, Wait
from labkit.compute.device_model.timeline import ENGINES, Timeline
from labkit.hardware.catalog import gpu
from labkit.hardware.units import show_time
from labkit.widgets import theme

MAX_BARS = 400
MAX_ARROWS = 60
MAX_NAMED = 8  # streams in the legend; more would only fill the page
_DRAWN = ("event", "host", "default stream")
# A red marker on every bar that may touch bytes too early.
_WARNING = {"symbol": "triangle-up", "size": 13, "color": theme.RED, "line": {"width": 1, "color": "white"}}


def gantt(timeline: Timeline, title: str = "", arrows: bool = True) -> Any:
    """Draw a timeline.

    A row for each engine, a colour for each stream, lines from the end of an operation to the start of one that waits
    for it (by an event, the host or the default stream; the order within a stream is left out), and a red triangle on
    every operation that has a hazard.

    Parameters
    ----------
    title : str
        Stands before what the figure says itself: the whole time, and how and on which card it is known.
    arrows : bool
        Draw what waits for what.
    """
    rows = [engine for engine in ENGINES if any(one.engine == engine for one in timeline.operations)]
    traces = [*_bars(timeline), *_warnings(timeline)]
    layout: dict[str, Any] = {
        "barmode": "overlay",
        "uniformtext": {"mode": "hide", "minsize": 9},  # a name that does not fit is shown on hovering
        "xaxis": theme.axis(f"milliseconds, {timeline.how}", rangemode="tozero"),
        "yaxis": theme.axis("", categoryorder="array", categoryarray=rows[::-1], showgrid=False),
        "legend": {"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom"},
        "showlegend": len(timeline.streams) <= MAX_NAMED,
        "margin": {"l": 64, "r": 24, "t": 76, "b": 96},
    }
    if arrows:
        layout["annotations"] = _arrows(timeline)
    figure = theme.figure(traces, layout, _title(timeline, title), height=236 + 48 * len(rows))
    return figure.update_layout(title={"yanchor": "top", "y": 0.96})


def _title(timeline: Timeline, title: str) -> str:
    name = gpu(timeline.on).name if timeline.how == "modelled" else timeline.on
    found = len(timeline.hazards)
    hazards = f", {found} hazard{'' if found == 1 else 's'}" if found else ""
    said = f"{show_time(timeline.seconds)} {timeline.how} on {name}{hazards}"
    return f"{escape(title)}<br><sup>{said}</sup>" if title else said


def _bars(timeline: Timeline) -> list[dict[str, Any]]:
    groups: dict[str, list[int]] = {}
    for one in timeline.operations[:MAX_BARS]:
        if one.kind != HOST_WAIT:
            groups.setdefault(one.stream or HOST, []).append(one.number)
    colours = {name: theme.COLOURS[n % (len(theme.COLOURS) - 1)] for n, name in enumerate(timeline.streams)}
    return [
        _group(timeline, name, members, colours.get(name, theme.GREY)) for name, members in groups.items()
    ]


def _group(timeline: Timeline, name: str, members: list[int], colour: str) -> dict[str, Any]:
    chosen = [(timeline.operations[n], *timeline.spans[n]) for n in members]
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": [one.engine for one, *_ in chosen],
        "base": [1e3 * start for _, start, _ in chosen],
        "x": [1e3 * (end - start) for _, start, end in chosen],
        "text": [one.name for one, *_ in chosen],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "textfont": {"color": "white"},
        "constraintext": "inside",
        "width": 0.62,
        "marker": {"color": colour, "line": {"width": 1, "color": "rgba(255,255,255,0.6)"}},
        "hovertemplate": f"%{{text}}<br>{name}: %{{x:.3~g}} ms from %{{base:.4~g}} ms<extra></extra>",
    }


def _warnings(timeline: Timeline) -> list[dict[str, Any]]:
    said: dict[int, str] = {}
    for hazard in timeline.hazards:
        said.setdefault(hazard.second, hazard.message)
    if not said or timeline.how != "modelled":
        return []
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "hazard",
            "y": [timeline.operations[n].engine for n in said],
            "x": [1e3 * timeline.spans[n][0] for n in said],
            "text": list(said.values()),
            "marker": _WARNING,
            "hovertemplate": "%{text}<extra>hazard</extra>",
        }
    ]


def _arrows(timeline: Timeline) -> list[dict[str, Any]]:
    found = []
    for one in timeline.operations[:MAX_BARS]:
        for wait in _needed(timeline, one):
            other = timeline.operations[wait.on]
            if wait.why in _DRAWN and HOST_WAIT not in (one.kind, other.kind) and one.engine != other.engine:
                found.append(_arrow(timeline, wait.on, one.number))
    return found[:MAX_ARROWS]


def _needed(timeline: Timeline, one: Operation) -> list[Wait]:
    """What an operation waits for, without what one of the others waits for already."""
    every = [timeline.operations[wait.on] for wait in one.waits]
    return [
        wait
        for wait, first in zip(one.waits, every, strict=True)
        if not any(timeline.order.ordered(first, other) for other in every)
    ]


def _arrow(timeline: Timeline, first: int, second: int) -> dict[str, Any]:
    ends = {
        "x": 1e3 * timeline.spans[second][0],
        "y": timeline.operations[second].engine,
        "ax": 1e3 * timeline.spans[first][1],
        "ay": timeline.operations[first].engine,
    }
    look = {"arrowhead": 2, "arrowsize": 1, "arrowwidth": 1.5, "arrowcolor": theme.INK, "text": ""}
    return {**ends, **look, "showarrow": True, "xref": "x", "yref": "y", "axref": "x", "ayref": "y"}
