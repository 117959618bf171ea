"""Sums, by hand in shared memory and with the decorator, and a largest element with a lambda."""

import numpy as np
from numba import cuda, int32

THREADS = 256


@cuda.jit
def block_sums(values, sums):
    lane = cuda.threadIdx.x
    i = cuda.grid(1)
    part = cuda.shared.array(THREADS, int32)
    part[lane] = values[i] if i < values.size else 0
    cuda.syncthreads()
    stride = 1
    while stride < cuda.blockDim.x:
        if lane % (2 * stride) == 0:
            part[lane] += part[lane + stride]
        stride *= 2
        cuda.syncthreads()
    if lane == 0:
        sums[cuda.blockIdx.x] = part[0]


@cuda.reduce
def total(a, b):
    return a + b


largest = cuda.reduce(lambda a, b: a if a > b else b)

values = np.arange(1000, dtype=np.int32)
sums = cuda.device_array(4, np.int32)
block_sums[4, THREADS](values, sums)
assert sums.copy_to_host().sum() == values.sum()

numbers = np.linspace(1, 2, 1234)
np.testing.assert_allclose(total(numbers), numbers.sum())
np.testing.assert_allclose(total(numbers, init=10.0), numbers.sum() + 10)
assert largest(numbers) == 2.0
result = cuda.device_array(1)
total(cuda.to_device(numbers), size=10, res=result)
np.testing.assert_allclose(result.copy_to_host()[0], numbers[:10].sum())
print("reductions", "agree")
