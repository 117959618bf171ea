"""Arrays of other libraries that share their memory with NumPy: what kernels write reaches them."""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.errors import LabkitError


def shared_view(value: Any, what: str) -> np.ndarray | None:
    """A NumPy view of the memory of a foreign array; None when the value is not an array.

    Understood are ``__array_interface__``, DLPack, and PyTorch's CPU tensors.

    Raises
    ------
    LabkitError
        When the memory is on a GPU, or the tensor is part of a gradient computation.
    """
    if _is_torch(value):
        return _tensor(value, what)
    if hasattr(value, "__cuda_array_interface__"):
        raise on_gpu(what)
    if hasattr(value, "__array_interface__"):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value, what)
    return None


def on_gpu(what: str) -> LabkitError:
    return LabkitError(
        f"{what} lies in the memory of a real GPU, but kernels run on the emulator here, on the CPU: pass a copy in "
        "the host's memory, for example array.get() with CuPy or tensor.cpu() with PyTorch."
    )


def _is_torch(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "torch" and hasattr(value, "requires_grad")


def _tensor(tensor: Any, what: str) -> np.ndarray:
    if tensor.device.type != "cpu":
        raise on_gpu(what)
    if tensor.requires_grad:
        raise LabkitError(
            f"{what} is a tensor that takes part in computing gradients, which a kernel knows nothing of: pass "
            "tensor.detach(), which shares its memory."
        )
    try:
        return tensor.numpy()
    except (TypeError, RuntimeError) as error:
        raise LabkitError(f"{what} is a tensor that NumPy cannot view ({error}): convert it first.") from None


def _from_dlpack(value: Any, what: str) -> np.ndarray:
    device = value.__dlpack_device__() if hasattr(value, "__dlpack_device__") else (1, 0)
    if int(device[0]) not in (1, 3):  # DLPack's numbers of host memory and of pinned host memory
        raise on_gpu(what)
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError) as error:
        raise LabkitError(
            f"{what} cannot be shared through DLPack ({error}): pass a NumPy array of it."
        ) from None
