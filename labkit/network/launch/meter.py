"""What a rank is doing, noted as it happens: computing, communicating, waiting; bytes on its connections."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from functools import WRAPPER_ASSIGNMENTS, update_wrapper
from typing import Any

from labkit.network.live import CALLS, STATES, Board

COMPUTE, COMMUNICATE, WAIT, FINISHED = (STATES.index(name) for name in STATES[1:])
# struct tcp_info of linux/tcp.h: 8 bytes, 24 words, then four 64-bit counters of which these are the last two.
_TCP_INFO, _COUNTERS = getattr(socket, "TCP_INFO", 11), struct.Struct("QQ")
_COUNTERS_AT = 120
_PATCHED = [
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "gather_object",
    "irecv",
    "isend",
    "monitored_barrier",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
]


class Meter:
    """Writes one rank's row of the board.

    Only the thread that runs the function changes the state: a collective started by another one goes on
    beside its computation.
    """

    def __init__(self, board: Board, rank: int):
        self._board, self._rank = board, rank
        self._thread = threading.get_ident()
        self._depth = 0
        self._since = 0.0
        self._inside_s = 0.0
        self._calls = 0
        self.pacing = False  # the emulated link holds a message: bytes are on their way, though not on TCP
        board.set(rank, process=os.getpid())

    def begin(self) -> None:
        self._board.set(self._rank, began=time.monotonic(), since=time.monotonic(), state=COMPUTE)

    def finish(self) -> None:
        """The function has returned or failed."""
        now = time.monotonic()
        self._board.set(self._rank, call=0, ended=now, since=now, state=FINISHED)

    def inside(self, name: str) -> contextlib.AbstractContextManager[Any]:
        """The body is a communication call; calls within it count as part of it."""
        return _Inside(self, _number(name))

    def enter(self, call: int) -> None:
        if threading.get_ident() != self._thread:
            return
        self._depth += 1
        if self._depth == 1:
            self._since = time.monotonic()
            self._calls += 1
            self._board.set(self._rank, since=self._since, call=call, calls=self._calls, state=COMMUNICATE)

    def leave(self) -> None:
        if threading.get_ident() != self._thread:
            return
        self._depth -= 1
        if self._depth == 0:
            now = time.monotonic()
            self._inside_s += now - self._since
            self._board.set(self._rank, call=0, in_calls=self._inside_s, since=now, state=COMPUTE)

    @property
    def inside_since(self) -> float | None:
        """When the call that the function is in began; None outside of calls."""
        return self._since if self._depth else None


class _Inside:
    def __init__(self, meter: Meter, call: int):
        self.meter, self.call = meter, call

    def __enter__(self) -> None:
        self.meter.enter(self.call)

    def __exit__(self, *_: object) -> None:
        self.meter.leave()


class Ticker:
    """Called every few ms beside the function: counts bytes, tells waiting from communicating."""

    def __init__(self, meter: Meter, board: Board, rank: int):
        self.meter, self.board, self.rank = meter, board, rank
        self.interval_s = min(0.1, max(0.01, 0.0025 * board.ranks))  # some hundred looks a second in all
        self._traffic = Traffic()
        self._waited = 0.0
        self._before = time.monotonic()
        self._looks = 0

    def tick(self, at_last: bool = False) -> None:
        self._looks += 1
        since = self.meter.inside_since
        if since is None and self._looks % 5 and not at_last:
            return  # while the function computes, it is disturbed less
        now = time.monotonic()
        moved = self._traffic.count()
        if since is not None:
            self._judge(now - max(since, self._before), idle=not moved and not self.meter.pacing)
        self._before = now
        times = os.times()
        self.board.set(
            self.rank,
            waited=self._waited,
            cpu=times.user + times.system,
            bytes_sent=self._traffic.sent,
            bytes_received=self._traffic.received,
        )

    def _judge(self, seconds: float, idle: bool) -> None:
        """The last seconds inside a call: was anything on its way?"""
        self._waited += max(0.0, seconds) if idle else 0.0
        self.board.set(self.rank, state=WAIT if idle else COMMUNICATE)
        if self.meter.inside_since is None:  # it has just come back
            self.board.set(self.rank, state=COMPUTE)


class Traffic:
    """Bytes that this process's TCP connections have delivered and received, as the system counts them."""

    def __init__(self) -> None:
        self.sent = 0
        self.received = 0
        self._seen: dict[str, tuple[int, int]] = {}

    def count(self) -> bool:
        """Look again; True when something has moved since."""
        for inode, counted in _connections():
            self._seen[inode] = counted  # a closed connection keeps its last count
        sent, received = (sum(column) for column in zip((0, 0), *self._seen.values(), strict=True))
        moved = (sent, received) != (self.sent, self.received)
        self.sent, self.received = sent, received
        return moved


def _connections() -> list[tuple[str, tuple[int, int]]]:
    found = []
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                inode = os.readlink(f"/proc/self/fd/{name}")
                if inode.startswith("socket:"):
                    found.append((inode, _tcp_counters(int(name))))
    return found


def _tcp_counters(file: int) -> tuple[int, int]:
    connection = socket.socket(fileno=file)
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, 256)
    finally:
        connection.detach()  # it is not ours to close
    acknowledged, received = _COUNTERS.unpack_from(info, _COUNTERS_AT)
    return acknowledged, received


def _number(name: str) -> int:
    """The longest call of the page that ``name`` begins with: all_gather_object is an all_gather."""
    fitting = [call for call in CALLS if call and name.removeprefix("monitored_").startswith(call)]
    return CALLS.index(max(fitting, key=len)) if fitting else CALLS.index("wait")


def watch_torch(meter: Meter, trace: bool) -> None:
    """Note every communication call of torch.distributed, also those that a handle's wait() blocks in."""
    import torch.distributed as dist
    from torch.distributed import distributed_c10d as inner

    for name in _PATCHED:
        original = getattr(inner, name, None)
        if original is not None:
            noted = _noted(original, name, meter, trace)
            for module in (dist, inner):
                setattr(module, name, noted)
    setattr(inner.Work, "wait", _noted(inner.Work.wait, "wait", meter, trace))  # noqa: B010 (for mypy)


def _noted(original: Callable[..., Any], name: str, meter: Meter, trace: bool) -> Callable[..., Any]:
    call = _number(name)

    def noted(*args: Any, **kwargs: Any) -> Any:
        meter.enter(call)
        try:
            if not trace:
                return original(*args, **kwargs)
            with _recorded(f"call:{name}{_partner(name, args, kwargs)}"):
                return original(*args, **kwargs)
        finally:
            meter.leave()

    noted.__code__ = noted.__code__.replace(co_name=name)  # so that stacks show the name a learner wrote
    update_wrapper(noted, original, [word for word in WRAPPER_ASSIGNMENTS if hasattr(original, word)])
    return noted


def _recorded(name: str) -> contextlib.AbstractContextManager[Any]:
    from torch.profiler import record_function

    return record_function(name)


def _partner(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """`` 3`` for a send to rank 3 or a receive from it; empty for all else."""
    keyword = {"send": "dst", "recv": "src"}.get(name)
    rank = args[1] if keyword and len(args) > 1 else kwargs.get(keyword or "")
    return f" {rank}" if isinstance(rank, int) else ""
