"""A recording as a Plotly figure, for study after the run."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabkitError
from labkit.telemetry.recording import Recording, Span
from labkit.telemetry.series import Series
from labkit.widgets import theme

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MAX_DRAWN_SPANS = 200
LABEL_ROWS, LABEL_ROW = 3, 14  # rows of names above the spans, and their height in pixels
CHARACTER = 0.013  # width of a letter, as a share of the time axis of a figure in a notebook
# As in the live plot; several of a group differ in lightness, for readers who see fewer colours.
COLOURS: dict[str, tuple[str, ...]] = {
    "cpu": ("#0072B2",),
    "cores": ("#0072B2",),
    "memory": ("#CC79A7",),
    "gpu": ("#009E73", "#9BBF2F", "#0B5C6B", "#4FAE8B"),
    "gpu memory": ("#56B4E9", "#6D6FB3", "#2B8A9D", "#7A8FB0"),
    "gpu power": ("#E69F00", "#8A5A00", "#F0C050", "#7A6A00"),
    "gpu temperature": ("#A3323B", "#E07A7A", "#B0603A", "#7D3C50"),
    "emulator": ("#D55E00",),
    "own": ("#4477AA", "#EE6677", "#228833", "#AA3377", "#66CCEE", "#CCBB44"),
}


def recording_figure(recording: Recording, everything: bool = False) -> Figure:
    """Shares in per cent in the upper panel, one panel for each other unit below, spans shaded.

    Series that the live plot hides until somebody asks for them are left out, unless ``everything`` is asked for.

    Raises
    ------
    LabkitError
        When nothing was recorded yet, or Plotly is not installed.
    """
    if not len(recording):
        raise LabkitError("Nothing is recorded yet: the first sample comes after one sampling interval.")
    try:
        from plotly.subplots import make_subplots
    except ImportError as error:
        raise LabkitError("figure() needs Plotly: pip install 'gpu-labkit[lab]'.") from error
    times, values = recording.samples()
    panels = _panels(recording.series[: len(values)], everything)
    heights = [2.0 if number == 0 else 1.0 for number in range(len(panels))]
    figure = make_subplots(
        rows=len(panels), cols=1, shared_xaxes=True, vertical_spacing=0.05, row_heights=heights
    )
    ranks: set[str] = set()  # that have their entry in the legend
    for row, (title, members) in enumerate(panels, start=1):
        for number, series in members:
            place = sum(one.group == series.group for one in recording.series[:number])
            named = not _is_of_a_rank(series) or series.device not in ranks
            ranks.add(series.device)
            figure.add_trace(
                _trace(series, place, named, *_points(series, times, values[number], recording.interval)),
                row=row,
                col=1,
            )
        figure.update_yaxes(title_text=title, rangemode="tozero", row=row, col=1)
    figure.update_yaxes(range=[0, 102], row=1, col=1)
    _draw_spans(figure, recording.spans, float(times[-1]), recording.interval)
    figure.update_xaxes(title_text="seconds since the monitor started", row=len(panels), col=1)
    look = {**theme.common(_heading(recording)), "hovermode": "x unified"}
    aside = {"orientation": "v", "x": 1.01, "y": 1, "yanchor": "top"}
    if recording.machine:
        look["title"] = {**look["title"], "subtitle": _origin(recording)}
    look["margin"] = {**look["margin"], "t": 92 + LABEL_ROW * (LABEL_ROWS - 1)}
    figure.update_layout({**look, "height": 340 + 150 * (len(panels) - 1), "legend": aside})
    quiet = {"gridcolor": theme.GRID, "zerolinecolor": theme.GRID}
    figure.update_xaxes(quiet)
    figure.update_yaxes(quiet)
    return theme.for_notebook(figure)


def _panels(series: tuple[Series, ...], everything: bool) -> list[tuple[str, list[tuple[int, Series]]]]:
    """``(axis title, [(row of the values, series), ...])``: shares of devices first, then unit by unit."""
    panels: dict[tuple[str, bool], list[tuple[int, Series]]] = {("%", False): []}
    for number, one in enumerate(series):
        if one.hidden and not everything:
            continue
        own = one.group == "own"
        kind = one.unit or (
            one.name if own else ""
        )  # numbers of one's own without a unit are of unlike kinds
        panels.setdefault((kind, own), []).append((number, one))
    return [(_title(kind, members), members) for (kind, _), members in panels.items()]


def _title(unit: str, members: list[tuple[int, Series]]) -> str:
    """The unit; of a panel that shows one thing of all ranks, what it is as well."""
    if not unit:
        return members[0][1].name
    series = [one for _, one in members]
    ranks = bool(series) and all(_is_of_a_rank(one) and one.group == series[0].group for one in series)
    what = series[0].name.replace(series[0].device, "").strip() if ranks else ""
    return f"{what}<br>{unit}" if what else unit


def _is_of_a_rank(series: Series) -> bool:
    """A rank's lines have its colour in all panels, and one entry in the legend switches them all."""
    return series.group.startswith("rank ") and series.device.startswith("Rank ")


def _heading(recording: Recording) -> str:
    spans = len(recording.spans)
    heading = "What the monitor recorded"
    if spans > MAX_DRAWN_SPANS:
        heading = f"{heading} (the last {MAX_DRAWN_SPANS} of {spans} spans)"
    return heading


def _origin(recording: Recording) -> dict[str, Any]:
    """On what it was measured, or from what it was modelled: it stands on the plot itself."""
    return {"text": html.escape(recording.machine), "font": {"size": 12}}


def _points(
    series: Series, times: NDArray[np.float64], values: NDArray[np.float32], interval: float
) -> tuple[list[float], list[float | None]]:
    """What is drawn of a series: of an own metric, which comes in its own rhythm, the values alone, with a break
    where the next one is much later than usual; else every sample, gaps included."""
    if series.group != "own":
        return list(times), [None if np.isnan(value) else float(value) for value in values]
    at, known = times[~np.isnan(values)], values[~np.isnan(values)]
    apart = np.diff(at)
    longest = max(4 * interval, 3 * float(np.median(apart)) if len(apart) else 0.0)
    breaks = np.flatnonzero(apart > longest) + 1
    return list(np.insert(at, breaks, at[breaks - 1])), [
        None if np.isnan(value) else float(value) for value in np.insert(known, breaks, np.nan)
    ]


def _trace(series: Series, place: int, named: bool, times: list[float], values: list[float | None]) -> Any:
    from plotly.graph_objects import Scatter

    own, rank = series.group == "own", _is_of_a_rank(series)
    return Scatter(
        x=times,
        y=values,
        name=f"{series.device}, {series.provenance}" if rank else series.label,
        legendgroup=series.device if rank else series.group if series.group == "cores" else series.key,
        showlegend=named and (series.group != "cores" or place == 0),  # one entry switches all cores
        mode="lines+markers" if own else "lines",
        marker={"size": 4},
        line=_line(series, place),
        opacity=0.45 if series.group == "cores" else 1.0,
        hovertemplate=f"{series.name if rank else ''} %{{y:.4g}} {series.unit}".strip(),
    )


def _line(series: Series, place: int) -> dict[str, Any]:
    colours = COLOURS.get(series.group, COLOURS["own"])
    colour = colours[place % len(colours)]
    width = 0.8 if series.group == "cores" else 2.0
    return {"color": colour, "width": width, "dash": "solid" if series.provenance == "measured" else "dash"}


def _draw_spans(figure: Figure, spans: tuple[Span, ...], last: float, interval: float) -> None:
    """Regions, and lines for spans shorter than one interval; the newest ones when there are very many.

    Shapes and labels are set all at once: added one by one, Plotly goes through all earlier ones each time.
    """
    drawn = spans[-MAX_DRAWN_SPANS:]
    shapes = [_span_shape(span, last, interval) for span in drawn]
    figure.update_layout(shapes=shapes, annotations=_span_labels(drawn, last))


def _span_shape(span: Span, last: float, interval: float) -> dict[str, Any]:
    end = last if span.end is None else span.end
    place = {"xref": "x", "yref": "paper", "y0": 0, "y1": 1, "x0": span.start}
    if end - span.start < interval:
        return {**place, "type": "line", "x1": span.start, "line": {"color": "#888", "width": 1}}
    return {**place, "type": "rect", "x1": end, "fillcolor": "#888", "opacity": 0.15, "line": {"width": 0}}


def _span_labels(spans: tuple[Span, ...], last: float) -> list[dict[str, Any]]:
    """Names above their spans, in the lowest of three rows that has room; where none has, the name is left out."""
    ends = [-np.inf] * LABEL_ROWS
    labels = []
    for span in spans:
        row = next((row for row, end in enumerate(ends) if end <= span.start), None)
        if row is None:
            continue
        ends[row] = span.start + (len(span.name) + 1) * CHARACTER * last
        place = {"xref": "x", "yref": "paper", "x": span.start, "y": 1, "yshift": LABEL_ROW * row}
        look = {"xanchor": "left", "yanchor": "bottom", "showarrow": False, "font": {"size": 11}}
        labels.append({**place, **look, "text": html.escape(span.name)})
    return labels
