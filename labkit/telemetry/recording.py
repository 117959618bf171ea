"""A recording: a fixed-size ring of samples, the spans that mark it, and the file it is kept in.

The file (``.npz``, version 1) holds three arrays and needs NumPy only, without pickle:

``time``
    float64 ``(samples,)``: seconds since the recording began, ascending.
``values``
    float32 ``(series, samples)``: NaN where there is no value.
``about``
    uint8 ``(bytes,)``: UTF-8 JSON with ``format`` (``"labkit-recording"``), ``version``, ``interval``
    (seconds), ``began`` (Unix time), ``series`` (a list in the order of ``values``; the fields of
    ``labkit.telemetry.series.Series``, provenance among them, and ``reason``: why the last value is missing)
    and ``spans`` (a list of ``name``, ``start`` and ``end`` in seconds since the recording began; ``end`` is
    null for a span that was still open).
"""

from __future__ import annotations

import json
import os
import threading
import time
import weakref
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabkitError
from labkit.telemetry.series import Series

FORMAT = "labkit-recording"
VERSION = 1
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
        Samples kept; older ones make room. Memory: 4 bytes a value and 8 a sample.
    """

    def __init__(self, interval: float, capacity: int = CAPACITY, began: float | None = None):
        self.interval = interval
        self.capacity = capacity
        self.began = time.time() if began is None else began
        self._series: list[Series] = []
        self._index: dict[str, int] = {}
        self._reasons: list[str] = []
        self._times = np.zeros(capacity)
        self._values = np.full((0, capacity), np.nan, np.float32)
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
            self._values[:, slot] = np.nan
            for series, value in values.items():
                row = self._index[series.key]
                self._values[row, slot] = np.nan if value is None else value
                self._reasons[row] = reasons.get(series, "") if value is None else ""
            self._count += 1

    def samples(self, last: int | None = None) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """Copies of the (last) times ``(samples,)`` and values ``(series, samples)``, oldest first."""
        with self._lock:
            length = len(self) if last is None else min(last, len(self))
            slots = np.arange(self._count - length, self._count) % self.capacity
            return self._times[slots], self._values[:, slots]

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
        """Write the recording (the module describes the file); a name without a suffix gets ``.npz``."""
        target = Path(path) if Path(path).suffix else Path(path).with_suffix(".npz")
        with self._lock:
            times, values = self.samples()
            about = json.dumps(self._about(), ensure_ascii=False).encode()
        partial = target.with_name(target.name + ".part")
        try:
            with partial.open("wb") as file:
                np.savez_compressed(file, time=times, values=values, about=np.frombuffer(about, np.uint8))
            partial.replace(target)
        except OSError as error:
            partial.unlink(missing_ok=True)
            reason = error.strerror or error
            raise LabkitError(f"The recording could not be saved to {target}: {reason}.") from error
        return target

    def _add(self, series: Series) -> None:
        if series.key in self._index:
            return
        if len(self._series) >= MAX_SERIES:
            raise LabkitError(f"A recording holds at most {MAX_SERIES} series: {series.name!r} is too many.")
        self._index[series.key] = len(self._series)
        self._series.append(series)
        self._reasons.append("")
        self._values = np.vstack([self._values, np.full((1, self.capacity), np.nan, np.float32)])

    def _about(self) -> dict[str, Any]:
        described = zip(self._series, self._reasons, strict=True)
        return {
            "format": FORMAT,
            "version": VERSION,
            "interval": self.interval,
            "began": self.began,
            "series": [{**series.to_dict(), "reason": reason} for series, reason in described],
            "spans": [asdict(span) for span in self._spans.values()],
        }


def load(path: str | os.PathLike[str]) -> Recording:
    """Read a recording that ``save`` wrote.

    Raises
    ------
    LabkitError
        When the file is missing, is not a recording, is damaged, or was written by a newer version.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(bytes(file["about"]).decode())
            times, values = np.asarray(file["time"], float), np.asarray(file["values"], np.float32)
        _check_version(about, path)
        return _rebuild(about, times, values)
    except FileNotFoundError as error:
        raise LabkitError(f"There is no recording at {os.fspath(path)}.") from error
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise LabkitError(f"{os.fspath(path)} is not a labkit recording, or it is damaged.") from error


def _check_version(about: dict[str, Any], path: str | os.PathLike[str]) -> None:
    if about["format"] != FORMAT:
        raise ValueError(about["format"])
    if about["version"] > VERSION:
        raise LabkitError(
            f"{os.fspath(path)} was written by a newer labkit (format {about['version']}, this one reads "
            f"{VERSION}): pip install --upgrade gpu-labkit."
        )


def _rebuild(about: dict[str, Any], times: NDArray[np.float64], values: NDArray[np.float32]) -> Recording:
    recording = Recording(float(about["interval"]), max(CAPACITY, len(times)), float(about["began"]))
    for fields in about["series"]:
        reason = fields.pop("reason")
        recording._add(Series(**fields))
        recording._reasons[-1] = reason
    if times.ndim != 1 or values.shape != (len(recording.series), len(times)):
        raise ValueError("shapes do not fit")
    recording._times[: len(times)] = times
    recording._values[:, : len(times)] = values
    recording._count = len(times)
    for span in about["spans"]:
        number = recording.begin(str(span["name"]), float(span["start"]))
        if span["end"] is not None:
            recording.end(number, float(span["end"]))
    return recording


_recordings: weakref.WeakSet[Recording] = weakref.WeakSet()


def _after_fork() -> None:
    # The sampler may have held a lock at the moment of the fork; its thread is not in the child to let go.
    for recording in list(_recordings):
        recording._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
