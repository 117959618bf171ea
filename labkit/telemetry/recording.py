"""A recording: a fixed-size ring of samples of many series, and the spans that mark it."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabkitError
from labkit.telemetry.series import Series

CAPACITY = 7200  # an hour at two samples a second
MAX_SERIES = 1024
MAX_SPANS = 4096


@dataclass(frozen=True)
class Span:
    """A named region of time, in seconds since the recording began; ``end`` is None while it is open."""

    name: str
    start: float
    end: float | None = None


class Recording:
    """The last ``capacity`` samples of a growing set of series; safe to read while it is written.

    Parameters
    ----------
    interval : float
        Seconds between samples, as asked for.
    capacity : int
        Samples kept; older ones make room. Memory: 8 bytes a sample, 2 a share in per cent, 4 any other value.
    began : float
        Unix time of its beginning; now by default.
    machine : str
        On what it was measured, or from what it was modelled, in words.
    """

    def __init__(
        self, interval: float, capacity: int = CAPACITY, began: float | None = None, machine: str = ""
    ):
        self.interval = interval
        self.capacity = capacity
        self.began = time.time() if began is None else began
        self.machine = machine
        self._series: list[Series] = []
        self._index: dict[str, int] = {}
        self._reasons: list[str] = []
        self._times = np.zeros(capacity)
        self._columns: list[NDArray[np.floating[Any]] | None] = []
        self._count = 0
        self._spans: dict[int, Span] = {}
        self._next_span = 0
        self._lock = threading.RLock()
        _recordings.add(self)

    def __repr__(self) -> str:
        return f"Recording({len(self)} samples of {len(self._series)} series, {len(self._spans)} spans)"

    def __len__(self) -> int:
        return min(self._count, self.capacity)

    @property
    def series(self) -> tuple[Series, ...]:
        """The series, in the order in which they appeared; it only ever grows."""
        return tuple(self._series)

    @property
    def reasons(self) -> tuple[str, ...]:
        """For each series, why its last value is missing; empty when it is not."""
        return tuple(self._reasons)

    @property
    def spans(self) -> tuple[Span, ...]:
        """The last 4096 spans, in order of their start."""
        return tuple(self.numbered_spans().values())

    @property
    def nbytes(self) -> int:
        """Memory of times and values, in bytes."""
        return self._times.nbytes + sum(column.nbytes for column in self._columns if column is not None)

    def numbered_spans(self) -> dict[int, Span]:
        """The spans by the number that ``begin`` returned."""
        with self._lock:
            return dict(self._spans)

    def append(self, at: float, values: Mapping[Series, float | None], reasons: Mapping[Series, str]) -> None:
        """Add one sample at ``at`` seconds; series not seen before start with it, absent ones have a gap."""
        with self._lock:
            for series in values:
                self._add(series)
            slot = self._count % self.capacity
            self._times[slot] = at
            for column in self._columns:
                if column is not None:
                    column[slot] = np.nan
            for series, value in values.items():
                row = self._index[series.key]
                if value is not None:
                    self._column(row)[slot] = value
                self._reasons[row] = reasons.get(series, "") if value is None else ""
            self._count += 1

    def samples(self, last: int | None = None) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """Copies of the (last) times ``(samples,)`` and values ``(series, samples)``, oldest first."""
        with self._lock:
            length = len(self) if last is None else min(last, len(self))
            slots = np.arange(self._count - length, self._count) % self.capacity
            values = np.full((len(self._columns), length), np.nan, np.float32)
            for row, column in enumerate(self._columns):
                if column is not None:
                    values[row] = column[slots]
            return self._times[slots], values

    def values(self, key: str) -> NDArray[np.float32]:
        """The values of one series, ``(samples,)``, NaN where there is none."""
        if key not in self._index:
            known = ", ".join(self._index) or "none yet"
            raise LabkitError(f"The recording has no series {key!r}; it has: {known}.")
        return self.samples()[1][self._index[key]]

    def begin(self, name: str, at: float) -> int:
        """Open a span; the number closes it. The oldest spans make room when there are more than 4096."""
        with self._lock:
            number, self._next_span = self._next_span, self._next_span + 1
            self._spans[number] = Span(name, at)
            if len(self._spans) > MAX_SPANS:
                del self._spans[next(iter(self._spans))]
            return number

    def end(self, number: int, at: float) -> None:
        """Close a span; one that has made room already is left alone."""
        with self._lock:
            if number in self._spans:
                self._spans[number] = replace(self._spans[number], end=at)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the recording to a file (`recording_file` describes it); without a suffix it gets ``.npz``.

        Raises
        ------
        LabkitError
            When the file cannot be written.
        """
        from labkit.telemetry.recording_file import save

        return save(self, path)

    def between(self, start: float, end: float) -> Recording:
        """A copy of the part from ``start`` to ``end`` seconds, whose own time begins with it."""
        with self._lock:
            times, values = self.samples()
            chosen = (times >= start) & (times <= end)
            part = Recording(self.interval, max(1, int(chosen.sum())), self.began + start, self.machine)
            part._fill(self._series, self._reasons, times[chosen] - start, values[:, chosen])
            spans = [
                span for span in self._spans.values() if (span.end or end) >= start and span.start <= end
            ]
        for span in spans:
            number = part.begin(span.name, max(0.0, span.start - start))
            if span.end is not None:
                part.end(number, min(span.end, end) - start)
        return part

    def _fill(
        self,
        series: Sequence[Series],
        reasons: Sequence[str],
        times: NDArray[np.float64],
        values: NDArray[np.float32],
    ) -> None:
        """Set everything at once; ``times`` ``(n,)`` with n up to the capacity, ``values`` ``(series, n)``."""
        for one, reason in zip(series, reasons, strict=True):
            self._add(one)
            self._reasons[-1] = reason
        self._times[: len(times)] = times
        for row, found in enumerate(values):
            if not np.isnan(found).all():
                self._column(row)[: len(times)] = found
        self._count = len(times)

    def _add(self, series: Series) -> None:
        if series.key in self._index:
            return
        if len(self._series) >= MAX_SERIES:
            raise LabkitError(f"A recording holds at most {MAX_SERIES} series: {series.name!r} is too many.")
        self._index[series.key] = len(self._series)
        self._series.append(series)
        self._reasons.append("")
        self._columns.append(None)

    def _column(self, row: int) -> NDArray[np.floating[Any]]:
        """The values of a series, made with its first one: most GPUs lack some of the metrics."""
        found = self._columns[row]
        if found is None:
            found = self._columns[row] = np.full(self.capacity, np.nan, _kept_as(self._series[row]))
        return found


def _kept_as(series: Series) -> type[np.floating[Any]]:
    """Shares of a device are kept to a sixteenth of a per cent, in half the memory."""
    return np.float16 if series.unit == "%" and series.group != "own" else np.float32


_recordings: weakref.WeakSet[Recording] = weakref.WeakSet()


def _after_fork() -> None:
    # The sampler may have held a lock at the moment of the fork; its thread is not in the child to let go.
    for recording in list(_recordings):
        recording._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
