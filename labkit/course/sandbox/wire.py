"""The file that carries a job to an answer's process, and its results back: JSON and raw array bytes, nothing
else.

The reader trusts no byte of it. A pickle could run code and a zip could unpack without end, so neither is
used: every array is described by name, dtype and shape, and the description has to add up to the size of the
file.
"""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = b"LABKIT1\n"
LARGEST_FILE = 512 * 2**20
_KINDS = "biufc"  # booleans, integers, floats, complex numbers: types that are nothing but their bytes


class WireError(ValueError):
    """A file that is not what :func:`write` writes."""


def write(path: Path, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write ``document`` (what JSON can hold) and ``arrays`` to ``path``, whole or not at all."""
    plain = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}
    table = [[name, array.dtype.str, list(array.shape)] for name, array in plain.items()]
    header = json.dumps({"document": document, "arrays": table}).encode()
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        file.write(MAGIC + len(header).to_bytes(8, "little") + header)
        for array in plain.values():
            file.write(array.tobytes())
    os.replace(part, path)


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The document and arrays in ``path``; WireError when anything about the file is not as it should be."""
    content = _content(path)
    start = len(MAGIC) + 8
    if content[: len(MAGIC)] != MAGIC:
        raise WireError("the file does not start as it should")
    end = start + int.from_bytes(content[len(MAGIC) : start], "little")
    try:
        header = json.loads(content[start:end])
        document, table = header["document"], header["arrays"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise WireError("the file's description cannot be read") from error
    if not isinstance(document, dict) or not isinstance(table, list):
        raise WireError("the file's description has another form")
    return document, _arrays(table, memoryview(content)[end:])


def _content(path: Path) -> bytes:
    """The bytes of a regular file of bounded size: no link is followed, no pipe is waited for."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise WireError(f"the file cannot be opened ({error.strerror})") from error
    with open(number, "rb") as file:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_FILE:
            raise WireError("the file is not a plain file of bounded size")
        return file.read(LARGEST_FILE)


def _arrays(table: list[Any], data: memoryview) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    offset = 0
    for entry in table:
        name, dtype, shape = _described(entry)
        size = math.prod(shape) * dtype.itemsize
        if offset + size > len(data):
            raise WireError("the file is shorter than it says")
        arrays[name] = np.frombuffer(data[offset : offset + size], dtype).reshape(shape).copy()
        offset += size
    if offset != len(data):
        raise WireError("the file is longer than it says")
    return arrays


def _described(entry: Any) -> tuple[str, np.dtype, tuple[int, ...]]:
    try:
        name, text, shape = entry
        dtype = np.dtype(str(text))
        sound = dtype.kind in _KINDS and all(type(n) is int and n >= 0 for n in shape)
    except (TypeError, ValueError) as error:
        raise WireError("an array is described in another form") from error
    if not sound or not isinstance(name, str):
        raise WireError("an array has a type or shape that is not allowed")
    return name, dtype, tuple(shape)
