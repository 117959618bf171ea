"""A collective, step by step: a Plotly animation that also plays in exported HTML."""

from __future__ import annotations

from typing import Any

from labkit.network.rehearsal import Message, Rehearsal
from labkit.widgets import theme

_PLAIN = {"showgrid": False, "zeroline": False}
# Opaque and light, so that dark text can be read on white and on black pages.
_SCALE = [[0.0, "#eceff2"], [0.5, "#7fb4df"], [1.0, "#3fb892"]]
_TEXT = {"color": "#14171a"}


def collective_steps(rehearsal: Rehearsal, milliseconds: int = 900) -> Any:
    """A column a rank, a row an element, an arrow a message; cells list whose contributions they hold.

    Parameters
    ----------
    rehearsal : Rehearsal
        From `labkit.network.rehearsal.rehearse`: the order of messages, modelled; no times.
    milliseconds : int
        How long a step is shown when it plays.
    """
    frames = [_frame(rehearsal, step) for step in range(rehearsal.steps + 1)]
    titles = [f"step {step + 1} of {rehearsal.steps}" for step in range(rehearsal.steps)] + ["result"]
    layout = {
        "xaxis": theme.axis("rank", tickvals=list(range(rehearsal.ranks)), side="top", **_PLAIN),
        "yaxis": theme.axis("element", autorange="reversed", dtick=1, **_PLAIN),
        "showlegend": False,
        "updatemenus": [_buttons(milliseconds)],
        "sliders": [_slider(titles)],
        "margin": {"l": 64, "r": 24, "t": 96, "b": 110},
    }
    height = 240 + 44 * max(2, len(rehearsal.states[0][0]))
    title = f"{rehearsal.name}, {rehearsal.ranks} ranks: order of messages (modelled)"
    figure = theme.figure(frames[0], layout, title, height)
    figure.frames = [{"name": name, "data": data} for name, data in zip(titles, frames, strict=True)]
    return figure


def _frame(rehearsal: Rehearsal, step: int) -> list[dict[str, Any]]:
    """Always two traces, so that every frame replaces the one before."""
    now = [one for one in rehearsal.messages if one.step == step]
    return [_cells(rehearsal, step), _arrows(now)]


def _cells(rehearsal: Rehearsal, step: int) -> dict[str, Any]:
    columns = rehearsal.states[step]
    rows = list(zip(*columns, strict=True))
    return {
        "type": "heatmap",
        "z": [[len(cell) for cell in row] for row in rows],
        "text": [[_label(cell, rehearsal.ranks) for cell in row] for row in rows],
        "texttemplate": "%{text}",
        "textfont": _TEXT,
        "zmin": 0,
        "zmax": rehearsal.ranks,
        "colorscale": _SCALE,
        "showscale": False,
        "xgap": 6,
        "ygap": 3,
        "hovertemplate": "rank %{x}, element %{y}: contributions of %{text}<extra></extra>",
    }


def _label(cell: tuple[int, ...], ranks: int) -> str:
    if len(cell) == ranks > 3:
        return "all"
    return "+".join(map(str, cell)) if len(cell) <= 4 else f"{len(cell)} ranks"


def _arrows(messages: list[Message]) -> dict[str, Any]:
    """A line from each sender's cells to the receiver's, with a head at its end; None lifts the pen."""
    x: list[float | None] = []
    y: list[float | None] = []
    drawn: list[tuple[float, int, int]] = []
    for one in messages:
        height = _height(one, drawn)
        drawn.append((height, min(one.source, one.to), max(one.source, one.to)))
        x += [one.source, one.to, None]
        y += [height, height, None]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": x,
        "y": y,
        "line": {"color": theme.ORANGE, "width": 2.5},
        "marker": {"symbol": "arrow", "angleref": "previous", "size": 14, "color": theme.ORANGE},
        "hoverinfo": "skip",
    }


def _height(one: Message, drawn: list[tuple[float, int, int]]) -> float:
    """Where the arrow goes: two ranks that swap, and arrows on one stretch, do not hide each other."""
    way = 1 if one.to > one.source else -1
    height = (one.start + one.stop - 1) / 2 + 0.18 * way
    left, right = sorted((one.source, one.to))
    while any(abs(y - height) < 0.05 and left < far and near < right for y, near, far in drawn):
        height += 0.12 * way
    return height


def _buttons(milliseconds: int) -> dict[str, Any]:
    play = {"frame": {"duration": milliseconds, "redraw": True}, "transition": {"duration": 0}}
    stop = {"frame": {"duration": 0, "redraw": True}, "mode": "immediate"}
    return {
        "type": "buttons",
        "direction": "left",
        "x": 0,
        "y": -0.02,
        "xanchor": "left",
        "yanchor": "top",
        "buttons": [
            {"label": "Play", "method": "animate", "args": [None, {**play, "fromcurrent": True}]},
            {"label": "Pause", "method": "animate", "args": [[None], stop]},
        ],
    }


def _slider(titles: list[str]) -> dict[str, Any]:
    jump = {"frame": {"duration": 0, "redraw": True}, "mode": "immediate", "transition": {"duration": 0}}
    steps = [{"label": title, "method": "animate", "args": [[title], jump]} for title in titles]
    return {
        "steps": steps,
        "x": 0.24,
        "len": 0.76,
        "y": 0,
        "pad": {"t": 8},
        "currentvalue": {"visible": False},
    }
