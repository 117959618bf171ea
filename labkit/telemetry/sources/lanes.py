"""Jobs done by helper threads, so that one that takes long holds up nobody but itself.

All jobs share one thread (a lane) as long as they are quick. One that is found to hold it up keeps that
thread to itself, and the others go on in a new one; when it is quick again it comes back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Result = TypeVar("Result")
_log = logging.getLogger("labkit.telemetry")
PATIENCE = 0.1  # seconds after which a quick job holds up the others
ROUND = 0.3  # seconds that a round waits for all quick jobs
LONG = 1.0  # seconds after which an unhurried job holds up the others
HOLD_QUICK, HOLD_UNHURRIED = 1.0, 2.5  # seconds for which a result stands in for a later one


class _Lane:
    """One thread and the jobs it does in turn; ``awaited`` when a round waits for it."""

    def __init__(self, jobs: list[int], awaited: bool):
        self.jobs = jobs
        self.awaited = awaited
        self.pending: deque[int] = deque()
        self.current: int | None = None
        self.since = 0.0
        self.ended = False

    @property
    def idle(self) -> bool:
        return self.current is None and not self.pending

    def stuck(self, seconds: float) -> bool:
        return self.current is not None and time.monotonic() - self.since > seconds


class Lanes(Generic[Result]):
    """Do ``quick`` and ``unhurried`` jobs in rounds.

    Parameters
    ----------
    quick : sequence of callable
        Jobs that a round waits for, 0.3 s at most.
    unhurried : sequence of callable
        Jobs known to take long: a round takes what is there of them.
    """

    def __init__(self, quick: Sequence[Callable[[], Result]], unhurried: Sequence[Callable[[], Result]]):
        self._jobs = [*quick, *unhurried]
        self._quick = len(quick)
        self._results: dict[int, tuple[float, Result]] = {}
        self._took: dict[int, float] = {}
        self._changed = threading.Condition()
        self._lanes: list[_Lane] = []
        numbers = range(len(self._jobs))
        self._open(list(numbers[: self._quick]), awaited=True)
        self._open(list(numbers[self._quick :]), awaited=False)

    def collect(self) -> list[Result | None]:
        """A round: start what is idle, wait for the quick, and give each job's last result, if it is recent."""
        with self._changed:
            self._bring_back()
            for lane in self._lanes:
                if lane.idle:
                    lane.pending.extend(lane.jobs)
            self._changed.notify_all()
            until = time.monotonic() + ROUND
            while not self._changed.wait_for(self._all_awaited_idle, PATIENCE) and time.monotonic() < until:
                self._part(PATIENCE, awaited=True)
            self._part(LONG, awaited=False)
            return [self._recent(number) for number in range(len(self._jobs))]

    def close(self) -> bool:
        """End the threads; False when one is in the middle of a job and ends after it."""
        with self._changed:
            for lane in self._lanes:
                lane.pending.clear()
                lane.ended = True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: all(lane.idle for lane in self._lanes), PATIENCE)

    def _recent(self, number: int) -> Result | None:
        found = self._results.get(number)
        hold = HOLD_QUICK if number < self._quick else HOLD_UNHURRIED
        return None if found is None or found[0] < time.monotonic() - hold else found[1]

    def _all_awaited_idle(self) -> bool:
        return all(lane.idle for lane in self._lanes if lane.awaited)

    def _open(self, jobs: list[int], awaited: bool) -> None:
        if not jobs:
            return
        lane = _Lane(jobs, awaited)
        self._lanes.append(lane)
        threading.Thread(target=self._run, args=(lane,), name="labkit-reader", daemon=True).start()

    def _part(self, seconds: float, awaited: bool) -> None:
        """Leave each stuck lane to the job that holds it up, and give the rest of its jobs a new one."""
        for lane in [one for one in self._lanes if one.awaited is awaited and one.stuck(seconds)]:
            others = [number for number in lane.jobs if number != lane.current]
            waiting = list(lane.pending)
            lane.pending.clear()
            lane.jobs = [number for number in lane.jobs if number == lane.current]
            lane.awaited = False
            self._open(others, awaited)
            if others:
                self._lanes[-1].pending.extend(waiting)
        self._changed.notify_all()

    def _bring_back(self) -> None:
        """A quick job that was slow and is quick again goes back to the lane of the quick."""
        back = [
            lane
            for lane in self._lanes
            if not lane.awaited and lane.idle and all(self._is_quick(number) for number in lane.jobs)
        ]
        home = next((lane for lane in self._lanes if lane.awaited), None)
        for lane in back:
            if home is None:
                home, lane.awaited = lane, True
                continue
            home.jobs = sorted(home.jobs + lane.jobs)
            lane.ended = True
            self._lanes.remove(lane)

    def _is_quick(self, number: int) -> bool:
        return number < self._quick and self._took.get(number, PATIENCE) < PATIENCE / 2

    def _run(self, lane: _Lane) -> None:
        while True:
            with self._changed:
                if not lane.pending:
                    lane.current = None
                    self._changed.notify_all()  # a round may be waiting for this lane
                    self._changed.wait_for(lambda: lane.pending or lane.ended)
                if lane.ended:
                    lane.current = None
                    return
                number = lane.current = lane.pending.popleft()
                lane.since = time.monotonic()
            self._do(number, lane.since)

    def _do(self, number: int, since: float) -> None:
        try:
            result = self._jobs[number]()
        except Exception:  # the thread serves other jobs too; this one has no result
            _log.debug("a job of a source failed", exc_info=True)
            return
        now = time.monotonic()
        self._took[number], self._results[number] = now - since, (now, result)
