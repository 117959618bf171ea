"""Heat along a rod, one launch a step; the two rods change places."""

import numpy as np
from numba import cuda

POINTS, STEPS, RATE = 1001, 60, 0.25


@cuda.jit
def one_step(now, then, rate):
    i = cuda.grid(1)
    if i > 0 and i < now.size - 1:
        then[i] = now[i] + rate * (now[i + 1] - 2 * now[i] + now[i - 1])


def expected(rod):
    for _ in range(STEPS):
        rod[1:-1] += RATE * (rod[2:] - 2 * rod[1:-1] + rod[:-2])
    return rod


rod = np.zeros(POINTS)
rod[POINTS // 2] = 10_000
d_now, d_then = cuda.to_device(rod), cuda.to_device(rod)
for _ in range(STEPS):
    one_step.forall(POINTS)(d_now, d_then, RATE)
    d_now, d_then = d_then, d_now
np.testing.assert_allclose(d_now.copy_to_host(), expected(rod.copy()), atol=1e-9)
print("heat", "agrees")
