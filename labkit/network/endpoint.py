"""A rank's connection over torch.distributed: counted, and slowed down where a link is emulated."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any

import numpy as np
import torch
from torch.distributed import distributed_c10d
from torch.profiler import record_function

from labkit.network.launch.meter import Meter
from labkit.network.link import Pace, sleep_until
from labkit.network.p2p import Transfer

# Taken before they are watched: a collective is one call, not each of its messages.
_isend, _irecv = distributed_c10d.isend, distributed_c10d.irecv
_batch = distributed_c10d.batch_isend_irecv
_COMBINE: dict[str, Any] = {
    "sum": torch.add,
    "product": torch.mul,
    "min": torch.minimum,
    "max": torch.maximum,
    "band": torch.bitwise_and,
    "bor": torch.bitwise_or,
    "bxor": torch.bitwise_xor,
}


class TorchEndpoint:
    """See `labkit.network.p2p.Endpoint`.

    Attributes
    ----------
    sent, received : Counter
        Payload bytes by peer, exact; headers of the link's emulation and of TCP are not in it.
    messages : int
        Messages sent.
    flights : list
        Name, start and end (ns of the wall clock) of collectives that another thread ran while tracing.
    behind : labkit.network.training.Background or None
        Collectives that go on behind the computation; messages of this thread wait until they are done, since a
        receive takes whatever message of its sender comes first.
    """

    def __init__(self, rank: int, size: int, pace: Pace, meter: Meter):
        self.rank, self.size = rank, size
        self.sent: Counter[int] = Counter()
        self.received: Counter[int] = Counter()
        self.messages = 0
        self.tracing = False
        self.flights: list[tuple[str, int, int]] = []
        self.behind: Any = None
        self._buffers: dict[tuple[torch.dtype, torch.device], torch.Tensor] = {}
        self._pace, self._meter = pace, meter
        self._grouped = distributed_c10d.get_backend() == "nccl"
        # NCCL moves what is on a GPU; what is in the host's memory goes over gloo.
        self._host: Any = distributed_c10d.new_group(backend="gloo") if self._grouped else None

    def isend(self, data: Any, to: int) -> Transfer:
        data = _tensor(data)
        self._wait_for_turn()
        count = data.numel() * data.element_size()
        if not count:
            return _Nothing()
        self._count_sent(to, count)
        if not self._pace.emulated:
            return _Started([_isend(data, to, self._group(data))])
        passage = self._pace.departs(count)
        stamp = torch.tensor([passage.start], dtype=torch.float64, device=data.device)
        return _Sending(
            [_isend(stamp, to, self._group(stamp)), _isend(data, to, self._group(data))],
            stamp,
            passage.end,
            self._meter,
        )

    def irecv(self, into: Any, source: int) -> Transfer:
        into = _tensor(into)
        self._wait_for_turn()
        count = into.numel() * into.element_size()
        if not count:
            return _Nothing()
        self.received[source] += count
        if not self._pace.emulated:
            return _Started([_irecv(into, source, self._group(into))])
        stamp = torch.empty(1, dtype=torch.float64, device=into.device)
        parts = [_irecv(stamp, source, self._group(stamp)), _irecv(into, source, self._group(into))]
        return _Receiving(parts, stamp, count, self._pace, self._meter)

    def exchange(self, outgoing: Any, to: int, incoming: Any, source: int) -> None:
        outgoing, incoming = _tensor(outgoing), _tensor(incoming)
        if self._grouped and outgoing.is_cuda and not self._pace.emulated:
            self._exchange_grouped(outgoing, to, incoming, source)
            return
        receiving, sending = self.irecv(incoming, source), self.isend(outgoing, to)
        receiving.wait()
        sending.wait()

    def _exchange_grouped(self, outgoing: torch.Tensor, to: int, incoming: torch.Tensor, source: int) -> None:
        """NCCL runs what is not grouped one after the other: both sides would receive first, for ever."""
        self._wait_for_turn()
        parts = []
        if outgoing.numel():
            self._count_sent(to, outgoing.numel() * outgoing.element_size())
            parts.append(distributed_c10d.P2POp(distributed_c10d.isend, outgoing, to))
        if incoming.numel():
            self.received[source] += incoming.numel() * incoming.element_size()
            parts.append(distributed_c10d.P2POp(distributed_c10d.irecv, incoming, source))
        for work in _batch(parts) if parts else ():
            work.wait()

    def _group(self, data: torch.Tensor) -> Any:
        return None if data.is_cuda else self._host

    def _wait_for_turn(self) -> None:
        if self.behind is not None:
            self.behind.give_way()

    def _count_sent(self, to: int, count: int) -> None:
        self.sent[to] += count
        self.messages += 1

    def scratch(self, like: Any) -> torch.Tensor:
        like = _tensor(like)
        kind = like.dtype, like.device
        if kind not in self._buffers or self._buffers[kind].numel() < like.numel():
            self._buffers[kind] = torch.empty_like(like)
        return self._buffers[kind][: like.numel()]

    def combine(self, op: str, into: Any, other: torch.Tensor) -> None:
        into = _tensor(into)
        _COMBINE[op](into, other, out=into)

    def noting(self, name: str) -> contextlib.AbstractContextManager[Any]:
        noted = self._meter.inside(name)
        if not self.tracing:
            return noted
        both = contextlib.ExitStack()
        both.enter_context(noted)
        both.enter_context(record_function(f"call:{name}"))
        return both


def _tensor(data: Any) -> torch.Tensor:
    """The same memory as a tensor: ranks may exchange NumPy arrays too."""
    return torch.from_numpy(data) if isinstance(data, np.ndarray) else data


class _Nothing:
    """A message without content is not sent."""

    def wait(self) -> None:
        pass


class _Started:
    def __init__(self, works: list[Any]):
        self._works = works

    def wait(self) -> None:
        for work in self._works:
            work.wait()


class _Sending(_Started):
    """Done when the last byte has passed the emulated link."""

    def __init__(self, works: list[Any], stamp: torch.Tensor, end: float, meter: Meter):
        super().__init__(works)
        self._stamp = stamp  # kept until it has been sent
        self._end, self._meter = end, meter

    def wait(self) -> None:
        super().wait()
        self._meter.pacing = True
        sleep_until(self._end)
        self._meter.pacing = False


class _Receiving(_Started):
    """Done when the message would have come over the emulated link."""

    def __init__(self, works: list[Any], stamp: torch.Tensor, count: int, pace: Pace, meter: Meter):
        super().__init__(works)
        self._stamp, self._count, self._pace, self._meter = stamp, count, pace, meter

    def wait(self) -> None:
        super().wait()
        self._meter.pacing = True
        sleep_until(self._pace.arrives(self._count, float(self._stamp)))
        self._meter.pacing = False
