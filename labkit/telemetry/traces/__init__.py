"""Recordings that come with labkit, for lessons and demonstrations.

Those of processors were recorded by labkit on a real machine, and say on which; those of GPUs are computed
from data sheets by `modelled` and are marked *modelled*, in the file and on every plot of it.
"""

from __future__ import annotations

import os
from pathlib import Path

from labkit.errors import LabkitError
from labkit.telemetry.recording import Recording
from labkit.telemetry.recording_file import load

FOLDER = Path(__file__).parent


def names() -> tuple[str, ...]:
    """Names of the recordings, for `open` and for ``labkit.replay``."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.npz")))


def open(file: str | os.PathLike[str]) -> Recording:
    """A recording by its name, or from a file.

    Raises
    ------
    LabkitError
        When there is neither such a file nor such a name.
    """
    if isinstance(file, str) and file in names():
        return load(FOLDER / f"{file}.npz")
    try:
        return load(file)
    except LabkitError as error:
        if os.path.exists(file):
            raise
        known = ", ".join(names())
        raise LabkitError(
            f"There is no recording at {os.fspath(file)!r}; with labkit come: {known}."
        ) from error
