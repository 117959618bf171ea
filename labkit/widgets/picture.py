"""Grey pictures in a notebook, drawn by NumPy and zlib alone: no image library, no plot."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labkit.errors import LabkitError


@dataclass(frozen=True)
class Picture:
    """Pictures side by side as one PNG, with a caption that also stands in for it where nothing can be
    drawn."""

    caption: str
    width: int
    height: int
    png: bytes = field(repr=False)

    def __repr__(self) -> str:
        return f"picture, {self.width} x {self.height} pixels: {self.caption}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"image/png": self.png, "text/plain": repr(self)}

    def to_dict(self) -> dict[str, Any]:
        return {"caption": self.caption, "width": self.width, "height": self.height}


def picture(*images: np.ndarray, caption: str, height: int = 256) -> Picture:
    """Show grey images next to each other.

    Parameters
    ----------
    images : arrays of shape (rows, columns)
        uint8 from 0 to 255, or floats from 0 (black) to 1 (white); what lies outside is clipped.
    height : int
        Images are shrunk or enlarged, by whole factors, to about this many rows.
    """
    if not images:
        raise LabkitError("picture() needs at least one image.")
    panels = [_enlarged(_shrunk(_as_bytes(image), height), height) for image in images]
    rows = max(panel.shape[0] for panel in panels)
    gap = np.full((rows, 8), 128, np.uint8)
    strip = [part for panel in panels for part in (gap, _padded(panel, rows))][1:]
    joined = np.hstack(strip)
    return Picture(caption, joined.shape[1], joined.shape[0], _png(joined))


def _as_bytes(image: np.ndarray) -> np.ndarray:
    image = np.asarray(image)
    if image.ndim != 2 or image.size == 0:
        raise LabkitError(
            f"picture() draws grey images of shape (rows, columns); this one has shape {image.shape}."
        )
    if image.dtype == np.uint8:
        return image
    return (np.nan_to_num(image, nan=0.5).clip(0, 1) * 255 + 0.5).astype(np.uint8)


def _shrunk(image: np.ndarray, height: int) -> np.ndarray:
    """Average square tiles of pixels: a picture a few hundred rows high keeps the notebook small."""
    step = max(1, image.shape[0] // height)
    rows, columns = (size // step * step for size in image.shape)
    if step == 1 or columns == 0:
        return image
    tiles = image[:rows, :columns].reshape(rows // step, step, columns // step, step)
    return tiles.mean(axis=(1, 3)).round().astype(np.uint8)


def _enlarged(image: np.ndarray, height: int) -> np.ndarray:
    times = max(1, height // image.shape[0])
    return image.repeat(times, axis=0).repeat(times, axis=1)


def _padded(image: np.ndarray, rows: int) -> np.ndarray:
    return np.pad(image, ((0, rows - image.shape[0]), (0, 0)), constant_values=128)


def _png(image: np.ndarray) -> bytes:
    """Encode 8-bit grey (PNG specification, ISO/IEC 15948): header, one compressed stream, end."""
    rows, columns = image.shape
    # Every scan line starts with its filter number; 1 stores differences to the left pixel, which compress
    # well.
    lines = np.empty((rows, columns + 1), np.uint8)
    lines[:, 0] = 1
    lines[:, 1] = image[:, 0]
    lines[:, 2:] = image[:, 1:] - image[:, :-1]
    header = struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0)
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
