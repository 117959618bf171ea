"""Run a function on N ranks from a notebook cell, a script or a test.

>>> import labkit
>>> def hello(greeting):
...     return f"{greeting} from rank {labkit.rank_context().rank}"
>>> labkit.ranks(2).run(hello, "hello")  # doctest: +SKIP
RankResults(2 on gloo: ['hello from rank 0', 'hello from rank 1'])
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware import devices
from labkit.hardware.units import parse, show_rate, show_time
from labkit.network.context import inside_rank
from labkit.network.errors import RankError
from labkit.network.launch import client, parcel, travel
from labkit.network.launch.lease import lease
from labkit.network.launch.run import Run
from labkit.network.launch.verdict import verdict
from labkit.network.results import RankResults, RankTraffic

MAX_RANKS = 64
TIMEOUT_S = 120.0
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Ranks:
    """N ranks to be: processes that start when `run` is called and end when it returns.

    Attributes
    ----------
    count : int
    rate, latency : float or None
        The emulated link, in bytes/s and seconds.
    backend, reason : str
        ``"nccl"`` when every rank has a GPU of its own, otherwise ``"gloo"``; and why.
    """

    count: int
    rate: float | None
    latency: float | None
    backend: str
    reason: str

    def run(
        self,
        function: Callable[..., Any],
        *args: Any,
        trace: bool = False,
        timeout: float | str = TIMEOUT_S,
    ) -> RankResults:
        """Call ``function(*args)`` on every rank and wait for all.

        Inside, ``torch.distributed`` is ready and `labkit.rank_context` tells who is who. What ranks print
        appears here, line by line with its rank.

        Parameters
        ----------
        function : callable
            Also a lambda or a closure of a cell. It and its arguments travel by value: what a rank changes
            is not changed here.
        trace : bool
            Record what each rank does when, for ``.timeline()``.
        timeout : float or str
            Seconds (or ``"2min"``) after which all are ended and reported.

        Returns
        -------
        RankResults
            The ranks' results in rank order.

        Raises
        ------
        RankError
            When a rank fails, exits, crashes, is killed, or not all return in time.
        LabkitError
            When the function or its arguments cannot travel.
        """
        limit_s = parse(timeout, "time")
        _check_function(function, limit_s)
        began = time.monotonic()
        job = travel.pack_job(function, args)
        try:
            with _one_at_a_time, lease(self.count, limit_s, self._waiting):
                return self._run(job, limit_s, trace, began)
        finally:
            os.close(job)

    def _run(self, job: int, limit_s: float, trace: bool, began: float) -> RankResults:
        server = self._server()
        backend, reason = _with_torch(self.backend, self.reason, server.wait_ready())
        with contextlib.closing(self._new_run(server, self._settings(backend, limit_s, trace), job)) as run:
            try:
                run.go(limit_s)
            except client.Gone:
                if run.started:
                    raise
                return self._run(job, limit_s, trace, began)  # it was just leaving after its long rest
            if (error := self._verdict(run, limit_s)) is not None:
                raise error
            pairs = [[parcel.unpack(file) for file in rank.returned or ()] for rank in run.ranks]
        return RankResults(
            values=tuple(value for value, _ in pairs),
            backend=backend,
            reason=reason,
            link=self._link(),
            seconds=time.monotonic() - began,
            traffic=tuple(
                RankTraffic(rank, notes["sent"], notes["received"], notes["messages"])
                for rank, (_, notes) in enumerate(pairs)
            ),
            traces=tuple(notes["trace"] for _, notes in pairs) if trace else None,
        )

    def _server(self) -> client.ForkServer:
        return client.server()

    def _new_run(self, server: client.ForkServer, settings: dict[str, Any], job: int) -> Run:
        return Run(server, settings, job)

    def _verdict(self, run: Run, limit_s: float) -> RankError | None:
        return verdict(run, limit_s)

    def _settings(self, backend: str, limit_s: float, trace: bool) -> dict[str, Any]:
        return {
            "ranks": self.count,
            "backend": backend,
            "timeout": limit_s,
            "trace": trace,
            "link": self.rate,
            "latency": self.latency or 0.0,
            "threads": max(1, _cores() // self.count),
            "loopback": "lo0" if sys.platform == "darwin" else "lo",
            "node": "",
            "launched": {},
            "environment": dict(os.environ),
            "folder": os.getcwd(),
            "path": [os.fspath(folder) for folder in sys.path],
            "argv": sys.argv,
        }

    def _waiting(self, ahead: int) -> None:
        who = f"{ahead} earlier run{'s' if ahead > 1 else ''}" if ahead else "running ranks"
        print(f"[labkit] this machine is shared and its places for ranks are taken: waiting for {who}")

    def _link(self) -> str:
        if self.rate is None and self.latency is None:
            return ""
        rate = show_rate(self.rate, bits=True) if self.rate else "unlimited rate"
        return (
            f"Emulated link of each rank: {rate} each way, {show_time(self.latency or 0.0)} latency, in "
            "labkit's own sends, receives and collectives; torch's own calls run at loopback speed."
        )

    def __repr__(self) -> str:
        return f"{self.count} ranks on {self.backend}: {self.reason} {self._link()}".rstrip()


def ranks(count: int, link: float | str | None = None, latency: float | str | None = None) -> Ranks:
    """``count`` ranks on this machine: ``labkit.ranks(4).run(function, arg)``.

    Parameters
    ----------
    count : int
        1 to 64; more than cores is possible, they then take turns.
    link : float or str, optional
        Rate of an *emulated* link of each rank, each way: ``"1Gbit/s"``, or bytes/s.
    latency : float or str, optional
        What that link adds to each message: ``"50us"``, or seconds.

    Raises
    ------
    LabkitError
        For another count, a rate of zero, inside a rank, or without PyTorch.
    """
    if inside_rank():
        raise LabkitError(
            "labkit.ranks(...) was called inside a rank: ranks cannot start ranks; start them all from the "
            "notebook, and split the work by labkit.rank_context().rank."
        )
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_RANKS:
        raise LabkitError(
            f"labkit.ranks({count!r}): the number of ranks is a whole number, 1 to {MAX_RANKS}."
        )
    rate = None if link is None else parse(link, "rate")
    if rate == 0:
        raise LabkitError("A link of 0 bytes/s never delivers: give it a rate, such as '1Gbit/s'.")
    client.server()  # imports torch meanwhile, so that the first run need not wait for it
    backend, reason = _backend(count)
    return Ranks(count, rate, None if latency is None else parse(latency, "time"), backend, reason)


def _backend(count: int) -> tuple[str, str]:
    gpus = sum(device.kind == "gpu" for device in devices())
    if gpus >= count:
        return "nccl", f"Each rank has a GPU of its own ({gpus} here)."
    if not gpus:
        return "gloo", "There is no GPU here, so ranks are CPU processes and talk over loopback."
    have = "1 GPU" if gpus == 1 else f"{gpus} GPUs"
    return "gloo", f"{count} ranks are more than the {have} here, so ranks compute on the CPU."


def _with_torch(backend: str, reason: str, hello: dict[str, Any]) -> tuple[str, str]:
    if backend == "nccl" and not hello["nccl"]:
        return "gloo", f"PyTorch {hello['torch']} is built without NCCL, so ranks compute on the CPU."
    return backend, reason


def _check_function(function: object, limit_s: float) -> None:
    if not callable(function):
        raise LabkitError(
            f"run() needs a function, not {type(function).__name__}: pass the function and its arguments, "
            "run(step, 3), rather than its result, run(step(3))."
        )
    if limit_s == 0:
        raise LabkitError("timeout=0 leaves no time to run: give seconds, or '2min'.")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
