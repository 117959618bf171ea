"""The catalogue's data files, read once each and only when somebody asks."""

from __future__ import annotations

import csv
import os
from functools import cache
from typing import Any

FOLDER = os.path.join(os.path.dirname(__file__), "data")


@cache
def load(name: str) -> dict[str, Any]:
    """``data/<name>.yaml`` as plain dictionaries and lists; treat it as read-only, it is shared."""
    import yaml  # slow to import, and not needed by whoever only asks for the backend

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with open(os.path.join(FOLDER, f"{name}.yaml"), encoding="utf-8") as stream:
        return dict(yaml.load(stream, Loader=loader))


@cache
def rows(name: str) -> tuple[dict[str, str | float], ...]:
    """``data/measured/<name>.csv``, a dictionary a row, with numbers as floats."""
    with open(os.path.join(FOLDER, "measured", f"{name}.csv"), encoding="utf-8", newline="") as stream:
        return tuple({key: _number(value) for key, value in row.items()} for row in csv.DictReader(stream))


def _number(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text
