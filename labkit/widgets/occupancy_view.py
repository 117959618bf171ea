"""The occupancy explorer: threads a block, registers and shared memory against resident warps, and what limits them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labkit.compute import occupancy as calculator
from labkit.errors import LabkitError
from labkit.hardware.catalog import gpu as catalogued
from labkit.hardware.catalog import sm_resources
from labkit.hardware.records import GPU
from labkit.widgets import theme

BLOCKS = tuple(range(32, 1025, 32))
SHARED_STEPS = 25
REGISTERS = tuple(range(16, 256, 8))
_LIMITS = {
    "threads": theme.BLUE,
    "blocks": theme.GREEN,
    "shared memory": theme.ORANGE,
    "registers": theme.PURPLE,
    "does not fit": theme.GREY,
}
Point = tuple[float, float, str, str]  # x, occupancy in per cent, what limits it, hover text


def occupancy(
    threads_per_block: int = 256, shared_bytes: int = 0, registers: int = 32, gpu: str | GPU = "A100"
) -> Any:
    """Three panels around one launch: each moves one of its resources and leaves the other two as they are.

    A star marks the launch itself; colours say what limits each point. By calculation, for a card of the catalogue.

    Parameters
    ----------
    threads_per_block : int
        1 to 1024.
    shared_bytes : int
        Shared memory of a block.
    registers : int
        Registers a thread, 1 to 255; ``kernel.get_regs_per_thread()`` tells on a GPU.

    Raises
    ------
    LabkitError
        For an unknown card, and a launch that no multiprocessor of it can hold.
    """
    if not isinstance(registers, int) or not 1 <= registers <= 255:
        raise LabkitError(f"A thread has 1 to 255 registers, not {registers!r}.")
    here = calculator.occupancy(threads_per_block, shared_bytes, registers, gpu)
    return draw(here, sweeps(here))


def sweeps(here: calculator.Occupancy) -> tuple[list[Point], list[Point], list[Point]]:
    """Occupancy over threads a block, over registers, over shared memory (KiB), the rest as in ``here``."""
    limit = sm_resources(catalogued(here.gpu)).shared_per_block_KiB
    sizes = sorted({round(limit * k / SHARED_STEPS) for k in range(SHARED_STEPS + 1)})
    threads, shared, registers = here.threads_per_block, here.shared_bytes, here.registers
    return (
        [_point(n, n, shared, registers, here.gpu, f"{n} threads a block") for n in BLOCKS],
        [_point(n, threads, shared, n, here.gpu, f"{n} registers a thread") for n in REGISTERS],
        [_point(k, threads, k * 1024, registers, here.gpu, f"{k} KiB a block") for k in sizes],
    )


def _point(x: float, threads: int, shared: int, registers: int | None, gpu: str, words: str) -> Point:
    try:
        found = calculator.occupancy(threads, shared, registers, gpu)
    except LabkitError:
        return x, 0.0, "does not fit", f"{words}: no block fits"
    text = f"{words}: {found.blocks} blocks, {found.warps} of {found.max_warps} warps, limited by {found.limited_by}"
    return x, 100 * found.fraction, found.limited_by, text


def draw(here: calculator.Occupancy, panels: Sequence[list[Point]]) -> Any:
    """The figure of three sweeps around one launch."""
    own = (here.threads_per_block, here.registers or 0, here.shared_bytes / 1024)
    traces = [trace for k, points in enumerate(panels) for trace in _panel(k, points)]
    traces += [_star(k, x, 100 * here.fraction) for k, x in enumerate(own)]
    layout = {
        "xaxis": theme.axis("threads a block", domain=[0, 0.3]),
        "xaxis2": theme.axis("registers a thread", domain=[0.36, 0.65], anchor="y2"),
        "xaxis3": theme.axis("shared KiB a block", domain=[0.71, 1], anchor="y3"),
        "yaxis": theme.axis("resident warps, %", range=[0, 106]),
        "yaxis2": theme.axis("", anchor="x2", matches="y", showticklabels=False),
        "yaxis3": theme.axis("", anchor="x3", matches="y", showticklabels=False),
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": -0.28,
            "yanchor": "top",
            "title": {"text": "limited by "},
        },
    }
    title = f"Occupancy {here.fraction:.0%} on {here.gpu} (modelled), limited by {here.limited_by}"
    return theme.figure(traces, layout, title, height=400)


def _panel(number: int, points: list[Point]) -> list[dict[str, Any]]:
    """The points of one panel, a trace for each limit, so that the legend names the colours."""
    suffix = str(number + 1) if number else ""
    traces = []
    for limit, colour in _LIMITS.items():
        x: list[float | None] = [point[0] for point in points if point[2] == limit]
        y: list[float | None] = [point[1] for point in points if point[2] == limit]
        trace = {
            "type": "scatter",
            "mode": "markers",
            "name": limit,
            "legendgroup": limit,
            "showlegend": number == 0,
            "x": x or [None],  # a trace without points would have no place in the legend
            "y": y or [None],
            "text": [point[3] for point in points if point[2] == limit],
            "xaxis": "x" + suffix,
            "yaxis": "y" + suffix,
            "marker": {"size": 7, "color": colour},
            "hovertemplate": "%{text}: %{y:.0f} %<extra></extra>",
        }
        traces.append(trace)
    return traces


def _star(number: int, x: float, per_cent: float) -> dict[str, Any]:
    suffix = str(number + 1) if number else ""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "this launch",
        "legendgroup": "here",
        "showlegend": number == 0,
        "x": [x],
        "y": [per_cent],
        "xaxis": "x" + suffix,
        "yaxis": "y" + suffix,
        "marker": {"symbol": "star", "size": 15, "color": theme.RED},
        "hovertemplate": "this launch: %{y:.0f} %<extra></extra>",
    }
