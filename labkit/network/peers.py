"""How fast, and how soon, every process or GPU reaches every other: measured, pair by pair.

Between processes over loopback (TCP, through gloo), shared memory (one copy in, one out) or an emulated link; between
GPUs by copies from one's memory to the other's. The label says which: a figure between processes says nothing about
GPUs.
"""

from __future__ import annotations

import mmap
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.units import parse

EMULATED = "emulated link"
WAYS = ("loopback", "shared memory", EMULATED, "gpu")
_SMALL = 8
_ROUNDS = 25
_LINE = 64  # the flag has a cache line of its own


@dataclass(frozen=True)
class PeerMatrix:
    """One-way figures, row to column; the diagonal is None.

    Attributes
    ----------
    over, names : str, tuple of str
        Between what, over what.
    bandwidth : tuple of tuples
        Bytes/s of messages of `size` bytes.
    latency : tuple of tuples
        Seconds of messages of 8 bytes: half of there and back.
    link : str
        What was emulated; else empty.
    """

    over: str
    names: tuple[str, ...]
    bandwidth: tuple[tuple[float | None, ...], ...]
    latency: tuple[tuple[float | None, ...], ...]
    size: int
    link: str = ""

    @property
    def label(self) -> str:
        if self.over == EMULATED:
            return f"emulated between processes of this machine, {self.link}"
        what = "between GPUs" if self.over == "gpu" else f"between processes of this machine, {self.over}"
        return f"measured {what}"

    def rows(self) -> list[list[float]]:
        """Bandwidths with zeros on the diagonal, for `labkit.network.topology.ring_order`."""
        return [[rate or 0.0 for rate in row] for row in self.bandwidth]

    def to_dict(self) -> dict[str, Any]:
        return {"label": self.label, **asdict(self)}

    def __repr__(self) -> str:
        return f"PeerMatrix({len(self.names)} peers, {self.label})"

    def _repr_html_(self) -> str:
        from labkit.hardware.html import table

        head = ("from \\ to", *self.names)
        rates = [[name, *(_cell(rate, 1e-9) for rate in row)] for name, row in self._named(self.bandwidth)]
        times = [[name, *(_cell(wait, 1e6) for wait in row)] for name, row in self._named(self.latency)]
        return table(head, rates, f"GB/s ({self.label})") + table(head, times, f"us ({self.label})")

    def _named(self, matrix: Any) -> Any:
        return zip(self.names, matrix, strict=True)


def _cell(value: float | None, factor: float) -> str:
    return "-" if value is None else f"{value * factor:.3g}"


def peers(
    count: int = 2,
    over: str | None = None,
    size: str | float = "4MiB",
    rounds: int = _ROUNDS,
    link: str | float | None = None,
    latency: str | float | None = None,
) -> PeerMatrix:
    """Measure every pair, one after the other, while the rest is idle; of all rounds the quickest counts.

    Parameters
    ----------
    count : int
        Processes; of GPUs all are measured.
    over : str, optional
        ``"gpu"``, ``"shared memory"``, ``"loopback"`` or ``"emulated link"``; by default the link where one is given,
        GPUs where there are two, else loopback.
    size : str or float
        Bytes of the messages that bandwidth is measured with.
    link, latency : str or float, optional
        The emulated link of each rank, as for `labkit.ranks`: ``link="1Gbit/s", latency="50us"``.

    Raises
    ------
    LabkitError
        For an unknown way, and where GPUs or shared memory are not to be had.
    """
    bytes_ = int(parse(size, "size"))
    given = link is not None or latency is not None
    if over is None:
        over = EMULATED if given else "gpu" if _gpus() > 1 else "loopback"
    if over not in WAYS:
        raise LabkitError(f"{over!r} is no way between peers: choose from {', '.join(WAYS)}.")
    if bytes_ < _SMALL or rounds < 1:
        raise LabkitError(f"Measuring takes messages of at least {_SMALL} bytes, and one round or more.")
    if given != (over == EMULATED):
        raise LabkitError("An emulated link takes link= or latency=, and nothing else does.")
    if over == "gpu":
        return _between_gpus(bytes_, rounds)
    if over == "shared memory" and sys.platform != "linux":
        raise LabkitError("Shared memory between ranks is measured on Linux only: use over='loopback'.")
    from labkit.network.ranks import ranks

    if count < 2:
        raise LabkitError("One process alone has no peer: measure at least 2.")
    world = ranks(count, link=link, latency=latency)
    found = world.run(_measure_rank, over, bytes_, rounds)
    rates, waits = _empty(count), _empty(count)
    for pairs in found:
        for source, to, rate, wait in pairs:
            rates[source][to], waits[source][to] = rate, wait
    names = tuple(f"rank {rank}" for rank in range(count))
    said = ", ".join(str(one) for one in (link, latency) if one is not None)
    return PeerMatrix(over, names, _frozen(rates), _frozen(waits), bytes_, said)


def _measure_rank(over: str, size: int, rounds: int) -> list[tuple[int, int, float, float]]:
    """On every rank: (source, destination, bytes/s, seconds) of the pairs that this rank sends in."""
    import torch.distributed as dist

    measure = _over_shared_memory if over == "shared memory" else _over_sockets
    me, found = dist.get_rank(), []
    group = dist.new_group(backend="gloo")  # over NCCL it would be the GPUs that are measured
    for source in range(dist.get_world_size()):
        for to in range(dist.get_world_size()):
            dist.barrier()
            if source != to and me in (source, to):
                other = to if me == source else source
                seconds, wait = measure(
                    other, me == source, size, rounds, None if over == EMULATED else group
                )
                if me == source:
                    found.append((source, to, size / seconds, wait))
    return found


def _over_sockets(other: int, sending: bool, size: int, rounds: int, group: Any) -> tuple[float, float]:
    """Seconds of a message of `size` bytes, less the latency, and the latency: by answers of 8 bytes.

    Without a group through labkit's own send and receive, which emulate the link.
    """
    import torch
    import torch.distributed as dist

    from labkit.network import p2p

    def send(message: Any) -> None:
        p2p.send(message, other) if group is None else dist.send(message, other, group)

    def receive(message: Any) -> None:
        p2p.recv(message, other) if group is None else dist.recv(message, other, group)

    large, small = (torch.zeros(count, dtype=torch.uint8) for count in (size, _SMALL))

    def there_and_back(message: Any) -> float:
        began = time.perf_counter()
        if sending:
            send(message)
            receive(small)
        else:
            receive(message)
            send(small)
        return time.perf_counter() - began

    return _both(there_and_back, large, small, rounds)


def _both(there_and_back: Callable[[Any], float], large: Any, small: Any, rounds: int) -> tuple[float, float]:
    for message in (small, large):
        there_and_back(message)  # the first one makes connections and touches pages
    pairs = [(there_and_back(small), there_and_back(large)) for _ in range(rounds)]
    latency, seconds = min(pair[0] for pair in pairs) / 2, min(pair[1] for pair in pairs)
    return max(seconds - latency, seconds / 2), latency  # others on the machine only ever make it longer


def _over_shared_memory(other: int, sending: bool, size: int, rounds: int, group: Any) -> tuple[float, float]:
    """The same through memory that both have mapped: a copy in, a flag, a copy out, a flag back."""
    import numpy as np

    memory = _shared(other, sending, _LINE + size, group)
    flag = np.frombuffer(memory, np.int64, 1)
    box = np.frombuffer(memory, np.uint8, size, _LINE)
    own = np.ones(size, np.uint8)

    def there_and_back(count: int) -> float:
        began = time.perf_counter()
        if sending:
            turn = int(flag[0])
            box[:count] = own[:count]
            flag[0] = turn + 1
            _until(flag, turn + 2)
        else:
            turn = _until(flag, int(flag[0]) // 2 * 2 + 1)
            own[:count] = box[:count]
            flag[0] = turn + 1
        return time.perf_counter() - began

    return _both(there_and_back, size, _SMALL, rounds)


def _until(flag: Any, value: int) -> int:
    while flag[0] < value:
        os.sched_yield()
    return value


def _shared(other: int, sending: bool, size: int, group: Any) -> mmap.mmap:
    """Memory that sender and receiver both map; it has no name, so that nothing can be left behind."""
    import torch
    import torch.distributed as dist

    told = torch.zeros(2, dtype=torch.int64)
    if sending:
        file = os.memfd_create("labkit-peers")
        os.ftruncate(file, size)
        told[:] = torch.tensor([os.getpid(), file])
        dist.send(told, other, group)
        memory = mmap.mmap(file, size)
        dist.recv(told, other, group)  # it is open over there
        os.close(file)
        return memory
    dist.recv(told, other, group)
    file = os.open(f"/proc/{int(told[0])}/fd/{int(told[1])}", os.O_RDWR)
    memory = mmap.mmap(file, size)
    os.close(file)
    dist.send(told, other, group)
    return memory


def _gpus() -> int:
    from labkit.hardware import devices

    return sum(device.kind == "gpu" for device in devices())


def _between_gpus(size: int, rounds: int) -> PeerMatrix:
    """Copies between the memories of all GPUs, by this process; direct where the driver allows peer access."""
    import torch

    count = torch.cuda.device_count()
    if count < 2:
        raise LabkitError(
            f"There {'is 1 GPU' if count == 1 else 'are no GPUs'} here, and GPU peers take two: measure between "
            "processes, over='loopback' or over='shared memory'."
        )
    rates, waits = _empty(count), _empty(count)
    for source in range(count):
        for to in range(count):
            if source != to:
                rates[source][to], waits[source][to] = _gpu_pair(source, to, size, rounds)
    names = tuple(f"GPU{index}" for index in range(count))
    return PeerMatrix("gpu", names, _frozen(rates), _frozen(waits), size)


def _gpu_pair(source: int, to: int, size: int, rounds: int) -> tuple[float, float]:
    """Bytes/s, and the seconds of a small copy, timed by events on the source's stream."""
    import torch

    def copy(count: int) -> float:
        sent = torch.zeros(count, dtype=torch.uint8, device=f"cuda:{source}")
        received = torch.empty_like(sent, device=f"cuda:{to}")
        with torch.cuda.device(source):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            received.copy_(sent, non_blocking=True)
            begin.record()
            for _ in range(rounds):
                received.copy_(sent, non_blocking=True)
            end.record()
            end.synchronize()
        return begin.elapsed_time(end) * 1e-3 / rounds

    return size / copy(size), copy(_SMALL)


def _empty(count: int) -> list[list[float | None]]:
    return [[None] * count for _ in range(count)]


def _frozen(matrix: Any) -> tuple[tuple[float | None, ...], ...]:
    return tuple(tuple(row) for row in matrix)
