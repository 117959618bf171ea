"""Run as a file, in a fresh process: what labkit's import and the first saxpy cost above NumPy's import.

Prints one line of JSON: seconds, MiB (proportional set size), and which heavy packages came along.
"""

import time

import numpy as np


def pss_MiB() -> float:
    with open("/proc/self/smaps_rollup") as lines:
        return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


before = pss_MiB()
begin = time.perf_counter()

from labkit import cuda  # noqa: E402  (what this costs is the question)


@cuda.jit
def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]


x = np.arange(1000, dtype=np.float32)
out = np.zeros_like(x)
saxpy[8, 128](2.0, x, x, out)
seconds = time.perf_counter() - begin
after = pss_MiB()

if __name__ == "__main__":
    import json
    import sys

    heavy = [name for name in ("numba", "torch", "plotly") if name in sys.modules]
    right = bool((out == 3 * x).all())
    print(json.dumps({"seconds": seconds, "MiB": after - before, "heavy": heavy, "right": right}))
