"""The timeline of ranks as a Gantt chart: what each did when."""

from __future__ import annotations

from typing import Any

from labkit.network.timeline import Timeline
from labkit.widgets import theme

COLOURS = {"compute": theme.BLUE, "communicate": theme.ORANGE, "wait": theme.RED}
_IN_FLIGHT = "in flight"
_MAX_BARS = 2000


def gantt(timeline: Timeline) -> Any:
    """A row a rank, coloured by state, and above it a thin row of the communication that is under way.

    Very short stretches are left out of the drawing when there are more than some thousand; the timeline
    itself keeps them.
    """
    share = timeline.overlapped
    hidden = "no communication" if share is None else f"{share:.0%} of communication overlapped"
    traces = [_states(timeline, state) for state in COLOURS] + [_flights(timeline)]
    layout = {
        "barmode": "overlay",
        "xaxis": theme.axis("milliseconds", rangemode="tozero"),
        "yaxis": theme.axis(
            "",
            tickvals=list(range(timeline.ranks)),
            ticktext=[f"rank {rank}" for rank in range(timeline.ranks)],
            autorange="reversed",
            showgrid=False,
        ),
        "legend": {"orientation": "h", "x": 0, "y": -0.22, "yanchor": "top"},
    }
    title = f"{timeline.ranks} ranks on {timeline.backend}: {hidden} (measured)"
    return theme.figure(traces, layout, title, height=220 + 46 * timeline.ranks)


def _states(timeline: Timeline, state: str) -> dict[str, Any]:
    chosen = [one for one in timeline.stretches if one.state == state]
    longest = sorted(chosen, key=lambda one: one.start - one.end)[:_MAX_BARS]
    bars = [(one.rank, one.start, one.end, one.name) for one in longest]
    return _bars(bars, state, COLOURS[state], offset=-0.2, width=0.55)


def _flights(timeline: Timeline) -> dict[str, Any]:
    bars = [
        (rank, start, end, "communication")
        for rank in range(timeline.ranks)
        for start, end in timeline.flights(rank)
    ]
    longest = sorted(bars, key=lambda bar: bar[1] - bar[2])[:_MAX_BARS]
    return _bars(longest, _IN_FLIGHT, theme.PURPLE, offset=-0.38, width=0.13)


def _bars(
    bars: list[tuple[int, float, float, str]], name: str, colour: str, offset: float, width: float
) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": [rank for rank, *_ in bars],
        "base": [1e3 * start for _, start, *_ in bars],
        "x": [1e3 * (end - start) for _, start, end, _ in bars],
        "text": [what for *_, what in bars],
        "textposition": "none",
        "offset": offset,
        "width": width,
        "marker": {"color": colour, "line": {"width": 0}},
        "hovertemplate": f"rank %{{y}}: {name} %{{text}}<br>%{{x:.3~g}} ms from %{{base:.4~g}}<extra></extra>",
    }
