"""The file that a recording is kept in.

The file (``.npz``, version 1) holds three arrays and needs NumPy only, without pickle:

``time``
    float64 ``(samples,)``: seconds since the recording began, ascending.
``values``
    float32 ``(series, samples)``: NaN where there is no value.
``about``
    uint8 ``(bytes,)``: UTF-8 JSON with ``format`` (``"labkit-recording"``), ``version``, ``interval``
    (seconds), ``began`` (Unix time), ``machine`` (on what it was measured, or from what modelled), ``series``
    (a list in the order of ``values``; the fields of ``labkit.telemetry.series.Series``, provenance among
    them, and ``reason``: why the last value is missing) and ``spans`` (a list of ``name``, ``start`` and
    ``end`` in seconds since the recording began; ``end`` is null for a span that was still open).
"""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabkitError
from labkit.telemetry.recording import CAPACITY, Recording
from labkit.telemetry.series import Series

FORMAT = "labkit-recording"
VERSION = 1


def save(recording: Recording, path: str | os.PathLike[str]) -> Path:
    """Write a recording; a name without a suffix gets ``.npz``."""
    target = Path(path) if Path(path).suffix else Path(path).with_suffix(".npz")
    times, values = recording.samples()
    about = json.dumps(_about(recording, len(values)), ensure_ascii=False).encode()
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


def _about(recording: Recording, rows: int) -> dict[str, Any]:
    """What the arrays mean; series that have come since they were copied are left out."""
    described = list(zip(recording.series, recording.reasons, strict=False))[:rows]
    return {
        "format": FORMAT,
        "version": VERSION,
        "interval": recording.interval,
        "began": recording.began,
        "machine": recording.machine,
        "series": [{**series.to_dict(), "reason": reason} for series, reason in described],
        "spans": [asdict(span) for span in recording.spans],
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
    machine = str(about.get("machine", ""))
    recording = Recording(float(about["interval"]), max(CAPACITY, len(times)), float(about["began"]), machine)
    reasons = [str(fields.pop("reason")) for fields in about["series"]]
    series = [Series(**fields) for fields in about["series"]]
    distinct = {one.key for one in series}
    if len(distinct) != len(series) or times.ndim != 1 or values.shape != (len(series), len(times)):
        raise ValueError("shapes do not fit")
    recording._fill(series, reasons, times, values)
    for span in about["spans"]:
        number = recording.begin(str(span["name"]), float(span["start"]))
        if span["end"] is not None:
            recording.end(number, float(span["end"]))
    return recording
