"""The clusters of this user: a folder each, locked by the process that holds its network.

The folder's name ends in the number of the process that owns the cluster. A lock ends with its process,
however that ends, so a folder without a lock is a dead cluster's, and may be swept.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import stat
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.errors import LabkitError
from labkit.network.cluster import members

_FILE = "cluster.json"


def folder() -> Path:
    """Where this user's clusters are; nobody else may look into it.

    Raises
    ------
    LabkitError
        When somebody else has made it.
    """
    place = Path(tempfile.gettempdir()) / f"labkit-clusters-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        place.mkdir(mode=0o700)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise LabkitError(
            f"{place} should be a private folder of yours and is not: remove it, or set TMPDIR."
        )
    return place


@dataclass(frozen=True)
class Place:
    """One cluster's folder."""

    path: Path

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def name(self) -> str:
        return self.id.rpartition("-")[0]

    @property
    def owner(self) -> int:
        return int(self.id.rpartition("-")[2])

    @property
    def hosts(self) -> Path:
        return self.path / "hosts"

    def alive(self) -> bool:
        """Whether a process holds it."""
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def hold(self) -> int:
        """Lock it, for as long as the descriptor is open."""
        file = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(file, fcntl.LOCK_EX)
        return file

    def write(self, told: dict[str, Any]) -> None:
        (self.path / _FILE).write_text(json.dumps(told))

    def read(self) -> dict[str, Any]:
        return dict(json.loads((self.path / _FILE).read_text()))

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def control(folder: int) -> str:
    """The socket on which the holder of an open folder listens; short, whatever the folder's path."""
    return f"/proc/self/fd/{folder}/control"


def places() -> list[Place]:
    """The folders of all clusters of this user, dead ones among them."""
    found = [Place(path) for path in folder().iterdir() if path.name.rpartition("-")[2].isdecimal()]
    return sorted(found, key=lambda place: place.id)


def create(name: str, owner: int, unique: bool = True) -> tuple[Place, int]:
    """A folder for a new cluster, and the lock on it.

    Raises
    ------
    LabkitError
        When a living cluster has the name, or it is no name.
    """
    if not name or not all(letter.isalnum() or letter in "._" for letter in name) or len(name) > 30:
        raise LabkitError(
            f"{name!r} is no name for a cluster: take up to 30 letters, digits, dots and underscores."
        )
    clean()
    for place in places():
        if place.name == name and unique:
            raise LabkitError(
                f"There is a cluster named {name!r} already, of process {place.owner}: take another name, or end "
                f"that one with 'labkit cluster down {name}'."
            )
    # made under another name, locked, and only then given its own: no sweeper sees it without its lock
    draft = Place(Path(tempfile.mkdtemp(prefix="new.", dir=folder())))
    lock = draft.hold()
    place = Place(draft.path.with_name(f"{name}-{owner}"))
    draft.path.rename(place.path)
    return place, lock


def _sweep_drafts() -> None:
    """Folders whose maker was ended within the moment before they got their name."""
    for path in folder().glob("new.*"):
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime > 60 and not Place(path).alive():
                Place(path).remove()


def clean() -> list[str]:
    """Sweep what dead clusters of this user have left: processes that they started, and their folders.

    Returns
    -------
    list of str
        The names swept, each with its owner's process number.
    """
    _sweep_drafts()
    swept = []
    for place in places():
        if not place.alive():
            sweep(place)
            swept.append(place.id)
    return swept


def sweep(place: Place) -> None:
    """What a dead cluster has left."""
    members.end(members.marked(place.id))
    place.remove()
