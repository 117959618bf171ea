"""A recording in plain text: one line for each series or family, with its last minute as a row of bars."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labkit.telemetry.recording import Recording
from labkit.telemetry.series import Series

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 30  # bars, each the mean of two seconds
SECONDS = 2.0
RECENT = 3  # samples


def recording_text(recording: Recording, title: str, notices: Sequence[str] = ()) -> str:
    """Last values, with units and provenance; hidden series are left out."""
    times, values = recording.samples()
    if not len(times):
        return f"{title}: no sample yet"
    lines = [f"{title} at {times[-1]:.0f} s: the last {WIDTH * SECONDS:.0f} s, and now"]
    if recording.machine:
        lines.append(f"  {recording.machine}")
    shown = [(one, row) for one, row in zip(recording.series, values, strict=False) if not one.hidden]
    rows = [_row(label, members, times) for label, members in _families(shown)]
    width = max((len(label) for label, *_ in rows), default=0)
    lines += [f"  {label:<{width}}  {bars:<{WIDTH}}  {now}" for label, bars, now in rows]
    return "\n".join([*lines, *(f"  ! {notice}" for notice in notices)])


def _families(
    shown: list[tuple[Series, NDArray[np.float32]]],
) -> list[tuple[str, list[tuple[Series, NDArray[np.float32]]]]]:
    """Cores, and GPUs from five on, as one line with their mean."""
    groups: dict[str, list[tuple[Series, NDArray[np.float32]]]] = {}
    for one, row in shown:
        groups.setdefault(one.group, []).append((one, row))
    lines = []
    for group, members in groups.items():
        if group == "cores" or (group.startswith("gpu") and len(members) > 4):
            what = "cores" if group == "cores" else f"GPUs{group.removeprefix('gpu')}"
            lines.append((f"{len(members)} {what}, mean", members))
        else:
            lines += [(one.name, [(one, row)]) for one, row in members]
    return lines


def _row(
    label: str, members: list[tuple[Series, NDArray[np.float32]]], times: NDArray[np.float64]
) -> tuple[str, str, str]:
    series = members[0][0]
    rows = np.array([row for _, row in members], float)
    known = ~np.isnan(rows).all(axis=0)
    mean = np.full(len(times), np.nan)
    mean[known] = np.nanmean(rows[:, known], axis=0)
    bars = _bars(times, mean, 100.0 if series.unit == "%" else None)
    # Own metrics are given now and then, and hold; what a device says is old after some samples.
    recent = mean[known] if series.group == "own" else mean[-RECENT:][known[-RECENT:]]
    last = recent[-1] if len(recent) else np.nan
    provenance = "" if series.provenance == "measured" else f", {series.provenance}"
    now = "n/a" if np.isnan(last) else f"{last:.4g} {series.unit}".rstrip()
    return label, bars, now + provenance


def _bars(times: NDArray[np.float64], values: NDArray[np.float64], top: float | None) -> str:
    """One character for every two seconds of the last minute; a space where there is no value."""
    ends = times[-1] - SECONDS * np.arange(WIDTH, -1, -1)
    means = []
    for start, end in itertools.pairwise(ends):
        chosen = values[(times > start) & (times <= end)]
        chosen = chosen[~np.isnan(chosen)]
        means.append(float(chosen.mean()) if len(chosen) else np.nan)
    highest = top or max((value for value in means if not np.isnan(value)), default=0.0) or 1.0
    steps = len(BARS) - 1
    return "".join(
        " " if np.isnan(value) else BARS[round(steps * min(1.0, max(0.0, value / highest)))]
        for value in means
    ).lstrip()
