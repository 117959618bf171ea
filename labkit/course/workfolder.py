"""The learner's own copy of the lessons: filled, brought up to date, never overwritten.

A manifest in ``.labkit/manifest.json`` remembers, for each file, the digest of the version last delivered. A
file that still has that digest is untouched and may be replaced; any other is the learner's work.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labkit.errors import LabkitError

DELIVERED = ("notebooks", "exercises")  # solutions stay out of sight: an exercise shows its own on request
MANIFEST = Path(".labkit", "manifest.json")


@dataclass(frozen=True)
class Delivery:
    """What one visit did to a working folder; every entry is a path relative to it, with ``/``.

    Attributes
    ----------
    copied : files that were missing
    replaced : untouched files that now have their newer version
    beside : newer versions put next to files that the learner has changed
    waiting : files with a newer version that was not asked for
    """

    folder: Path
    copied: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        names = ("copied", "replaced", "beside", "waiting")
        return {"folder": str(self.folder), **{name: list(getattr(self, name)) for name in names}}


@dataclass
class _Visit:
    """One pass over the lessons: the manifest as it changes, and what was done so far."""

    root: Path
    folder: Path
    version: str
    update: bool
    manifest: dict[str, str]
    done: dict[str, list[str]] = field(
        default_factory=lambda: {"copied": [], "replaced": [], "beside": [], "waiting": []}
    )

    def deliver(self, name: str) -> None:
        content = (self.root / name).read_bytes()
        target, offered = self.folder / name, self.manifest.get(name)
        wanted = digest(content)
        if not target.exists():
            self._write("copied", name, content)
        elif (present := digest(target.read_bytes())) == wanted:
            pass
        elif offered == wanted:
            return  # the learner's work on the newest version
        elif not self.update:
            self.done["waiting"].append(name)
            return
        elif present == offered:
            self._write("replaced", name, content)
        else:
            self._write("beside", self._free_name(name, wanted), content)
        self.manifest[name] = wanted

    def _write(self, kind: str, name: str, content: bytes) -> None:
        _write_whole(self.folder / name, content)
        self.done[kind].append(name)

    def _free_name(self, name: str, wanted: str) -> str:
        """``notebooks/01_x.new-0.1.1.ipynb``, numbered when the learner has worked on that one too."""
        path = Path(name)
        for attempt in range(1, 1000):
            number = "" if attempt == 1 else f"-{attempt}"
            candidate = path.with_name(f"{path.stem}.new-{self.version}{number}{path.suffix}")
            there = self.folder / candidate
            if not there.exists() or digest(there.read_bytes()) == wanted:
                return candidate.as_posix()
        raise LabkitError(f"there are a thousand newer versions beside {self.folder / name}: move some away")


def deliver(root: Path, folder: Path, version: str, update: bool = False) -> Delivery:
    """Copy the lessons under `root` into `folder`; what the learner changed is never written to.

    Parameters
    ----------
    root : folder with ``notebooks/`` and ``exercises/`` (see :func:`labkit.course.files.lessons_root`)
    folder : the learner's working folder, made when missing
    version : goes into the names of newer versions put beside changed files
    update : bring newer versions too, not only what is missing

    Raises
    ------
    LabkitError
        When the folder cannot be made, read or written.
    """
    if folder.exists() and root.exists() and folder.samefile(root):
        return Delivery(folder)  # authors work on the originals
    try:
        visit = _Visit(root, folder, version, update, _read_manifest(folder))
        for name in lesson_files(root):
            visit.deliver(name)
        _write_whole(folder / MANIFEST, json.dumps(visit.manifest, indent=1, sort_keys=True).encode())
    except OSError as error:
        raise LabkitError(
            f"the lessons cannot be copied into {folder} ({error.strerror}): name another folder with --dir"
        ) from error
    return Delivery(folder, **{kind: tuple(names) for kind, names in visit.done.items()})


def lesson_files(root: Path) -> Iterator[str]:
    """Every file that travels to a learner, as a path relative to `root`; editors' leftovers do not."""
    for part in DELIVERED:
        for path in sorted((root / part).rglob("*")):
            name = path.relative_to(root)
            if path.is_file() and not any(piece.startswith(".") for piece in name.parts):
                yield name.as_posix()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_manifest(folder: Path) -> dict[str, str]:
    """An unreadable manifest counts as empty: every file that differs is then the learner's."""
    try:
        loaded = json.loads((folder / MANIFEST).read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return {str(name): str(value) for name, value in loaded.items()} if isinstance(loaded, dict) else {}


def _write_whole(path: Path, content: bytes) -> None:
    """Write by renaming, so that an interrupted copy leaves the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    partial.write_bytes(content)
    partial.replace(path)
