"""The fabric simulator against formulas, bounds, an independent reference, published tables, and the clock.

Compiling is kept out of the times. What the simulator says is modelled; how long it takes to say so is measured here.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from labkit.bench import Figure
from labkit.hardware.catalog import published
from labkit.network.fabric.calibration import calibrate
from labkit.network.fabric.flows import simulate_flows
from labkit.network.fabric.machine import Fabric, fabric
from labkit.network.fabric.measurements import Measured, measured

ALPHA, BETA, SIZE = 2e-6, 1e9, 64e6  # one link's latency (s) and rate (bytes/s), and the bytes reduced
Links = dict[str, tuple[float, float]]
Flows = list[tuple[float, list[str], float]]
SYSTEMS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "H100x8_1node_NVLS": ("dgx-h100", {}, {"algorithm": "nvls"}),
    "A100_40x16_2node_OCI_RoCE16x100G": (
        "bm-gpu4-8",
        {"nodes": 2},
        {"algorithm": "hierarchical", "chunks": 16},
    ),
}


def figures(quick: bool) -> Iterable[Figure]:
    """Correctness first, then speed."""
    yield from _formulas()
    yield _reference(1 if quick else 5)
    yield _torus()
    for name in SYSTEMS:
        yield from _published(name)
    yield from _speed(1 if quick else 3)


def _star(nodes: int, **shape: Any) -> Fabric:
    return fabric("star", **{"nodes": nodes, "bandwidth": BETA, "latency": ALPHA / 2, **shape})


def _formulas() -> Iterator[Figure]:
    """Without contention, n ranks take what the alpha-beta model says."""
    n = 64
    steps = math.log2(n)
    expected = {
        "ring": 2 * (n - 1) * (ALPHA + SIZE / n / BETA),
        "tree": 2 * steps * (ALPHA + SIZE / BETA),
        "halving-doubling": 2 * steps * ALPHA + 2 * (n - 1) / n * SIZE / BETA,
    }
    for algorithm, seconds in expected.items():
        got = _star(n).all_reduce(SIZE, algorithm, fold=False).seconds
        yield Figure(
            f"{algorithm}: relative error to its formula", abs(got / seconds - 1), "", "at most", 1e-9
        )


def _reference(repeats: int) -> Figure:
    """Random graphs of 40 links and 200 flows, staggered, beside progressive filling without any cleverness."""
    worst, ours, theirs = 0.0, 0.0, 0.0
    simulate_flows({"warm": (1.0, 0.0)}, [(1.0, ["warm"], 0.0)])
    for seed in range(repeats):
        links, flows = random_case(random.Random(seed))
        spent, fast = timed(lambda links=links, flows=flows: simulate_flows(links, flows))  # type: ignore[misc]
        waited, slow = timed(lambda links=links, flows=flows: progressive_filling(links, flows))  # type: ignore[misc]
        ours, theirs = ours + spent, theirs + waited
        worst = max(worst, max(abs(a / b - 1) for a, b in zip(fast, slow, strict=True)))
    detail = f"{repeats} graphs: {ours / repeats:.2g} s each, plain Python {theirs / repeats:.2g} s"
    return Figure("finish times: relative error to a reference", worst, "", "at most", 1e-6, detail)


def random_case(
    rng: random.Random,
) -> tuple[dict[str, tuple[float, float]], list[tuple[float, list[str], float]]]:
    """40 links and 200 flows over one to four of them, with starts spread over a second."""
    links = {f"l{i}": (rng.uniform(1e8, 1e9), rng.uniform(0, 1e-3)) for i in range(40)}
    flows = [
        (rng.uniform(1e5, 1e8), rng.sample(sorted(links), rng.randint(1, 4)), rng.uniform(0, 1))
        for _ in range(200)
    ]
    return links, flows


def progressive_filling(
    links: dict[str, tuple[float, float]], flows: list[tuple[float, list[str], float]]
) -> list[float]:
    """The peer: every rate anew at every event, by raising all flows together until a link is full."""
    begin = [start + sum(links[name][1] for name in route) for _, route, start in flows]
    left, finish, now = [float(size) for size, _, _ in flows], [math.inf] * len(flows), 0.0
    while math.inf in finish:
        active = [f for f in range(len(flows)) if begin[f] <= now and finish[f] == math.inf]
        rate = _raised(links, flows, active)
        arrivals = [begin[f] for f in range(len(flows)) if begin[f] > now]
        ends = [now + left[f] / rate[f] for f in active]
        then = min([*arrivals, *ends])
        for f, end in zip(active, ends, strict=True):
            left[f] -= rate[f] * (then - now)
            if end <= then:
                finish[f] = then
        now = then
    return finish


def _raised(links: Links, flows: Flows, active: list[int]) -> dict[int, float]:
    rate, free = dict.fromkeys(active, 0.0), set(active)
    room = {name: bandwidth for name, (bandwidth, _) in links.items()}
    while free:
        users = {name: sum(name in flows[f][1] for f in free) for name in room}
        step = min(room[name] / count for name, count in users.items() if count)
        for name, count in users.items():
            room[name] -= step * count
        for f in free:
            rate[f] += step
        full = {name for name, count in users.items() if count and room[name] <= 1e-9 * links[name][0]}
        free -= {f for f in free if full & set(flows[f][1])}
    return rate


def _torus() -> Figure:
    """4x4x4, 64 chunks: the bound is 2 (n - 1)/n of the data over six links, and nothing else."""
    n, made = 64, fabric("torus", dims=(4, 4, 4), bandwidth=BETA, latency=ALPHA / 2)
    result = made.all_reduce(SIZE, "torus", chunks=64, fold=False)
    bound = 2 * (n - 1) / n * SIZE / (6 * BETA)
    detail = (
        f"{result.seconds * 1e3:.4g} ms modelled, bound {bound * 1e3:.4g} ms, {result.messages:,} messages"
    )
    return Figure(
        "4x4x4 torus over its six-link bound", result.seconds / bound - 1, "", "at most", 0.15, detail
    )


def table(name: str) -> Measured:
    """A published table, from 1 KiB to 8 GiB."""
    rows = [row for row in published("nccl_allreduce") if row["config"] == name]
    return measured(rows, name).between(2**10, 2**33)


def _published(name: str) -> Iterator[Figure]:
    """Three constants fitted to every other size, all else from the catalogue, tested on the sizes left out."""
    server, shape, options = SYSTEMS[name]
    made: Fabric = fabric(server, **shape)
    halves = table(name).every_other()
    for fitted, tested, which in ((*halves, "odd"), (*halves[::-1], "even")):
        fit = calibrate(fitted, made, **options)
        off = np.abs(fit.errors(tested))
        plain = np.abs(
            calibrate(fitted, made, constants=("start", "bandwidth"), **options).errors(tested)
        ).max()
        label = f"{name.split('_')[0]}, fitted to {which} sizes"
        detail = f"modelled against published, {len(tested.sizes)} sizes left out"
        yield Figure(f"{label}: median error", float(np.median(off)), "", "at most", 0.10, detail)
        yield Figure(
            f"{label}: worst error",
            float(off.max()),
            "",
            "at most",
            0.25,
            f"alpha + S/beta alone: {plain:.2g}",
        )


def _speed(repeats: int) -> Iterator[Figure]:
    """Ring all-reduce on a star, from the fabric's name to the result."""
    rng = np.random.default_rng(0)
    uneven = rng.uniform(0.5 * BETA, 1.5 * BETA, 1024)
    cases: list[tuple[str, float, Callable[[], Any]]] = [
        ("256 hosts", 0.1, lambda: _star(256).all_reduce(SIZE)),
        ("1024 hosts", 1.0, lambda: _star(1024).all_reduce(SIZE)),
        ("1024 unequal hosts", 10.0, lambda: _star(1024, bandwidth=uneven).all_reduce(SIZE)),
        ("16,384 hosts", 10.0, lambda: _star(16_384).all_reduce(SIZE)),
    ]
    _star(8, bandwidth=uneven[:8]).all_reduce(SIZE)
    for name, target, work in cases:
        runs = [timed(work) for _ in range(repeats)]
        seconds, result = statistics.median(spent for spent, _ in runs), runs[0][1]
        detail = f"{result.messages:,} messages, {result.simulated:,} simulated one by one"
        yield Figure(f"ring all-reduce on a star, {name}", seconds, "s", "at most", target, detail)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result
