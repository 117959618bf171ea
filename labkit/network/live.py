"""What each running rank is doing right now: a page of numbers that ranks write and the notebook reads.

The page is a file in memory without a name, mapped by all: a rank notes a change in a microsecond and never
waits, and nothing is left when the last process that maps it has gone. Each value is one aligned 8-byte word
with a single writer, so a reader sees the old value or the new one.
"""

from __future__ import annotations

import mmap
import os
import time
from dataclasses import asdict, dataclass
from typing import Any

STATES = ("starting", "compute", "communicate", "wait", "finished")
# Calls that the page can name by number; others appear under their kind.
CALLS = (
    "",
    "all_reduce",
    "reduce",
    "broadcast",
    "all_gather",
    "gather",
    "scatter",
    "reduce_scatter",
    "all_to_all",
    "barrier",
    "send",
    "recv",
    "isend",
    "irecv",
    "wait",
    "batch_isend_irecv",
)
_FIELDS = (
    "process",
    "state",
    "call",
    "calls",
    "began",  # of the function, time.monotonic()
    "ended",
    "since",  # of the state
    "in_calls",  # seconds inside communication calls that have ended
    "waited",  # of these and the current one: seconds in which no byte moved
    "bytes_sent",
    "bytes_received",
    "cpu",
    "done",  # of the work that the function reports, this rank's part
    "whole",  # and all ranks' together, in the same unit
    "busy_from",  # seconds that the rank had computed when it began to report
)
_WORDS = 16  # a row of 128 bytes, two cache lines: ranks do not share one
_WIDTH = 8 * _WORDS


@dataclass(frozen=True)
class RankState:
    """One rank at one moment; times in seconds, bytes as counted by TCP on this rank's own connections.

    Attributes
    ----------
    state : str
        ``"starting"``, ``"compute"``, ``"communicate"`` (inside a communication call while bytes move),
        ``"wait"`` (inside one, and none moved since the last look, 10 ms before; with more than 4 ranks
        longer) or ``"finished"``.
    call : str
        The communication call it is in; empty when in none.
    state_s : float
        How long it has been in this state or call.
    compute_s, communicate_s, wait_s : float
        Seconds spent so far in each state; together the time since the function began.
    cpu_s : float
        Processor time of the rank so far, all threads.
    done, whole : float
        This rank's part of the work that it reports with `work_done`, and all ranks' work; 0 when it reports none.
    busy_s : float
        Seconds spent computing since it began to report; without a report, since the function began.
    """

    rank: int
    process: int
    device: str
    state: str
    call: str
    state_s: float
    calls: int
    bytes_sent: int
    bytes_received: int
    compute_s: float
    communicate_s: float
    wait_s: float
    cpu_s: float
    done: float = 0.0
    whole: float = 0.0
    busy_s: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Board:
    """The page, mapped in this process: one row a rank."""

    def __init__(self, file: int, ranks: int):
        size = ranks * _WIDTH
        if os.fstat(file).st_size < size:
            os.ftruncate(file, size)
        self.ranks = ranks
        self._words = memoryview(mmap.mmap(file, size)).cast("d")

    def set(self, rank: int, **values: float) -> None:
        """Write some fields of a row."""
        for name, value in values.items():
            self._words[rank * _WORDS + _INDEX[name]] = value

    def get(self, rank: int, name: str) -> float:
        return self._words[rank * _WORDS + _INDEX[name]]

    def read(self, rank: int, device: str, now: float) -> RankState:
        """One row, with what is still going on counted up to ``now``."""
        row = {name: self.get(rank, name) for name in _FIELDS}
        state = STATES[int(row["state"])]
        began = row["began"] or now
        inside = row["in_calls"] + (now - row["since"] if row["call"] else 0.0)
        waited = min(row["waited"], inside)
        computed = max(0.0, (row["ended"] or now) - began - inside)
        return RankState(
            rank=rank,
            process=int(row["process"]),
            device=device,
            state=state,
            call=CALLS[int(row["call"])],
            state_s=max(0.0, now - (row["since"] or now)),
            calls=int(row["calls"]),
            bytes_sent=int(row["bytes_sent"]),
            bytes_received=int(row["bytes_received"]),
            compute_s=computed,
            communicate_s=max(0.0, inside - waited),
            wait_s=waited,
            cpu_s=row["cpu"],
            done=row["done"],
            whole=row["whole"],
            busy_s=max(0.0, computed - row["busy_from"]),
        )


_INDEX = {name: number for number, name in enumerate(_FIELDS)}
_shown: tuple[Board, str] | None = None
_own: tuple[Board, int] | None = None


def enter(board: Board, rank: int) -> None:
    """Called once, by a rank that starts."""
    global _own
    _own = board, rank


def work_done(done: float, whole: float) -> None:
    """Tell the live plot how far this rank is: its part of the work, and all ranks' work, in one unit.

    Called with 0 it begins a new piece of work, and imbalance is counted from there. It takes a few microseconds;
    outside of ranks nobody watches, and it does nothing.

    >>> for number, tile in enumerate(tiles):  # doctest: +SKIP
    ...     render(tile)
    ...     labkit.network.work_done(number + 1, whole=tiles_of_all_ranks)
    """
    if _own is None:
        return
    board, rank = _own
    if not done:
        board.set(rank, busy_from=board.read(rank, "", time.monotonic()).compute_s)
    board.set(rank, done=float(done), whole=float(whole))


def show(board: Board | None, device: str = "cpu") -> None:
    """Make a run visible to `active`; None ends that."""
    global _shown
    _shown = None if board is None else (board, device)


def active() -> tuple[RankState, ...]:
    """The ranks of the run that this process has going, in rank order; empty when there is none.

    May be called from any thread.
    """
    shown = _shown
    if shown is None:
        return ()
    board, device = shown
    now = time.monotonic()
    return tuple(
        board.read(rank, f"cuda:{rank}" if device == "cuda" else "cpu", now) for rank in range(board.ranks)
    )
