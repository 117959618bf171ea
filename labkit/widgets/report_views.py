"""Plotly figures of pasted reports. What they show was reported by a tool on some machine, never measured here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from labkit.hardware.diagnosis.bandwidth import Limit, limit
from labkit.hardware.diagnosis.case import Case
from labkit.hardware.diagnosis.finding import Reading
from labkit.hardware.reports.base import Report
from labkit.hardware.reports.nccl_tests import Measurement, NcclTests
from labkit.hardware.reports.nvlink import NVLinkStatus
from labkit.hardware.reports.p2p_test import P2PTest
from labkit.hardware.reports.topo import Topology
from labkit.widgets import theme

# near to far; the colours go from green to red, and every cell has its word as well
_LEVELS = ("X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS")
_COLOURS = (
    "rgba(128,128,128,0.25)",
    theme.GREEN,
    "#57b38a",
    theme.BLUE,
    theme.PURPLE,
    theme.ORANGE,
    theme.RED,
)


def figures(reading: Reading) -> tuple[Any, ...]:
    """A figure for every report of which one can be drawn, in the reports' order."""
    case = Case(reading.reports)
    return tuple(figure for report in reading.reports for figure in _of(report, case))


def _of(report: Report, case: Case) -> Iterator[Any]:
    if isinstance(report, Topology):
        yield topology(report)
    elif isinstance(report, NcclTests) and report.rows:
        yield bus_bandwidth(report, limit(report, case))
    elif isinstance(report, P2PTest) and (report.bandwidth() or report.bandwidth(enabled=False)):
        yield peer_bandwidth(report)
    elif isinstance(report, NVLinkStatus):
        yield nvlinks(report)


def provenance(tool: str) -> dict[str, Any]:
    """The line under a figure that says where its figures come from."""
    return {
        "text": f"reported by {tool}, not measured here",
        "xref": "paper",
        "yref": "paper",
        "x": 1,
        "y": 1.0,
        "xanchor": "right",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 11, "color": theme.INK},
    }


def topology(report: Topology) -> Any:
    """Heat map of the matrix: who reaches whom by NVLink, bridges, the host, or the other socket."""
    names = [_named(report, name) for name in report.devices]
    cells = [[report.link(one, other) for other in report.devices] for one in report.devices]
    trace = _heat(
        names,
        [[_level(cell) for cell in row] for row in cells],
        [[cell or "?" for cell in row] for row in cells],
    )
    steps = len(_LEVELS)
    scale = [[edge / steps, colour] for i, colour in enumerate(_COLOURS) for edge in (i, i + 1)]
    trace |= {
        "x": list(report.devices),
        "zmin": -0.5,
        "zmax": steps - 0.5,
        "colorscale": scale,
        "colorbar": {
            "tickvals": list(range(steps)),
            "ticktext": ["itself", "NVLink", *_LEVELS[2:]],
            "outlinewidth": 0,
        },
        "hovertemplate": "%{y} to %{x}: %{text}<extra></extra>",
    }
    return _square(trace, "Connections between devices", "nvidia-smi topo -m", len(names))


def _named(report: Topology, name: str) -> str:
    shown = report.nic_names.get(name)
    return f"{name} ({shown})" if shown else name


def _level(link: str | None) -> int | None:
    if link is None:
        return None
    short = "NV" if link.startswith("NV") else "SYS" if link == "SOC" else link
    return _LEVELS.index(short) if short in _LEVELS else None


def _heat(
    names: Sequence[str], values: Sequence[Sequence[Any]], texts: Sequence[Sequence[str]]
) -> dict[str, Any]:
    return {
        "type": "heatmap",
        "x": list(names),
        "y": list(names),
        "z": [list(row) for row in values],
        "text": [list(row) for row in texts],
        "texttemplate": "%{text}",
        "textfont": {"size": 11},
        "xgap": 2,
        "ygap": 2,
    }


def _square(trace: dict[str, Any], title: str, tool: str, count: int) -> Any:
    layout = {
        "xaxis": {**theme.axis("", side="bottom", showgrid=False), "type": "category"},
        "yaxis": {**theme.axis("", autorange="reversed", showgrid=False), "type": "category"},
        "annotations": [provenance(tool)],
    }
    return theme.figure([trace], layout, title, height=min(900, 220 + 34 * count))


def bus_bandwidth(report: NcclTests, bound: Limit | None = None) -> Any:
    """Bus bandwidth over message size, with the rate that the link can carry, where the link is known."""
    ways = (("out of place", theme.BLUE, "circle"), ("in place", theme.ORANGE, "diamond"))
    traces = []
    for (name, colour, symbol), pick in zip(ways, ("out_of_place", "in_place"), strict=True):
        points = [(row.size_bytes, way) for row in report.rows if (way := getattr(row, pick)) is not None]
        if points:
            traces.append(_curve(name, colour, symbol, points))
    if bound:
        traces.append(_bound(bound, [row.size_bytes for row in report.rows]))
    layout = {
        "xaxis": theme.axis("message, bytes", type="log", exponentformat="power", dtick=1),
        "yaxis": theme.axis("bus bandwidth, GB/s", rangemode="tozero"),
        "annotations": [provenance("nccl-tests")],
    }
    what = f"{report.collective or 'collective'} on {len(report.ranks) or 'an unknown number of'} GPUs"
    return theme.figure(traces, layout, f"Bus bandwidth: {what}", height=440)


def _curve(name: str, colour: str, symbol: str, points: Sequence[tuple[int, Measurement]]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": [size for size, _ in points],
        "y": [way.busbw_GBps for _, way in points],
        "customdata": [way.time_us for _, way in points],
        "line": {"color": colour, "width": 2},
        "marker": {"size": 7, "symbol": symbol},
        "hovertemplate": "%{x:,} bytes: %{y:.4g} GB/s, %{customdata:,} us<br>reported<extra>"
        + name
        + "</extra>",
    }


def _bound(bound: Limit, sizes: Sequence[int]) -> dict[str, Any]:
    source = "from the topology file" if bound.kind == "network" else "catalogue"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"limit: {bound.what}, {bound.GBps:g} GB/s one way ({source})",
        "x": [min(sizes), max(sizes)],
        "y": [bound.GBps, bound.GBps],
        "line": {"color": theme.GREY, "width": 2, "dash": "dash"},
        "hovertemplate": f"{bound.what}: {bound.GBps:g} GB/s one way<extra>{source}</extra>",
    }


def peer_bandwidth(report: P2PTest) -> Any:
    """Heat map of one-way bandwidth; a GPU's own memory, on the diagonal, is named but not coloured."""
    enabled = report.bandwidth() is not None
    matrix = report.bandwidth() or report.bandwidth(enabled=False) or ()
    names = [f"GPU {i}" for i in range(len(matrix))]
    values = [[None if i == j else value for j, value in enumerate(row)] for i, row in enumerate(matrix)]
    texts = [["?" if value is None else f"{value:.4g}" for value in row] for row in matrix]
    trace = _heat(names, values, texts)
    trace |= {
        "colorscale": [[0, theme.RED], [0.5, theme.ORANGE], [1, theme.GREEN]],
        "zmin": 0,
        "zmax": max((value for row in values for value in row if value is not None), default=1),
        "colorbar": {"title": {"text": "GB/s"}, "outlinewidth": 0},
        "hovertemplate": "%{y} to %{x}: %{text} GB/s<extra></extra>",
    }
    title = f"One-way bandwidth between GPUs, peer access {'on' if enabled else 'off'}"
    return _square(trace, title, "p2pBandwidthLatencyTest", len(names))


def nvlinks(report: NVLinkStatus) -> Any:
    """A row a GPU, a cell a link: its rate, or that it is inactive."""
    most = max(len(gpu.links) for gpu in report.gpus)
    names = [f"GPU {gpu.index}" for gpu in report.gpus]
    rates = [[port.GBps for port in gpu.links] for gpu in report.gpus]
    texts = [["off" if rate is None else f"{rate:g}" for rate in row] for row in rates]
    trace = _heat(names, [[0 if rate is None else 1 for rate in row] for row in rates], texts)
    trace |= {
        "x": [f"link {i}" for i in range(most)],
        "zmin": 0,
        "zmax": 1,
        "colorscale": [[0, theme.RED], [0.5, theme.RED], [0.5, theme.GREEN], [1, theme.GREEN]],
        "showscale": False,
        "hovertemplate": "%{y}, %{x}: %{text} GB/s one way<extra></extra>",
    }
    return _square(trace, "NVLinks, GB/s one way", "nvidia-smi nvlink -s", len(names))
