"""Measured times of a collective, from wherever they come: logs, JSON, tables, pairs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.units import parse

_SIZES = {"size_bytes": 1.0, "size_B": 1.0, "bytes": 1.0, "size": 1.0}
_TIMES = {"seconds": 1.0, "time_s": 1.0, "time_us": 1e-6, "time_us_oop": 1e-6, "time_ms": 1e-3}


@dataclass(frozen=True)
class Measured:
    """Sizes in bytes, ascending, and the seconds each took; `source` says whose they are."""

    sizes: tuple[float, ...]
    seconds: tuple[float, ...]
    source: str

    def __repr__(self) -> str:
        return f"Measured({len(self.sizes)} sizes, {self.source})"

    def every_other(self) -> tuple[Measured, Measured]:
        """The first, third, fifth ... size, and the others: to fit to the one and test on the other."""
        return (
            Measured(self.sizes[::2], self.seconds[::2], self.source),
            Measured(self.sizes[1::2], self.seconds[1::2], self.source),
        )

    def between(self, least: float, most: float) -> Measured:
        """Those from `least` to `most` bytes, both included."""
        kept = [pair for pair in zip(self.sizes, self.seconds, strict=True) if least <= pair[0] <= most]
        return Measured(tuple(size for size, _ in kept), tuple(time for _, time in kept), self.source)


def measured(source: Any, name: str | None = None) -> Measured:
    """Read measurements.

    Parameters
    ----------
    source : str, path, or rows
        The text of an nccl-tests log or of ``labkit bench collectives --json``, or the path of such a file; or rows:
        pairs of (bytes, seconds), or mappings with a size (``size_bytes``) and a time (``seconds``, ``time_us``).
    name : str, optional
        What to call it where results are shown.

    Raises
    ------
    LabkitError
        When nothing in it is a size with a time.
    """
    if isinstance(source, Measured):
        return source
    if hasattr(source, "to_dict") and hasattr(source, "rows"):
        return _from_text(json.dumps(source.to_dict()), name or source.where)
    if isinstance(source, (str, os.PathLike)):
        text, found = _text(source)
        return _from_text(text, name or found)
    return _sorted(map(_row, source), name or "measurements given")


def _text(source: str | os.PathLike[str]) -> tuple[str, str]:
    if isinstance(source, str) and ("\n" in source or source.lstrip()[:1] in ("{", "[")):
        return source, "a pasted log"
    try:
        with open(source, encoding="utf-8", errors="replace") as stream:
            return stream.read(), os.path.basename(os.fspath(source))
    except OSError as error:
        raise LabkitError(f"The measurements {os.fspath(source)} cannot be read: {error.strerror}.") from None


def _from_text(text: str, name: str) -> Measured:
    if text.lstrip()[:1] in ("{", "["):
        found = _json_rows(text, name)
        _check_one_kind(found, name)
        return _sorted((_row(row) for row in found), name)
    from labkit.hardware.reports import read

    rows = [
        row for report in read(text) if report.kind == "nccl_tests" for row in getattr(report, "rows", ())
    ]
    pairs = [(float(row.size_bytes), _time_us(row)) for row in rows]
    return _sorted(((size, time * 1e-6) for size, time in pairs if time is not None), name)


def _time_us(row: Any) -> float | None:
    """Out of place; what works in place only has no such time."""
    there = row.out_of_place.time_us
    return there if there is not None or row.in_place is None else row.in_place.time_us


def _json_rows(text: str, name: str) -> list[Any]:
    """One JSON value, or one a line; rows may lie in a list under any key."""
    try:
        values = [json.loads(text)]
    except json.JSONDecodeError:
        try:
            values = [json.loads(line) for line in text.splitlines() if line.strip()]
        except json.JSONDecodeError:
            raise LabkitError(
                f"{name} looks like JSON and is not: save the whole output of the benchmark."
            ) from None
    return [row for value in values for row in _unfolded(value)]


def _check_one_kind(rows: Iterable[Any], name: str) -> None:
    """Times of different collectives, thrown together, are a time of nothing."""
    kinds = sorted(
        {f"{row['operation']} by {row['implementation']}" for row in rows if "implementation" in row}
    )
    if len(kinds) > 1:
        raise LabkitError(
            f"{name} has times of {', '.join(kinds)}: measure one of them (--operation, --by), or give the rows "
            "of one, report.of('all_reduce', 'torch')."
        )


def _unfolded(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [row for each in value for row in _unfolded(each)]
    if isinstance(value, Mapping) and not set(value) & set(_SIZES):
        return [
            row for each in value.values() if isinstance(each, (list, Mapping)) for row in _unfolded(each)
        ]
    return [value] if isinstance(value, Mapping) else []


def _row(row: Any) -> tuple[float, float] | None:
    if isinstance(row, Mapping):
        size = next((row[key] * factor for key, factor in _SIZES.items() if row.get(key) is not None), None)
        time = next((row[key] * factor for key, factor in _TIMES.items() if row.get(key) is not None), None)
        return None if size is None or time is None else (float(size), float(time))
    try:
        size, time = row
    except (TypeError, ValueError):
        raise LabkitError(f"{row!r} is no measurement: give (bytes, seconds).") from None
    return parse(size, "size"), parse(time, "time")


def _sorted(rows: Iterable[tuple[float, float] | None], name: str) -> Measured:
    pairs = sorted(row for row in rows if row is not None and row[0] > 0 and row[1] > 0)
    if not pairs:
        raise LabkitError(
            f"No size with a time was found in {name}: give the log of nccl-tests, or rows of (bytes, seconds)."
        )
    return Measured(tuple(size for size, _ in pairs), tuple(time for _, time in pairs), name)
