"""``@cuda.reduce``: fold an array with a function of two numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.compute.emulator.device_array import DeviceArray, host_array
from labkit.compute.emulator.elementwise import device_function, generated
from labkit.errors import LabkitError

THREADS = 256
FOLD = """def fold(values, half, size):
    i = grid(1)
    if i + half < size:
        values[i] = function(values[i], values[i + half])
"""
COMBINE = """def combine(values, init):
    values[0] = function(init, values[0])
"""


class Reduce:
    """What ``@cuda.reduce`` makes of a function: called with an array, it folds it.

    The function must be associative and commutative: threads combine elements in an order of their own.
    """

    def __init__(self, functor: Any):
        self.py_func = getattr(functor, "py_func", functor)
        function = device_function(functor)
        self._fold = generated(FOLD, function=function)
        self._combine = generated(COMBINE, function=function)

    def __repr__(self) -> str:
        return f"<emulated CUDA reduction of {self._fold.source.names['function'].source.name}>"

    def __call__(
        self, arr: Any, size: int | None = None, res: Any = None, init: Any = 0, stream: Any = 0
    ) -> Any:
        """Fold the elements of a one-dimensional array.

        Parameters
        ----------
        arr : array
            On the host or the device.
        size : int, optional
            Fold only the first ``size`` elements.
        res : array, optional
            Where to write the result, into its first element, instead of returning it.
        init : number
            Combined with the result first; what an empty array gives. 0 unless given, also for products.
        """
        data = arr._data if isinstance(arr, DeviceArray) else host_array(arr, "The array")
        if data.ndim != 1:
            raise LabkitError(
                f"A reduction takes an array of one dimension, but got {data.ndim}: pass array.ravel()."
            )
        values = data[:size].copy()
        init = values.dtype.type(init)
        result = self._folded(values, init, stream) if values.size else init
        if res is None:
            return result
        res[:1] = result
        return None

    def _folded(self, values: np.ndarray, init: Any, stream: Any) -> Any:
        device = DeviceArray(values)
        remaining = values.size
        while remaining > 1:
            half = (remaining + 1) // 2
            self._fold[-(-half // THREADS), THREADS, stream](device, half, remaining)
            remaining = half
        self._combine[1, 1, stream](device, init)
        return values[0]


reduce = Reduce
