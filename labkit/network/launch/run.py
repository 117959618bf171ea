"""One run: the ranks' pipes and sockets, the loop that listens to them, and what came of it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import selectors
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from labkit.network import live
from labkit.network.launch import client, failure, wire
from labkit.network.launch.interrupts import Interrupts
from labkit.network.launch.signals import STACK
from labkit.network.launch.streams import Stream

# What a rank is asked with, and how long it has to answer before the next is tried.
LADDER = ((signal.SIGINT, 0.4), (signal.SIGTERM, 0.4), (signal.SIGKILL, 1.0))
_SETTLE_S = 0.1  # after the first failure: others fail at the same moment, or run into a wait for it
_CAUSE_S = 0.4  # after a failure that only says "a peer has gone": that peer's end
_STACK_S = 0.2


@dataclass
class Rank:
    """What the notebook knows of one rank."""

    number: int
    channel: socket.socket
    stacks: int
    streams: list[Stream]
    process: int | None = None
    returned: list[int] | None = None
    report: dict[str, Any] | None = None
    status: int | None = None
    peak: int = 0
    doing: str = ""

    @property
    def silent_end(self) -> bool:
        """It ended without a word."""
        return self.status is not None and self.returned is None and self.report is None


@dataclass
class Run:
    """Starts the ranks, listens until all have returned or one has failed, ends them.

    Parameters
    ----------
    server : ForkServer
    settings : dict
        For the ranks, as JSON.
    job : int
        Descriptor of the packed function and arguments.
    """

    server: client.ForkServer
    settings: dict[str, Any]
    job: int
    ranks: list[Rank] = field(default_factory=list)
    late: bool = False
    started: bool = False
    number: int = field(default_factory=itertools.count().__next__)

    def go(self, limit_s: float) -> None:
        """Until every rank has ended; afterwards nothing of the run is left but what `ranks` holds."""
        with Interrupts() as interrupts:
            self._go(limit_s, interrupts)

    def _go(self, limit_s: float, interrupts: Interrupts) -> None:
        count = self.settings["ranks"]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self.server.channel, selectors.EVENT_READ, self._server_says)
        self._selector.register(interrupts.wake, selectors.EVENT_READ, interrupts.heard)
        board = wire.memory_file()
        live.show(live.Board(board, count), "cuda" if self.settings["backend"] == "nccl" else "cpu")
        try:
            with tempfile.TemporaryDirectory(
                prefix="run-", dir=self.server.wait_ready()["folder"], ignore_cleanup_errors=True
            ) as folder:
                self.settings["rendezvous"] = os.path.join(folder, "rendezvous")
                self._start(count, board)
                self._listen(limit_s, interrupts)
        finally:
            self._clean_up(board)

    def _start(self, count: int, board: int) -> None:
        settings = wire.memory_file(json.dumps(self.settings).encode())
        try:
            for number in range(count):
                self._start_rank(number, [settings, self.job, board])
        finally:
            os.close(settings)

    def _start_rank(self, number: int, shared: list[int]) -> None:
        ours, theirs = wire.pair()
        pipes = [os.pipe(), os.pipe()]
        streams = [
            Stream(pipe[0], number, name) for pipe, name in zip(pipes, ("stdout", "stderr"), strict=True)
        ]
        rank = Rank(number, ours, wire.memory_file(), streams)
        self.ranks.append(rank)
        files = [theirs.fileno(), *(pipe[1] for pipe in pipes), *shared, rank.stacks]
        try:
            self._ask_for(number, files)
        finally:
            theirs.close()
            for pipe in pipes:
                os.close(pipe[1])
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._rank_says(rank))
        for stream in streams:
            self._selector.register(stream.pipe, selectors.EVENT_READ, lambda s=stream: self._shows(s))

    def _ask_for(self, number: int, files: list[int]) -> None:
        self.server.tell({"do": "start", "run": self.number, "rank": number}, files)

    def _listen(self, limit_s: float, interrupts: Interrupts) -> None:
        limit = time.monotonic() + limit_s
        try:
            self._until(lambda: self._all_returned() or self._trouble() or interrupts.pending, limit)
            interrupts.raise_pending()
            if self._trouble():
                self._look_around()
                self._end()
            elif self._all_returned():
                self._release()
            else:
                self.late = True
                self._ask_stacks()
                self._end()
        except KeyboardInterrupt:
            self._end()
            raise

    def _all_returned(self) -> bool:
        return all(rank.returned is not None for rank in self.ranks)

    def _all_ended(self) -> bool:
        return all(rank.status is not None for rank in self.ranks)

    def _trouble(self) -> bool:
        return any(rank.report is not None or rank.silent_end for rank in self.ranks)

    def _until(self, done: Callable[[], bool], limit: float) -> None:
        """Handle whatever comes, until `done` or the moment `limit`."""
        while not done() and (left := limit - time.monotonic()) > 0:
            for key, _ in self._selector.select(left):
                if key.fd in self._selector.get_map():
                    key.data()

    def _server_says(self) -> None:
        message, _ = wire.receive(self.server.channel)
        if message is None:
            raise client.Gone(
                "The process that starts ranks was ended from outside (is memory short?): run the cell again."
            )
        if message.get("run") == self.number:  # not of an earlier one, whose end was interrupted
            self._heard(message)

    def _heard(self, message: dict[str, Any]) -> None:
        if "started" in message:
            self.started = True
            self.ranks[message["started"]].process = message["process"]
        elif "exited" in message:
            rank = self.ranks[message["exited"]]
            rank.status, rank.peak = message["status"], message["peak"]

    def _rank_says(self, rank: Rank) -> None:
        message, files = wire.receive(rank.channel)
        if message is None:
            self._selector.unregister(rank.channel)
        elif "returned" in message:
            rank.returned = files
        else:
            rank.report = wire.read_json(files[0])
            os.close(files[0])

    def _shows(self, stream: Stream) -> None:
        if not stream.pump():
            self._selector.unregister(stream.pipe)

    def _release(self) -> None:
        """All have their result: none needs another's connection any more."""
        for rank in self.ranks:
            with contextlib.suppress(OSError):
                rank.channel.send(b"R")
        self._until(self._all_ended, time.monotonic() + 1.0)

    def _look_around(self) -> None:
        """Whose failure was first, and what were the others doing?"""
        self._until(self._all_ended, time.monotonic() + _SETTLE_S)
        self._ask_stacks()
        reports = [rank.report for rank in self.ranks if rank.report is not None]
        if reports and all(map(failure.is_consequence, reports)):
            self._until(lambda: any(rank.silent_end for rank in self.ranks), time.monotonic() + _CAUSE_S)

    def _ask_stacks(self) -> None:
        """Have the ranks that are still at work write down where they are."""
        asked = [r for r in self.ranks if r.status is None and r.report is None and r.returned is None]
        before = {rank.number: os.fstat(rank.stacks).st_size for rank in asked}
        if not asked:
            return
        client.send_signal(self.server, STACK, list(before), group=False)
        limit = time.monotonic() + _STACK_S
        while time.monotonic() < limit:
            if all(_complete(_stack(rank, before[rank.number])) for rank in asked):
                break
            self._until(lambda: False, time.monotonic() + 0.01)
        for rank in asked:
            rank.doing = failure.whereabouts(failure.parse_stack(_stack(rank, before[rank.number])))

    def _end(self) -> None:
        """SIGINT, SIGTERM, SIGKILL, to the groups of the ranks that are left."""
        for number, grace in LADDER:
            if self._all_ended():
                return
            client.send_signal(self.server, number)
            self._until(self._all_ended, time.monotonic() + grace)

    def _clean_up(self, board: int) -> None:
        live.show(None)
        self._selector.close()
        client.end_ranks(self.server, self.number)
        os.close(board)
        for rank in self.ranks:
            rank.channel.close()
            for stream in rank.streams:
                stream.close()

    def close(self) -> None:
        """Let go of the results that nobody has fetched."""
        for rank in self.ranks:
            for file in (rank.stacks, *(rank.returned or ())):
                os.close(file)


def _stack(rank: Rank, start: int) -> str:
    return os.pread(rank.stacks, 1 << 16, start).decode("utf-8", "replace")


def _complete(stack: str) -> bool:
    return "File" in stack and stack.endswith("\n") and "launch/worker.py" in stack


def last_stack(rank: Rank) -> list[failure.Frame]:
    """Where a rank that crashed was, as its interpreter wrote in its last moment."""
    text = _stack(rank, 0)
    return failure.parse_stack(text[text.rfind("Fatal Python error") :]) if "Fatal Python" in text else []
