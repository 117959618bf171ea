"""Functions of elements and of rows, with target "cuda"."""

import math

import numpy as np
from numba import cuda, float32, float64, guvectorize, vectorize


@vectorize([float32(float32, float32, float32), float64(float64, float64, float64)], target="cuda")
def discriminant(a, b, c):
    return math.sqrt(b**2 - 4 * a * c)


@vectorize(["int64(int64)"], target="cuda")
def next_collatz(n):
    if n % 2 == 0:
        return n // 2
    return 3 * n + 1


@guvectorize(["void(float32[:,:], float32[:,:], float32[:,:])"], "(m,n),(n,p)->(m,p)", target="cuda")
def product(a, b, out):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            out[i, j] = 0
            for k in range(a.shape[1]):
                out[i, j] += a[i, k] * b[k, j]


rng = np.random.default_rng(5)
for dtype in (np.float32, np.float64):
    a, b, c = (rng.uniform(low, low + 1, 1000).astype(dtype) for low in (0, 10, 0))
    result = discriminant(a, b, c)
    assert result.dtype == dtype
    np.testing.assert_allclose(result, np.sqrt(b**2 - 4 * a * c), rtol=1e-5)

n = np.arange(1, 20)
np.testing.assert_array_equal(next_collatz(n), np.where(n % 2, 3 * n + 1, n // 2))
on_device = next_collatz(cuda.to_device(n))
np.testing.assert_array_equal(on_device.copy_to_host(), next_collatz(n))

many = rng.random((7, 3, 4), dtype=np.float32)
one = rng.random((4, 5), dtype=np.float32)
np.testing.assert_allclose(product(many, one), many @ one, rtol=1e-5)
print("elementwise", "agrees")
