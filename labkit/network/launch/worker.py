"""A rank, from its fork to its end: become a process of one's own, join the others, run, report, wait."""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import faulthandler
import io
import os
import select
import signal
import socket
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any, NoReturn

from labkit.network import context, live
from labkit.network.launch import failure, parcel, wire
from labkit.network.launch.meter import Meter, Ticker, watch_torch
from labkit.network.launch.signals import STACK

_PR_SET_PDEATHSIG = 1
_EXTRA_S = 60.0  # the notebook's own time limit comes first, and tells more


def main(message: dict[str, Any], files: list[int], server: int) -> NoReturn:
    """Everything a rank does; the process ends here."""
    control, out, err, settings, job, board, stacks = files
    _stand_alone(server, out, err)
    channel = socket.socket(fileno=control)
    rank = message["rank"]
    told = SimpleNamespace(**wire.read_json(settings))
    page = live.Board(board, told.ranks)
    live.enter(page, rank)
    meter = Meter(page, rank)
    watch = _Watch(channel, Ticker(meter, page, rank))
    faulthandler.enable(file=stacks, all_threads=False)
    faulthandler.register(STACK, file=stacks, all_threads=False)
    try:
        sent = _work(told, rank, job, meter)
        meter.finish()
        watch.tick(at_last=True)
        wire.send(channel, sent[0], sent[1])
        watch.released.wait()
    except KeyboardInterrupt:
        os._exit(130)
    _flush()
    if told.backend == "nccl":
        _leave_group()
    os._exit(0)


def _stand_alone(server: int, out: int, err: int) -> None:
    """A process group of one's own, the given standard streams, and death should the server die."""
    os.setpgid(0, 0)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != server:
        os._exit(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, out), (2, err)):
        os.dup2(source, target)
        os.close(source)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 (for as long as the rank lives)
    sys.stdout = _text(_Turns(1, 2))
    sys.stderr = _text(_Turns(2, 1))


def _text(raw: io.RawIOBase) -> io.TextIOWrapper:
    buffered = io.BufferedWriter(raw, 1 << 13)
    return io.TextIOWrapper(buffered, encoding="utf-8", errors="backslashreplace", line_buffering=True)


class _Turns(io.FileIO):
    """One standard stream, which lets the other be read first: the notebook then shows both in order."""

    _last = 1

    def __init__(self, file: int, other: int):
        super().__init__(file, "wb", closefd=False)
        self._other = other

    def write(self, data: Any) -> Any:
        if _Turns._last != self.fileno():
            _drained(self._other)
            _Turns._last = self.fileno()
        return super().write(data)


def _drained(pipe: int, limit_s: float = 0.2) -> None:
    import fcntl
    import termios

    limit = time.monotonic() + limit_s
    unread = bytearray(4)
    with contextlib.suppress(OSError):  # a function may have closed or replaced the descriptor
        while time.monotonic() < limit:
            fcntl.ioctl(pipe, termios.FIONREAD, unread)
            if not any(unread):
                return
            time.sleep(1e-4)


class _Watch:
    """A thread beside the function: keeps the live numbers, and ends everything when the notebook is gone."""

    def __init__(self, channel: socket.socket, ticker: Ticker):
        self.channel, self.ticker = channel, ticker
        self.released = threading.Event()
        self._turn = threading.Lock()
        threading.Thread(target=self._run, name="labkit-watch", daemon=True).start()

    def tick(self, at_last: bool = False) -> None:
        with self._turn:
            self.ticker.tick(at_last)

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self.channel, select.POLLIN)
        while not poll.poll(1000 * self.ticker.interval_s):
            self.tick()
        if self.channel.recv(1):
            self.released.set()
        else:
            os.killpg(0, signal.SIGKILL)


def _work(told: SimpleNamespace, rank: int, job: int, meter: Meter) -> tuple[dict[str, Any], list[int]]:
    """Run the function; the message for the notebook and the files that go with it."""
    stage = "start"
    try:
        _adopt(told, rank)
        _join(told, rank, meter)
        stage = "arguments"
        function, args = parcel.unpack(job)
        stage = "function"
        value, trace = _call(function, args, told, meter)
        _flush()
        stage = "result"
        return {"returned": rank}, [parcel.pack(value), parcel.pack({**_traffic(), "trace": trace})]
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        meter.finish()
        _flush()
        report = failure.describe(error, stage, rank)
        return {"failed": rank}, [wire.memory_file(report)]


def _traffic() -> dict[str, Any]:
    """Payload that labkit's own sends and receives moved, in bytes by peer."""
    from labkit.network.p2p import endpoint

    here: Any = endpoint()
    return {"sent": dict(here.sent), "received": dict(here.received), "messages": here.messages}


def _call(function: Any, args: Any, told: SimpleNamespace, meter: Meter) -> tuple[Any, Any]:
    if told.trace:
        from labkit.network.launch.tracing import traced

        watch_torch(meter, trace=True)
        return traced(function, args, meter)
    watch_torch(meter, trace=False)
    meter.begin()
    return function(*args), None


def _adopt(told: SimpleNamespace, rank: int) -> None:
    """The notebook's environment, folder and import path, and what launchers tell their ranks."""
    os.environ.clear()
    os.environ.update(told.environment)
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(told.ranks),
        LOCAL_WORLD_SIZE=str(told.ranks),
        GLOO_SOCKET_IFNAME=told.loopback,
        NCCL_SOCKET_IFNAME=told.loopback,
        TP_SOCKET_IFNAME=told.loopback,
        OMP_NUM_THREADS=str(told.threads),
    )
    os.environ.update(told.launched)
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler would greet on stderr
    with contextlib.suppress(OSError):
        os.chdir(told.folder)
    sys.path[:] = told.path
    sys.argv[:] = told.argv


def _join(told: SimpleNamespace, rank: int, meter: Meter) -> None:
    """Meet the other ranks: as their launcher says, or through a file in a private folder and no port."""
    import torch
    import torch.distributed as dist

    from labkit.network import link, p2p

    torch.set_num_threads(told.threads)
    device = f"cuda:{rank}" if told.backend == "nccl" else "cpu"
    if told.backend == "nccl":
        torch.cuda.set_device(rank)
    place = context.RankContext(rank, told.ranks, told.backend, device, told.link, told.latency, told.node)
    context.enter(place)
    dist.init_process_group(
        told.backend,
        init_method="env://" if told.launched else None,
        store=None if told.launched else dist.FileStore(told.rendezvous, told.ranks),
        rank=rank,
        world_size=told.ranks,
        timeout=datetime.timedelta(seconds=told.timeout + _EXTRA_S),
    )
    p2p.open_endpoint(place, link.Pace(told.link, told.latency), meter)


def _leave_group() -> None:
    import torch.distributed as dist

    with contextlib.suppress(Exception):
        dist.destroy_process_group()


def _flush() -> None:
    """What Python and C still hold back, so that it is shown before the rank is known to have ended."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    ctypes.CDLL(None).fflush(None)
