"""What an answer's process loads before the answer's own time begins: PyTorch takes seconds to import.

An answer says so itself when its text, or what it refers to, names torch; a check whose driver needs a library that
the answer does not mention lists it in its ``loads``.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from labkit.course.sandbox import Limits

TORCH = "torch"
OPTIMIZERS = "torch.optim"
TORCH_MISSING = (
    "This needs PyTorch, which is not installed here: pip install -c binder/requirements.txt "
    '".[lab,train]" in the folder of the course brings it, and so does make lab; then restart the kernel.'
)
_TORCH_MEMORY = 3 * 2**30  # the library alone is resident with a quarter of a GiB, a CUDA build with more
_TORCH_START_S = 180.0  # from a cold disk on a busy machine


def torch_missing() -> str:
    """What to do where PyTorch is not installed; empty where it is."""
    return "" if importlib.util.find_spec(TORCH) else TORCH_MISSING


def needed(package: dict[str, Any], arrays: dict[str, np.ndarray], asked: Sequence[str]) -> list[str]:
    """The modules to load for a packed answer and a check that asks for ``asked``; none that is not installed."""
    text = json.dumps(package)
    pickles = [array.tobytes() for name, array in arrays.items() if name.startswith("p")]
    names = list(asked)
    if re.search(r"\btorch\b", text) or any(b"torch" in pickle for pickle in pickles):
        names.append(TORCH)
    if TORCH in names and re.search(r"\boptim\b", text):
        names.append(OPTIMIZERS)
    return [name for name in dict.fromkeys(names) if importlib.util.find_spec(name.partition(".")[0])]


def limits(names: Sequence[str], given: Limits) -> Limits:
    """``given``, with the memory and the time to start that the modules ``names`` need."""
    if not any(name.partition(".")[0] == TORCH for name in names):
        return given
    return replace(given, memory=max(given.memory, _TORCH_MEMORY), start_s=max(given.start_s, _TORCH_START_S))


def load(names: Sequence[str]) -> None:
    """Import the modules ``names``, in the answer's process; torch computes with one thread, as NumPy does there."""
    for name in names:
        importlib.import_module(name)
    if any(name.partition(".")[0] == TORCH for name in names):
        import torch

        torch.set_num_threads(1)
        if OPTIMIZERS in names:  # the first optimizer that is made imports as much again as torch itself
            torch.optim.SGD([torch.zeros(1)], lr=0.0)
