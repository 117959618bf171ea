"""The emulator against numba's CUDA simulator, and against the same loops compiled by numba for the CPU.

Both run the same source in the same run, one after the other; the simulator in a child process, because it must be
chosen before numba is imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from labkit.bench import Figure, workloads

# How often numba's simulator runs each kernel: once is seconds.
SIMULATOR = """
import json, os, sys, time, types
import numpy as np
from numba import cuda
module = types.ModuleType("cuda_under_test")
module.cuda = cuda
sys.modules["cuda_under_test"] = module
from labkit.bench import workloads
for name, (kernel, grid, block, arguments, output, expected) in workloads.launches().items():
    if name not in sys.argv[1:]:
        continue
    start = time.perf_counter()
    kernel[grid, block](*arguments)
    print(json.dumps([name, time.perf_counter() - start]), flush=True)
    workloads.check(name, output, expected)
"""


def timed(action: Callable[[], object], repeats: int) -> float:
    """Median seconds of an action."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return median(times)


def simulator_seconds(names: list[str]) -> dict[str, float]:
    """Seconds numba's simulator takes for each workload, once."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SIMULATOR, *names],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    if done.returncode:
        raise RuntimeError(f"numba's simulator failed:\n{done.stderr[-2000:]}")
    return dict(json.loads(line) for line in done.stdout.splitlines())


def figures(quick: bool) -> Iterator[Figure]:
    launches = workloads.launches()
    names = list(launches)[:2] if quick else list(launches)
    peer = simulator_seconds(names)
    goals = {"saxpy 16k": 500, "tiled matmul 64": 300}
    ratios = []
    for name in names:
        kernel, grid, block, arguments, output, expected = launches[name]
        kernel[grid, block](*arguments)
        workloads.check(name, output, expected)
        configured = kernel[grid, block]
        ours = timed(partial(configured, *arguments), 5 if quick else 20)
        ratios.append(peer[name] / ours)
        detail = f"{ours * 1e3:.3g} ms; numba's simulator {peer[name]:.3g} s"
        yield Figure(f"{name}: times numba's simulator", ratios[-1], "x", "at least", goals.get(name), detail)
    if not quick:
        yield Figure("geometric mean over the above", workloads.geometric_mean(ratios), "x", "at least", 1000)
    yield from observers_cost(launches, 2 if quick else 8)
    yield from against_compiled_loops(quick)
    yield first_launch()
    yield million_threads()


def observers_cost(launches: dict[str, tuple], repeats: int) -> Iterator[Figure]:
    """How much slower launches are with the sanitizer, or the counters, on: the same kernels in the same run."""
    from labkit.compute.emulator.counting import Counter
    from labkit.compute.emulator.observers import observed
    from labkit.compute.emulator.sanitizer import Sanitizer

    kinds = {"sanitizer": lambda: Sanitizer(strict=False), "counters": lambda: Counter(40 * 10**6)}
    goals = {"sanitizer": 5, "counters": 4}
    for kind, make in kinds.items():
        ratios = []
        for name, (kernel, grid, block, arguments, _, _) in launches.items():
            configured = kernel[grid, block]
            plain = timed(partial(configured, *arguments), repeats)
            watched = timed(partial(watch, observed, make, configured, arguments), repeats)
            ratios.append(watched / plain)
            limit = (None, None) if kind == "sanitizer" else ("at most", 10)
            yield Figure(f"{name}: {kind} on, times slower", ratios[-1], "x", *limit)
        mean = workloads.geometric_mean(ratios)
        yield Figure(f"{kind} on, geometric mean", mean, "x", "at most", goals[kind])


def watch(observed: Callable, make: Callable, configured: Any, arguments: tuple) -> None:
    observed(configured.kernel, configured.shape, arguments, [make()])


def million_threads() -> Figure:
    """Peak memory of a million-thread saxpy above its inputs, by tracing allocations (NumPy's included)."""
    n = 1_000_000
    x, y, out = workloads.numbers(n), workloads.numbers(n), np.zeros(n, np.float32)
    workloads.saxpy[1, 1](2.0, x, y, out)
    tracemalloc.start()
    workloads.saxpy[(n + 255) // 256, 256](2.0, x, y, out)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Figure("saxpy 1M: peak memory above the arrays", peak / 2**20, "MiB", "at most", 200)


def saxpy_loop(a, x, y, out):
    for i in range(x.size):
        out[i] = a * x[i] + y[i]


def matmul_loop(a, b, c):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            total = 0.0
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            c[i, j] = total


def against_compiled_loops(quick: bool) -> Iterator[Figure]:
    """The kernel's body as plain loops under serial numba.njit; compiling is not counted."""
    import numba

    n = 1_000_000
    x, y, out = workloads.numbers(n), workloads.numbers(n), np.zeros(n, np.float32)
    a, b, c = workloads.numbers(256, 256), workloads.numbers(256, 256), np.zeros((256, 256), np.float32)
    pairs = {
        "saxpy 1M": (workloads.saxpy[(n + 255) // 256, 256], saxpy_loop, (2.0, x, y, out)),
        "naive matmul 256": (workloads.naive_matmul[(16, 16), (16, 16)], matmul_loop, (a, b, c)),
    }
    for name, (kernel, loop, arguments) in pairs.items():
        compiled: Any = numba.njit(loop)
        compiled(*arguments)
        kernel(*arguments)
        repeats = 3 if quick else 10
        ours = timed(partial(kernel, *arguments), repeats)
        theirs = timed(partial(compiled, *arguments), repeats)
        detail = f"{ours * 1e3:.3g} ms; compiled loop {theirs * 1e3:.3g} ms"
        yield Figure(f"{name}: of a compiled serial loop", ours / theirs, "x", "at most", 20, detail)


def first_launch() -> Figure:
    """What a kernel's first launch costs above its second: lowering and compiling it."""
    from labkit.compute.emulator import jit

    launches = workloads.launches()
    costs = []
    for kernel, grid, block, arguments, _, _ in launches.values():
        fresh = jit(kernel.py_func)[grid, block]
        first = timed(partial(fresh, *arguments), 1)
        costs.append(first - timed(partial(fresh, *arguments), 3))
    return Figure("first launch above the next, worst", max(costs) * 1e3, "ms", "at most", 20)
