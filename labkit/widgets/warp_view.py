"""One warp's memory instructions, drawn: lanes above, the sectors or banks they want below, a slider to step through.

Nothing is counted here: :mod:`labkit.compute.emulator.warp_trace` says which lane wants which bytes.
"""

from __future__ import annotations

from typing import Any

from labkit.compute.emulator.traffic import BANK_BYTES, BANKS, SECTOR_BYTES
from labkit.compute.emulator.warp_trace import WarpAccess, WarpTrace, trace
from labkit.widgets import theme

LANES = 32
WIDEST = 8.0  # a sector is drawn at most this wide, so that four of them span the warp
GAP, SEAM = 0.4, 0.05  # between sectors that are not neighbours, and that are: shares of a sector
SECTOR_HEIGHT = 0.4
ROW_HEIGHT = 0.16
_INVISIBLE = "rgba(0,0,0,0)"
_Polygon = tuple[float, float, float, float]  # left, right, top, bottom


def warp_view(
    launch: Any,
    *arguments: Any,
    line: int | str | None = None,
    block: Any = 0,
    warp: int = 0,
) -> Any:
    """Step through the memory instructions of one warp: ``labkit.warp_view(kernel[grid, block], a, out)``.

    Parameters
    ----------
    line : int or str, optional
        Only this line: its number in the cell, or words in it such as ``"tile[tx, k]"``.
    block, warp
        Which warp: a block (a number, or ``(x, y)``) and a warp within it.

    Returns
    -------
    plotly Figure
        Emulated, exact. Its slider also works in exported HTML.
    """
    return draw(trace(launch, *arguments, line=line, block=block, warp=warp))


def draw(seen: WarpTrace) -> Any:
    """The figure of a trace."""
    frames = [_traces(one) for one in seen.accesses]
    names = [f"{n} of {len(frames)}" for n in range(1, len(frames) + 1)]
    hidden = {"visible": False, "fixedrange": True}
    layout = {
        "xaxis": {**hidden, "range": [-0.6, LANES + 0.6]},
        "yaxis": {**hidden, "range": [-1.25, 1.3]},
        "showlegend": False,
        "sliders": [_slider(names, [one.headline for one in seen.accesses])],
        "margin": {"l": 8, "r": 8, "t": 48, "b": 96},
    }
    title = f"{seen.kernel}: block {seen.block}, warp {seen.warp} (emulated)"
    figure = theme.figure(frames[0], layout, title, height=430)
    figure.frames = [{"name": n, "data": data} for n, data in zip(names, frames, strict=True)]
    return figure


def _traces(access: WarpAccess) -> list[dict[str, Any]]:
    """The same five traces for every instruction, so that a frame replaces the one before."""
    cells, wanted, targets, labels = _banks(access) if access.space == "shared" else _sectors(access)
    return [
        _polygons(cells, "rgba(128,132,138,0.10)", theme.GREY),
        _polygons(wanted, theme.ORANGE, theme.ORANGE),
        _wires(access, targets),
        _lanes(access),
        _labels(labels),
    ]


def _sectors(
    access: WarpAccess,
) -> tuple[list[_Polygon], list[_Polygon], list[float], list[tuple[float, str]]]:
    """Touched sectors from left to right, wanted bytes in them, where each lane points, and names of sectors."""
    apart = [
        1 + (GAP if b - a > 1 else SEAM) for a, b in zip(access.sectors, access.sectors[1:], strict=False)
    ]
    width = min(WIDEST, LANES / (sum(apart) + 1))
    left = [0.0]
    for distance in apart:
        left.append(left[-1] + width * distance)
    place = dict(zip(access.sectors, left, strict=True))
    wanted, targets = [], []
    for address in access.addresses:
        start = address + access.origin
        x = place[start // SECTOR_BYTES] + width * (start % SECTOR_BYTES) / SECTOR_BYTES
        wide = width * access.item_bytes / SECTOR_BYTES
        wanted.append((x + 0.06 * wide, x + 0.94 * wide, -0.04, 0.04 - SECTOR_HEIGHT))
        targets.append(x + wide / 2)
    cells = [(x, x + width, 0.0, -SECTOR_HEIGHT) for x in left]
    first = [0, *(k + 1 for k, distance in enumerate(apart) if distance == 1 + GAP)]
    every = -(-len(first) // 5)
    labels = [(left[k], f"byte {access.sectors[k] * SECTOR_BYTES - access.origin:,}") for k in first[::every]]
    return cells, sorted(set(wanted)), targets, labels


def _banks(access: WarpAccess) -> tuple[list[_Polygon], list[_Polygon], list[float], list[tuple[float, str]]]:
    """The 32 banks as columns, a row for each pass, and the words that each pass serves."""
    height = min(ROW_HEIGHT, 1 / access.passes)
    wanted, row = [], 0
    for part in access.banks:
        for bank, words in part.items():
            for k in range(len(words)):
                top = -(row + k) * height
                wanted.append((bank + 0.08, bank + 0.92, top, top - 0.88 * height))
        row += max(map(len, part.values()))
    cells = [(float(b), b + 1.0, 0.0, -height * access.passes) for b in range(BANKS)]
    targets = [address // BANK_BYTES % BANKS + 0.5 for address in access.addresses]
    return cells, wanted, targets, [(float(b), f"bank {b}") for b in range(0, BANKS, 8)]


def _polygons(boxes: list[_Polygon], fill: str, line: str) -> dict[str, Any]:
    x: list[float | None] = []
    y: list[float | None] = []
    for left, right, top, bottom in boxes:
        x += [left, right, right, left, left, None]
        y += [top, top, bottom, bottom, top, None]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "fill": "toself",
        "fillcolor": fill,
        "line": {"color": line, "width": 1},
        "hoverinfo": "skip",
    }


def _wires(access: WarpAccess, targets: list[float]) -> dict[str, Any]:
    x: list[float | None] = []
    y: list[float | None] = []
    for lane, target in zip(access.lanes, targets, strict=True):
        x += [lane + 0.5, target, None]
        y += [0.9, 0.02, None]
    line = {"color": theme.BLUE, "width": 1.2}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": line, "hoverinfo": "skip"}


def _lanes(access: WarpAccess) -> dict[str, Any]:
    wants = dict(zip(access.lanes, access.addresses, strict=True))
    hover = [
        f"lane {k}: {f'byte {wants[k]:,} of {access.array}' if k in wants else 'not active'}"
        for k in range(LANES)
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [k + 0.5 for k in range(LANES)],
        "y": [1.0] * LANES,
        "text": hover,
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {
            "symbol": "square",
            "size": 13,
            "color": [theme.BLUE if k in wants else "rgba(128,132,138,0.3)" for k in range(LANES)],
        },
    }


def _labels(labels: list[tuple[float, str]]) -> dict[str, Any]:
    """Names under the memory, and what the squares above are."""
    named = [*((x, -1.16, text) for x, text in labels), (0.0, 1.22, "lane 0"), (29.0, 1.22, "lane 31")]
    return {
        "type": "scatter",
        "mode": "text",
        "x": [x for x, _, _ in named],
        "y": [y for _, y, _ in named],
        "text": [text for _, _, text in named],
        "textposition": "middle right",
        "textfont": {"size": 12, "color": theme.INK},
        "hoverinfo": "skip",
    }


def _slider(names: list[str], headlines: list[str]) -> dict[str, Any]:
    jump = {"frame": {"duration": 0, "redraw": True}, "mode": "immediate", "transition": {"duration": 0}}
    steps = [
        {"label": f"{name}, {headline}", "method": "animate", "args": [[name], jump]}
        for name, headline in zip(names, headlines, strict=True)
    ]
    return {
        "steps": steps,
        "x": 0.02,
        "len": 0.96,
        "y": 0,
        "pad": {"t": 34},
        "font": {"size": 1, "color": _INVISIBLE},
        "currentvalue": {"xanchor": "left", "font": {"size": 13, "color": theme.INK}, "offset": 8},
        "bgcolor": theme.GREY,
        "activebgcolor": theme.BLUE,
        "bordercolor": theme.GREY,
        "ticklen": 4,
        "tickcolor": theme.GRID,
    }
