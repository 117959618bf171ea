"""What travels to the live plot: a compact row for every sample, a description for every series.

A row is ``float64`` seconds followed by one value for each series, little-endian and without padding: one
byte for a percentage of a device (half per cents, 255 for a gap), ``float32`` for everything else (NaN for a
gap). A history is many rows one after the other. ``js/monitor_data.js`` reads both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.telemetry.recording import Span
from labkit.telemetry.series import Series

BYTE_GAP = 255
STEPS = 2  # steps of a one-byte value in one per cent


def one_byte(series: Series) -> bool:
    """Whether a series travels as one byte: shares of a device do, a learner's own numbers do not."""
    return series.unit == "%" and series.group != "own"


def row_type(series: Sequence[Series]) -> np.dtype[Any]:
    """The layout of a row of these series."""
    fields = [(f"v{number}", "u1" if one_byte(one) else "<f4") for number, one in enumerate(series)]
    return np.dtype([("t", "<f8"), *fields])


def encode(times: NDArray[np.float64], values: NDArray[np.float32], series: Sequence[Series]) -> bytes:
    """Rows for ``times`` ``(n,)`` and ``values`` ``(len(series), n)``."""
    rows = np.zeros(len(times), row_type(series))
    rows["t"] = times
    for number, one in enumerate(series):
        rows[f"v{number}"] = _bytes(values[number]) if one_byte(one) else values[number]
    return rows.tobytes()


def _bytes(percent: NDArray[np.float32]) -> NDArray[np.uint8]:
    scaled = np.clip(np.rint(percent * STEPS), 0, 100 * STEPS)
    return np.where(np.isnan(percent), BYTE_GAP, np.nan_to_num(scaled)).astype(np.uint8)


def describe(series: Series, reason: str) -> dict[str, Any]:
    """A series as the view wants it; what is empty is left out."""
    full = {
        "name": series.name,
        "unit": series.unit,
        "group": series.group,
        "byte": int(one_byte(series)),
        "from": "" if series.provenance == "measured" else series.provenance,
        "of": series.of,
        "device": series.device,
        "hidden": int(series.hidden),
        "reason": reason,
    }
    return {key: value for key, value in full.items() if value}


def span_row(number: int, span: Span) -> list[Any]:
    """A span as the view wants it: number, name, start, end (null while open)."""
    end = None if span.end is None else round(span.end, 6)
    return [number, span.name, round(span.start, 6), end]
