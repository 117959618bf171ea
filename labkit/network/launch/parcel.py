"""Functions, arguments and results, through files in memory.

Arrays and tensors are written once, beside the pickle, and mapped by whoever reads: a gigabyte for four ranks
is one copy that they share until they write to it.
"""

from __future__ import annotations

import io
import marshal
import mmap
import os
import pickle
import struct
import sys
from types import CodeType
from typing import Any

import cloudpickle

from labkit.errors import LabkitError
from labkit.network.launch import wire

_COUNT = struct.Struct("!Q")
_ALIGN = 64


class CannotTravel(LabkitError):
    """Something that has no meaning in another process; the message completes "... is"."""


class _Pickler(cloudpickle.Pickler):
    """cloudpickle, which says no to what would arrive as something else, and hands tensors over whole."""

    def reducer_override(self, obj: Any) -> Any:
        if (why := _stays_here(obj)) is not None:
            raise CannotTravel(why)
        if isinstance(obj, CodeType):
            # as it is: cloudpickle drops the file's name, by which a traceback finds its lines
            return marshal.loads, (marshal.dumps(obj),)
        if (reduced := _reduce_tensor(obj)) is not None:
            return reduced
        return super().reducer_override(obj)


def pack(thing: Any) -> int:
    """A descriptor of a file in memory that holds ``thing``.

    Raises
    ------
    CannotTravel
        For an open file, a GPU tensor, a monitor or another widget; what pickle cannot take raises as it does.
    """
    buffers: list[pickle.PickleBuffer] = []
    stream = io.BytesIO()
    _Pickler(stream, protocol=5, buffer_callback=buffers.append).dump(thing)
    parts = [stream.getbuffer(), *(buffer.raw() for buffer in buffers)]
    file = wire.memory_file()
    head = b"".join(_COUNT.pack(size) for size in (len(parts), *(part.nbytes for part in parts)))
    for part in (memoryview(head), *parts):
        wire.write_all(file, part)
        wire.write_all(file, bytes(-part.nbytes % _ALIGN))
    return file


def unpack(file: int) -> Any:
    """What `pack` was given; arrays may be written to, and what is written stays in this process."""
    with mmap.mmap(file, 0, access=mmap.ACCESS_COPY) as whole, memoryview(whole) as view:
        count = _COUNT.unpack_from(view)[0]
        if count == 1:
            return pickle.loads(_parts(view, count)[0])
    view = memoryview(mmap.mmap(file, 0, access=mmap.ACCESS_COPY))
    first, *buffers = _parts(view, count)
    return pickle.loads(first, buffers=buffers)


def _parts(view: memoryview, count: int) -> list[memoryview]:
    sizes = [_COUNT.unpack_from(view, _COUNT.size * (1 + i))[0] for i in range(count)]
    at = _COUNT.size * (1 + count)
    found = []
    for size in sizes:
        at += -at % _ALIGN
        found.append(view[at : at + size])
        at += size
    return found


def _stays_here(obj: Any) -> str | None:
    """Why ``obj`` cannot go to another process; None when it is none of the usual suspects."""
    if isinstance(obj, io.IOBase) and not isinstance(obj, (io.StringIO, io.BytesIO)):
        return "an open file, which another process cannot use: open it inside the function"
    kind = type(obj)
    if kind.__module__.startswith("labkit.widgets.monitor") or _is_widget(obj):
        what = "the monitor" if "onitor" in kind.__name__ else "a widget"
        return f"{what}, which lives in the notebook: return the numbers and show them there"
    if _is_tensor(obj) and obj.is_cuda:
        return "a tensor on a GPU: pass tensor.cpu(), and move it to labkit.rank_context().device inside"
    return None


def _is_widget(obj: Any) -> bool:
    widgets = sys.modules.get("ipywidgets")
    return widgets is not None and isinstance(obj, widgets.Widget)


def _is_tensor(obj: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(obj, torch.Tensor)


def _reduce_tensor(obj: Any) -> Any:
    """Bytes beside the pickle for an ordinary tensor on the CPU; None leaves it to torch."""
    if not _is_tensor(obj) or type(obj) is not sys.modules["torch"].Tensor:
        return None
    torch = sys.modules["torch"]
    if obj.layout is not torch.strided or obj.device.type != "cpu" or obj.is_quantized or obj.is_neg():
        return None
    flat = obj.detach().resolve_conj().contiguous().reshape(-1)
    content = pickle.PickleBuffer(flat.view(torch.uint8).numpy())
    return _tensor, (content, str(obj.dtype).removeprefix("torch."), tuple(obj.shape), obj.requires_grad)


def _tensor(content: Any, dtype: str, shape: tuple[int, ...], requires_grad: bool) -> Any:
    import torch

    kind = getattr(torch, dtype)
    if 0 in shape:
        return torch.empty(shape, dtype=kind, requires_grad=requires_grad)
    return torch.frombuffer(content, dtype=kind).reshape(shape).requires_grad_(requires_grad)


def close(file: int) -> None:
    """Let go of a packed thing."""
    os.close(file)
