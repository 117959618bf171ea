"""Torch tensors on their way to an answer and back: as NumPy arrays, with the name of torch's own type.

Types that NumPy has not (bfloat16, the 8-bit floats) travel as float32, which holds each of their values exactly.
Nothing here imports torch to send a tensor: where nobody has, there is none to send.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


class TensorArray(np.ndarray):
    """The values of a torch tensor that an answer returned; ``torch_dtype`` is its type, e.g. ``"bfloat16"``.

    What is computed from one is a TensorArray whose ``torch_dtype`` is empty.
    """

    torch_dtype: str = ""

    def __array_finalize__(self, source: Any) -> None:
        self.torch_dtype = ""


def is_tensor(value: Any) -> bool:
    """Whether ``value`` is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(type(value), getattr(torch, "Tensor", ()))


def dtype_name(tensor: Any) -> str:
    """``"float16"`` for torch.float16."""
    return str(tensor.dtype).removeprefix("torch.")


def size(tensor: Any) -> int:
    """Bytes of the array that stands for it."""
    wide = max(int(tensor.element_size()), 4) if tensor.is_floating_point() else int(tensor.element_size())
    return int(tensor.numel()) * wide


def to_array(tensor: Any) -> np.ndarray:
    """Its values; TypeError or RuntimeError for what has no plain values (sparse, meta, quantised)."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    name = dtype_name(tensor)
    if name == "bfloat16" or name.startswith("float8"):
        plain = plain.float()
    return plain.contiguous().numpy()


def to_tensor(array: np.ndarray, dtype: str, requires_grad: bool) -> Any:
    """The tensor again, in a process of its own: for an answer's arguments."""
    import torch

    return torch.from_numpy(array).to(getattr(torch, dtype)).requires_grad_(requires_grad)


def to_tensor_array(array: np.ndarray, dtype: str, requires_grad: bool) -> TensorArray:
    """The array that stands for a tensor of type ``dtype``, where answers are compared."""
    result = array.view(TensorArray)
    result.torch_dtype = dtype
    return result
