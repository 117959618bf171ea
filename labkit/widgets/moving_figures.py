"""Figures of lesson 03: rates over size, page faults, and who waits for data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labkit.compute.device_model.moves import Move
from labkit.compute.device_model.unified import FAULT_S, Touch
from labkit.compute.pipeline import Fed
from labkit.hardware.catalog import gpu
from labkit.hardware.units import show_bytes
from labkit.widgets import theme
from labkit.widgets.figures import DASHES

_POWERS = range(0, 31, 5)
_BELOW = {"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom"}


def rates(moves: Sequence[Move], title: str) -> Any:
    """Bytes a second that one move of each size reaches; a ring where it is half of the most, at alpha times beta."""
    sizes = [2 ** (power / 2) for power in range(61)]
    traces = []
    for number, move in enumerate(moves):
        again = number >= len(theme.COLOURS)  # the same colours a second time, dotted
        traces += _rate(
            move, sizes, theme.COLOURS[number % len(theme.COLOURS)], "dot" if again else DASHES[move.how]
        )
    layout = {
        "xaxis": theme.axis("bytes in one move", **_powers_of_two()),
        "yaxis": theme.axis("bytes/s", type="log", exponentformat="SI", dtick=1),
        "legend": _BELOW,
        "margin": {"l": 64, "r": 24, "t": 56, "b": 60 + 13 * len(moves)},
    }
    return theme.figure(traces, layout, title, height=460 + 13 * len(moves))


def _rate(move: Move, sizes: Sequence[float], colour: str, dash: str) -> list[dict[str, Any]]:
    name = f"{move.name} ({move.how})"
    hover = f"%{{x:.3s}}B: %{{y:.3s}}B/s<br>{move.basis}<extra>{name}</extra>"
    line = {"color": colour, "width": 2, "dash": dash}
    curve = {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "legendgroup": name,
        "x": list(sizes),
        "y": [move.rate(size) for size in sizes],
        "line": line,
        "hovertemplate": hover,
    }
    half = {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "legendgroup": name,
        "showlegend": False,
        "x": [move.half_size],
        "y": [move.bytes_per_s / 2],
        "marker": {"symbol": "circle-open", "size": 11, "color": colour, "line": {"width": 2}},
        "hovertemplate": f"half of its rate at %{{x:.3s}}B<extra>{name}</extra>",
    }
    return [curve, half] if move.half_size >= 1 else [curve]


def _powers_of_two() -> dict[str, Any]:
    ticks = [2**power for power in _POWERS]
    return {"type": "log", "tickvals": ticks, "ticktext": [show_bytes(tick) for tick in ticks]}


def touches(costs: Mapping[str, Touch], title: str) -> Any:
    """A bar for each way of using unified memory: milliseconds of waiting for faults and of moving bytes, modelled."""
    names = list(costs)
    card = gpu(next(iter(costs.values())).on).name
    moving = [1e3 * (touch.seconds - _waiting(touch)) for touch in costs.values()]
    waiting = [1e3 * _waiting(touch) for touch in costs.values()]
    said = [f"{touch.faults:,} faults, {show_bytes(touch.bytes)} moved" for touch in costs.values()]
    traces = [
        _bar("moving the bytes", names, moving, theme.BLUE, said),
        _bar("waiting for faults", names, waiting, theme.RED, said),
    ]
    return _stacked(traces, f"milliseconds, modelled on {card}", title, len(names))


def _waiting(touch: Touch) -> float:
    return touch.faults * FAULT_S


def fed(passes: Sequence[Fed], title: str) -> Any:
    """A bar for each way of feeding: milliseconds in which the consumer works and waits, measured."""
    names = [f"{one.source}, {one.prefetch}" for one in passes]
    working = [1e3 * (one.seconds - one.waited_s) for one in passes]
    waiting = [1e3 * one.waited_s for one in passes]
    said = [repr(one.counts) for one in passes]
    traces = [
        _bar("the consumer works", names, working, theme.BLUE, said),
        _bar("the consumer waits", names, waiting, theme.RED, said),
    ]
    return _stacked(traces, "milliseconds, measured on this machine", title, len(names))


def _bar(
    name: str, rows: Sequence[str], values: Sequence[float], colour: str, said: Sequence[str]
) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": list(rows),
        "x": list(values),
        "text": list(said),
        "textposition": "none",
        "marker": {"color": colour},
        "hovertemplate": f"{name}: %{{x:.3~g}} ms<br>%{{text}}<extra>%{{y}}</extra>",
    }


def _stacked(traces: list[dict[str, Any]], axis: str, title: str, rows: int) -> Any:
    layout = {
        "barmode": "stack",
        "xaxis": theme.axis(axis),
        "yaxis": theme.axis("", autorange="reversed"),
        "legend": {**_BELOW, "traceorder": "normal"},
        "margin": {"l": 64, "r": 24, "t": 56, "b": 96},
    }
    return theme.figure(traces, layout, title, height=200 + 38 * rows)
