"""Feeding a GPU from files: real files, real reads, and a count of every open, read and byte.

A sample is an image with a label, stored as ``HEADER`` bytes (its number and its label) and its pixels. The same
samples lie there twice: in a file each, and many to a *shard*. All reading goes through a :class:`Disk`, which buffers
nothing, so that a read here is one call of the operating system, and is counted.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from labkit.errors import LabkitError
from labkit.hardware.units import show_bytes

_FORMAT = struct.Struct("<II")
HEADER = _FORMAT.size
LOOSE, SHARDS = "loose", "shards"
_MOST_FILES = 20_000


@dataclass(frozen=True)
class Access:
    """One open (``what`` is ``"open"``, no bytes) or one read of a file."""

    what: str
    file: str
    offset: int = 0
    bytes: int = 0


@dataclass(frozen=True, repr=False)
class Counts:
    """Opens, reads that returned something, and bytes: exact, of the calls that were made."""

    opens: int
    reads: int
    bytes: int

    @property
    def bytes_a_read(self) -> float:
        return self.bytes / self.reads if self.reads else 0.0

    def __repr__(self) -> str:
        each = f", {show_bytes(self.bytes_a_read)} a read" if self.reads else ""
        return f"Counts({self.opens:,} opens, {self.reads:,} reads, {show_bytes(self.bytes)}{each})"

    def to_dict(self) -> dict[str, float]:
        return {
            "opens": self.opens,
            "reads": self.reads,
            "bytes": self.bytes,
            "bytes_a_read": self.bytes_a_read,
        }


class Disk:
    """A folder of files, with a count of what is done to them; may be used from several threads."""

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)
        self._log: list[Access] = []
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Disk({self.counts!r})"

    def files(self, inside: str = "") -> tuple[str, ...]:
        """Names of the files below ``inside``, in order; looking at names is not counted."""
        found = sorted(path for path in (self.folder / inside).rglob("*") if path.is_file())
        return tuple(path.relative_to(self.folder).as_posix() for path in found)

    def open(self, name: str) -> CountedFile:
        """Open a file of the folder for reading.

        Raises
        ------
        LabkitError
            When there is no such file.
        """
        path = self.folder / name
        if not path.is_file():
            raise LabkitError(f"There is no file {name!r} here: disk.files() lists them.")
        self.note(Access("open", name))
        return CountedFile(self, name, os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)))

    def note(self, access: Access) -> None:
        with self._lock:
            self._log.append(access)

    @property
    def log(self) -> tuple[Access, ...]:
        """Every access so far, in order."""
        with self._lock:
            return tuple(self._log)

    @property
    def counts(self) -> Counts:
        reads = [one for one in self.log if one.what == "read"]
        opens = sum(one.what == "open" for one in self.log)
        return Counts(opens, len(reads), sum(one.bytes for one in reads))


class CountedFile:
    """An open file that buffers nothing. Use it in a ``with`` block."""

    def __init__(self, disk: Disk, name: str, descriptor: int):
        self._disk, self.name, self._descriptor = disk, name, descriptor
        self._offset = 0

    def __enter__(self) -> CountedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes at most; fewer, or none, at the end of the file."""
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
            raise LabkitError(f"read({size!r}): give the number of bytes to read, 1 or more.")
        piece = os.read(self._descriptor, int(size))
        if piece:
            self._disk.note(Access("read", self.name, self._offset, len(piece)))
            self._offset += len(piece)
        return piece

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@dataclass(frozen=True)
class Dataset:
    """Samples on disk, written by :func:`write`: ``count`` of them, ``shape`` pixels each, a byte a pixel."""

    folder: str = field(repr=False)
    count: int
    shape: tuple[int, int]
    per_shard: int

    @property
    def sample_bytes(self) -> int:
        return HEADER + self.shape[0] * self.shape[1]

    def to_dict(self) -> dict[str, Any]:
        return {"count": self.count, "shape": list(self.shape), "per_shard": self.per_shard}

    def disk(self) -> Disk:
        """The folder, with counts at zero."""
        return Disk(self.folder)


def write(
    folder: str | os.PathLike[str],
    images: np.ndarray,
    labels: Sequence[int] | None = None,
    per_shard: int = 64,
) -> Dataset:
    """Write images of shape (count, rows, columns), uint8, as loose files and as shards of ``per_shard`` samples.

    Raises
    ------
    LabkitError
        For images of another form, too many of them, or a shard without a sample.
    """
    if images.ndim != 3 or images.dtype != np.uint8 or not 0 < len(images) <= _MOST_FILES or per_shard < 1:
        raise LabkitError(
            f"Give images of shape (count, rows, columns), uint8, {_MOST_FILES:,} at most, and one or more a shard; "
            f"these are {images.shape}, {images.dtype}, {per_shard} a shard."
        )
    labels = range(len(images)) if labels is None else labels
    samples = [
        _FORMAT.pack(number, label) + image.tobytes()
        for number, (label, image) in enumerate(zip(labels, images, strict=True))
    ]
    root = Path(folder)
    for part in (LOOSE, SHARDS):
        (root / part).mkdir(parents=True, exist_ok=True)
    for number, sample in enumerate(samples):
        (root / LOOSE / f"{number:05d}.bin").write_bytes(sample)
    for number, start in enumerate(range(0, len(samples), per_shard)):
        (root / SHARDS / f"{number:03d}.bin").write_bytes(b"".join(samples[start : start + per_shard]))
    return Dataset(str(root), len(images), (images.shape[1], images.shape[2]), per_shard)


def crops(picture: np.ndarray, count: int, side: int = 32, seed: int = 3) -> np.ndarray:
    """``count`` square pieces of a photograph, at places drawn from ``seed``: (count, side, side), uint8."""
    rows, columns = np.random.default_rng(seed).integers(0, np.array(picture.shape) - side, (count, 2)).T
    return np.stack([picture[r : r + side, c : c + side] for r, c in zip(rows, columns, strict=True)])


def number_of(sample: bytes) -> int:
    """The number of a sample, from its header."""
    return int(_FORMAT.unpack_from(sample)[0])


def loose(disk: Disk, sample_bytes: int) -> Iterator[bytes]:
    """Samples from the loose files: an open and a read each."""
    for name in disk.files(LOOSE):
        with disk.open(name) as file:
            yield file.read(sample_bytes)


def sharded(disk: Disk, sample_bytes: int, read_bytes: int = 2**18) -> Iterator[bytes]:
    """Samples from the shards: an open a shard, and reads of about ``read_bytes``, which hold many samples."""
    at_once = max(1, read_bytes // sample_bytes) * sample_bytes
    for name in disk.files(SHARDS):
        with disk.open(name) as file:
            while piece := file.read(at_once):
                for start in range(0, len(piece), sample_bytes):
                    yield piece[start : start + sample_bytes]


def forget(disk: Disk) -> bool:
    """Ask the operating system to drop these files from its cache, so that the next read comes from the disk.

    False where it cannot be asked.
    """
    if not hasattr(os, "posix_fadvise"):
        return False
    for name in disk.files():
        descriptor = os.open(disk.folder / name, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
    return True
