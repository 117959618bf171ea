"""Pi from random points, one generator a thread."""

import numpy as np
from numba import cuda
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32


@cuda.jit
def estimate(states, points, out):
    thread = cuda.grid(1)
    inside = 0
    for _ in range(points):
        x = xoroshiro128p_uniform_float32(states, thread)
        y = xoroshiro128p_uniform_float32(states, thread)
        if x * x + y * y <= 1.0:
            inside += 1
    out[thread] = 4.0 * inside / points


threads, blocks = 64, 24
states = create_xoroshiro128p_states(threads * blocks, seed=1)
out = np.zeros(threads * blocks, dtype=np.float32)
estimate[blocks, threads](states, 500, out)
assert abs(out.mean() - np.pi) < 0.01
print("monte carlo", "agrees")
