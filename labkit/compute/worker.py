"""A worker process: ``python -m labkit.compute.worker`` filters the strips of images on its stdin.

One exchange, each step answered, so that the parent can time the steps apart:

    parent: {"filter": "denoise", "shape": [260, 512]}, then the pixels as raw float32
    worker: {"got": 133120}
    parent: {"go": true}
    worker: {"seconds": 0.007}
    parent: {"send": true}
    worker: the filtered pixels, as many as it got
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any, BinaryIO

import numpy as np

from labkit.compute.filters import FILTERS


def say(stream: BinaryIO, **message: Any) -> None:
    """Write one line of JSON and push it out."""
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()


def hear(stream: BinaryIO) -> dict[str, Any] | None:
    """Read one line of JSON; None when the other side has gone."""
    line = stream.readline()
    return json.loads(line) if line else None


def raw(pixels: np.ndarray) -> memoryview:
    """The bytes of a contiguous array, without a copy; an empty array has none."""
    return pixels.reshape(-1).view(np.uint8).data


def read_pixels(stream: BinaryIO, shape: tuple[int, ...]) -> np.ndarray:
    """Read a float32 array of this shape; EOFError when the other side goes before it is complete."""
    pixels = np.empty(shape, np.float32)
    view = raw(pixels)
    done = 0
    while done < len(view):
        count = stream.readinto(view[done:])  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        done += count
    return pixels


def serve(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """Answer requests until the parent closes the pipe."""
    say(outgoing, ready=True)
    out = np.empty((0, 0), np.float32)
    while order := hear(incoming):
        function, _ = FILTERS[order["filter"]]
        pixels = read_pixels(incoming, tuple(order["shape"]))
        say(outgoing, got=pixels.size)
        out = out if out.shape == pixels.shape else np.empty_like(pixels)
        hear(incoming)
        start = time.perf_counter()
        function(pixels, out)
        say(outgoing, seconds=time.perf_counter() - start)
        hear(incoming)
        outgoing.write(raw(out))
        outgoing.flush()


if __name__ == "__main__":
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        sys.exit(1)
