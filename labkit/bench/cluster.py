"""Virtual clusters: how fast they are up, how near to its link an all-reduce comes, whether it can be predicted.

Two nodes at 1 Gbit/s each way. The prediction knows nothing of collectives but their alpha-beta formula: alpha
and beta are fitted to messages that go back and forth between the two nodes, in the same run.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Sequence

import labkit
from labkit.bench import Figure
from labkit.errors import LabkitError
from labkit.network.cluster.machine import Cluster
from labkit.network.collectives import ring_all_reduce
from labkit.network.fabric.calibration import Calibration, calibrate
from labkit.network.timing import median_seconds, ping_pong

NODES = 8
RATE = 125e6
SIZE = 16 << 20
_MESSAGES = [
    1 << power for power in range(20, 24)
]  # 1 to 8 MiB, to which a first burst of 128 KiB matters little


def figures(quick: bool) -> Iterable[Figure]:
    """Eight nodes up; 16 MiB on two nodes against the link's limit, and against the prediction."""
    yield _up_figure(3 if quick else 7)
    with _real(2, "1Gbit/s") as cluster:
        torchs, own, messages = cluster.run(_measure, _MESSAGES, SIZE // 4, 9 if quick else 25)[0]
    limit = SIZE / RATE  # on two nodes each sends all of it: half to be added up, half as the sum
    detail = f"gloo {1e3 * torchs:.1f} ms, limit {1e3 * limit:.1f} ms with nothing but payload on the wire"
    yield Figure(
        "16 MiB all-reduce on 2 nodes at 1 Gbit/s", limit / torchs, "of limit", "at least", 0.9, detail
    )
    fitted = _fit(_MESSAGES, messages)
    predicted = ring_all_reduce.cost(SIZE, 2, fitted.start_s, fitted.bandwidth)
    detail = (
        f"predicted {1e3 * predicted:.1f} ms "
        f"(alpha {1e6 * fitted.start_s:.0f} us, beta {fitted.bandwidth / 1e6:.1f} MB/s), "
        f"measured {1e3 * own:.1f} ms"
    )
    error = 100 * abs(predicted - own) / own
    yield Figure("ring all-reduce predicted from messages", error, "% off", "at most", 15, detail)


def _real(nodes: int, bandwidth: str | None = None) -> Cluster:
    made = labkit.cluster(nodes, bandwidth=bandwidth)
    if not isinstance(made, Cluster):
        raise LabkitError(f"These figures need real links: {made.missing}")
    return made


def _up_figure(repeats: int) -> Figure:
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        cluster = _real(NODES, "1Gbit/s")
        seconds.append(time.perf_counter() - began)
        mode = cluster.handle.mode
        cluster.close()
    detail = f"one switch, links shaped, {mode}; median of {repeats}, the first {seconds[0]:.2f} s"
    return Figure(f"{NODES} nodes up", statistics.median(seconds), "s", "at most", 2, detail)


def _fit(sizes: Sequence[int], seconds: Sequence[float]) -> Calibration:
    """Start-up time and bandwidth of messages between the two nodes.

    A shaped link lets its first burst through at once. Each message begins with one, which would put the line's
    beginning below zero; no constant is negative, so the start is 0 then.
    """
    pairs = list(zip(sizes, seconds, strict=True))
    return calibrate(pairs, constants=("start", "bandwidth"), name="messages between two nodes")


def _measure(sizes: Sequence[int], elements: int, repeats: int) -> tuple[float, float, list[float]]:
    """Median seconds of torch's all-reduce, of labkit's ring, and of a message of each size, one way."""
    import torch
    import torch.distributed as dist

    data = torch.ones(elements)
    torchs = median_seconds(lambda: dist.all_reduce(data), repeats)
    own = median_seconds(lambda: ring_all_reduce(data), repeats)
    return torchs, own, [seconds for _, seconds in ping_pong(sizes, repeats)]
