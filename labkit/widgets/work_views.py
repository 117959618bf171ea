"""Who works when: a split of work, and the schedule of a pipeline, a row a worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labkit.hardware.units import show_time
from labkit.network.peers import PeerMatrix
from labkit.network.splitting import Piece, Split
from labkit.network.training.schedules import Schedule
from labkit.widgets import theme


def split_view(split: Split) -> Any:
    """Pieces of work over time; what is empty at the end of a row is waiting."""
    bars = [(one.worker, one.start, one.end, _items(one)) for one in split.pieces]
    names = [f"worker {worker}" for worker in range(split.workers)]
    took = f"{show_time(split.seconds)}, imbalance {split.imbalance:.2f}"
    layout = _layout(names, f"seconds, {split.how}")
    traces = [_bars(bars, "items", theme.BLUE, names)]
    return theme.figure(traces, layout, f"{split.policy}: {took} ({split.how})", 200 + 40 * split.workers)


def _items(piece: Piece) -> str:
    """The first item, and the last one where there are several."""
    return str(piece.first) if piece.last - piece.first == 1 else f"{piece.first} to {piece.last - 1}"


def balance_view(splits: Mapping[str, Split]) -> Any:
    """A bar for each worker of each split: how long it worked and how long it waited for the last one."""
    names = [f"{name}, worker {worker}" for name, split in splits.items() for worker in range(split.workers)]
    busy = [split.busy(worker) for split in splits.values() for worker in range(split.workers)]
    whole = [split.seconds for split in splits.values() for _ in range(split.workers)]
    waits = [max(0.0, end - work) for end, work in zip(whole, busy, strict=True)]
    items = [f"{split.items(worker)} items" for split in splits.values() for worker in range(split.workers)]
    works = _lengths(names, busy, "works", theme.BLUE) | {"text": items, "insidetextanchor": "start"}
    traces = [works, _lengths(names, waits, "waits", theme.ORANGE)]
    hows = sorted({split.how for split in splits.values()})
    layout = {**_layout(names, f"seconds, {' and '.join(hows)}"), "barmode": "stack"}
    layout["legend"] = {**layout["legend"], "traceorder": "normal"}
    said = ", ".join(f"{name} {split.imbalance:.2f}" for name, split in splits.items())
    return theme.figure(traces, layout, f"Imbalance: {said} (1 is even)", 190 + 30 * len(names))


def scaling_view(
    predicted: Mapping[str, Mapping[int, float]],
    measured: Mapping[str, Mapping[int, float]],
    devices: float,
    what: str = "cores here",
) -> Any:
    """Seconds over the number of workers: lines as predicted, marks as measured; and how many devices there are.

    Parameters
    ----------
    predicted, measured : mapping
        What -> workers -> seconds. The same name has the same colour in both.
    """
    names = list(dict.fromkeys([*predicted, *measured]))
    traces = []
    for name, colour in zip(names, theme.colours(), strict=False):
        for found, how in ((predicted, "modelled"), (measured, "measured")):
            if name in found:
                traces.append(_curve(found[name], f"{name}, {how}", colour, how))
    counts = sorted({count for found in (predicted, measured) for line in found.values() for count in line})
    most = max(
        second for found in (predicted, measured) for line in found.values() for second in line.values()
    )
    traces.append(
        {
            "type": "scatter",
            "mode": "lines",
            "name": f"{devices:g} {what}",
            "x": [devices, devices],
            "y": [0, 1.05 * most],
            "line": {"color": theme.GREY, "dash": "dot", "width": 1},
            "hoverinfo": "skip",
        }
    )
    layout = {
        "xaxis": theme.axis("workers", tickvals=counts, rangemode="tozero"),
        "yaxis": theme.axis("seconds", rangemode="tozero"),
        "legend": {"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom"},
        "margin": {"l": 64, "r": 24, "t": 56, "b": 190},  # room for a line each, where the page is narrow
    }
    return theme.figure(traces, layout, "Time over workers: predicted (lines), measured (marks)", 520)


def _curve(line: Mapping[int, float], name: str, colour: str, how: str) -> dict[str, Any]:
    look = {"line": {"color": colour, "dash": "dash", "width": 2}} if how == "modelled" else {}
    return {
        "type": "scatter",
        "mode": "lines" if how == "modelled" else "markers",
        "name": name,
        "x": list(line),
        "y": list(line.values()),
        "marker": {"size": 10, "color": colour, "line": {"width": 1, "color": "white"}},
        "hovertemplate": "%{x} workers: %{y:.3~g} s<extra>" + name + "</extra>",
        **look,
    }


def _lengths(names: list[str], seconds: list[float], name: str, colour: str) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": names,
        "x": seconds,
        "width": 0.7,
        "textposition": "inside",
        "constraintext": "inside",
        "marker": {"color": colour},
        "hovertemplate": f"%{{y}} {name} %{{x:.3~g}} s<extra></extra>",
    }


def pipeline_view(schedule: Schedule, forward: float = 1.0, backward: float = 2.0) -> Any:
    """Forward and backward of every micro-batch on every stage; the gaps are the bubble. Modelled."""
    placed = schedule.placed(forward, backward)
    names = [f"stage {stage}" for stage in range(schedule.stages)]
    traces = []
    for what, colour in (("forward", theme.BLUE), ("backward", theme.ORANGE)):
        chosen = [one for one in placed if one.step.what == what]
        bars = [(one.stage, one.start, one.end, str(one.step.micro_batch)) for one in chosen]
        traces.append(_bars(bars, what, colour, names))
    idle = f"bubble {schedule.bubble(forward, backward):.0%}"
    title = f"{schedule.name}: {idle}, stage 0 keeps {schedule.kept(0)} (modelled)"
    layout = _layout(names, "time of one micro-batch, modelled")
    return theme.figure(traces, layout, title, 200 + 40 * schedule.stages)


def peer_view(peers: PeerMatrix) -> Any:
    """The bandwidth matrix as a heat map; latencies on hover."""
    rates = [[None if rate is None else rate / 1e9 for rate in row] for row in peers.bandwidth]
    waits = [["" if wait is None else f"{wait * 1e6:.3g} us" for wait in row] for row in peers.latency]
    trace = {
        "type": "heatmap",
        "z": rates,
        "x": list(peers.names),
        "y": list(peers.names),
        "customdata": waits,
        "texttemplate": "%{z:.3g}",
        "colorscale": [[0, "rgba(63,143,210,0.15)"], [1, theme.BLUE]],
        "zmin": 0,
        "zmax": max((rate for row in rates for rate in row if rate), default=1),
        "xgap": 2,
        "ygap": 2,
        "colorbar": {"title": {"text": "GB/s"}},
        "hovertemplate": "%{y} to %{x}: %{z:.3g} GB/s, %{customdata}<extra></extra>",
    }
    layout = {
        "xaxis": theme.axis("to", showgrid=False),
        "yaxis": theme.axis("from", autorange="reversed", showgrid=False),
    }
    return theme.figure([trace], layout, f"GB/s one way ({peers.label})", 260 + 40 * len(peers.names))


def _layout(names: list[str], time: str) -> dict[str, Any]:
    return {
        "barmode": "overlay",
        "xaxis": theme.axis(time, rangemode="tozero"),
        "yaxis": theme.axis("", categoryorder="array", categoryarray=names[::-1], showgrid=False),
        "legend": {"orientation": "h", "x": 0, "y": -0.3, "yanchor": "top"},
    }


def _bars(
    bars: list[tuple[int, float, float, str]], name: str, colour: str, names: list[str]
) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": [names[row] for row, *_ in bars],
        "base": [start for _, start, *_ in bars],
        "x": [end - start for _, start, end, _ in bars],
        "text": [text for *_, text in bars],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "constraintext": "inside",
        "width": 0.7,
        "marker": {"color": colour, "line": {"width": 1, "color": "rgba(255,255,255,0.6)"}},
        "hovertemplate": f"{name} %{{text}}: %{{x:.3~g}} from %{{base:.3~g}}<extra></extra>",
    }
