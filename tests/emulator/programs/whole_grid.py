"""The rod once more, in a single launch: every block waits for every other between two steps."""

import numpy as np
from numba import cuda


@cuda.jit
def diffuse(now, then, steps, rate):
    i = cuda.grid(1)
    everyone = cuda.cg.this_grid()
    for step in range(steps):
        if step % 2 == 0:
            if 0 < i < now.size - 1:
                then[i] = now[i] + rate * (now[i + 1] - 2 * now[i] + now[i - 1])
        else:
            if 0 < i < now.size - 1:
                now[i] = then[i] + rate * (then[i + 1] - 2 * then[i] + then[i - 1])
        everyone.sync()


rod = np.zeros(400)
rod[200] = 100
now, then = cuda.to_device(rod), cuda.to_device(rod)
diffuse[4, 128](now, then, 20, 0.25)
for _ in range(20):
    rod[1:-1] += 0.25 * (rod[2:] - 2 * rod[1:-1] + rod[:-2])
np.testing.assert_allclose(now.copy_to_host(), rod, atol=1e-12)
print("whole grid", "agrees")
