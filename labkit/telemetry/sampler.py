"""One thread reads all sources, whoever watches and however many they are.

The thread starts with the first consumer and ends when the last one is gone. It never makes the kernel wait,
and when a read takes longer than the interval it leaves samples out instead of making them up later.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Protocol

from labkit.telemetry.series import Reading, Series, mean_reading
from labkit.telemetry.sources import Source, default_sources

DEFAULT_INTERVAL = 0.5
MIN_INTERVAL = 0.1
SLACK = 0.02  # seconds by which a sample may be early and still count as on time
_log = logging.getLogger("labkit.telemetry")


class Consumer(Protocol):
    """Whoever wants samples. Held weakly: a consumer nobody else keeps ends its subscription."""

    def take(self, now: float, readings: list[Reading]) -> None:
        """Called from the sampler's thread. ``now`` is ``time.monotonic()`` at the end of the interval."""
        ...


class _Subscription:
    """Gathers the readings of one consumer's interval, which may span several of the thread's."""

    def __init__(self, consumer: Consumer, interval: float):
        self.consumer = weakref.ref(consumer)
        self.interval = interval
        self.due = next_due(interval, time.monotonic())
        self._seen: dict[Series, tuple[list[float], str]] = {}

    def gather(self, readings: list[Reading]) -> None:
        for reading in readings:
            values, _ = self._seen.get(reading.series, ([], ""))
            if reading.value is not None and math.isfinite(reading.value):
                values.append(reading.value)
            self._seen[reading.series] = values, reading.reason

    def deliver(self, now: float) -> None:
        """Hand over the means once the interval has passed."""
        consumer = self.consumer()
        if consumer is None or now < self.due - SLACK:
            return
        self.due = next_due(self.interval, now + SLACK)
        seen, self._seen = self._seen, {}
        consumer.take(now, [mean_reading(series, *found) for series, found in seen.items()])


def next_due(interval: float, now: float) -> float:
    """The next multiple of the interval after ``now``.

    Multiples of one clock, so that many monitors share each read; and what a slow read missed is skipped.
    """
    return (math.floor(now / interval) + 1) * interval


class Sampler:
    """Reads the sources for all consumers from a single daemon thread.

    Parameters
    ----------
    sources : callable
        Makes the sources; called by the thread when it starts, and they are closed when it ends.
    """

    def __init__(self, sources: Callable[[], list[Source]] = default_sources):
        self._sources = sources
        self._changed = threading.Condition()
        self._subscriptions: list[_Subscription] = []
        self._thread: threading.Thread | None = None
        _samplers.add(self)

    @property
    def running(self) -> bool:
        """Whether the thread is alive."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    def subscribe(self, consumer: Consumer, interval: float = DEFAULT_INTERVAL) -> None:
        """Send ``consumer`` a sample every ``interval`` seconds (at least 0.1) from now on."""
        with self._changed:
            self._subscriptions.append(_Subscription(consumer, max(interval, MIN_INTERVAL)))
            if not self.running:
                self._thread = threading.Thread(target=self._run, name="labkit-sampler", daemon=True)
                self._thread.start()
            self._changed.notify()

    def unsubscribe(self, consumer: Consumer) -> None:
        """Send ``consumer`` no more samples; returns at once."""
        with self._changed:
            self._subscriptions = [s for s in self._subscriptions if s.consumer() is not consumer]
            self._changed.notify()

    def close(self, wait: float = 1.0) -> None:
        """Forget all consumers and end the thread, waiting ``wait`` seconds at most for a slow read."""
        with self._changed:
            self._subscriptions = []
            self._changed.notify()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(wait)

    def _reset(self) -> None:
        """As new: also in the child of a fork, which has neither the thread nor whoever held the lock."""
        self._changed = threading.Condition()
        self._subscriptions = []
        self._thread = None

    def _run(self) -> None:
        sources = self._sources()
        known: dict[int, list[Series]] = {}
        read_at = time.monotonic()  # rates need some time to pass before the first reading
        try:
            while self._wait(read_at):
                read_at = time.monotonic()
                self._deliver([reading for source in sources for reading in _read(source, known)])
        finally:
            for source in sources:
                source.close()

    def _wait(self, read_at: float) -> bool:
        """Sleep until a sample is due, at least 0.1 s after the last one; False when nobody is left."""
        while True:
            with self._changed:
                self._subscriptions = [s for s in self._subscriptions if s.consumer() is not None]
                if not self._subscriptions:
                    self._thread = None
                    return False
                due = min(s.due for s in self._subscriptions)
                left = max(due, read_at + MIN_INTERVAL - SLACK) - time.monotonic()
                if left <= 0:
                    return True
                self._changed.wait(left)

    def _deliver(self, readings: list[Reading]) -> None:
        with self._changed:
            subscriptions = list(self._subscriptions)
        now = time.monotonic()
        for subscription in subscriptions:
            subscription.gather(readings)
            try:
                subscription.deliver(now)
            except Exception:
                # Printing here would land in whatever cell is running.
                _log.debug("a consumer of samples failed", exc_info=True)


def _read(source: Source, known: dict[int, list[Series]]) -> list[Reading]:
    """Readings of one source; when it fails as a whole, gaps in the series it had."""
    try:
        readings = source.read()
    except Exception as error:
        _log.debug("a source failed", exc_info=True)
        reason = f"{type(error).__name__}: {error}"
        return [Reading(series, None, reason) for series in known.get(id(source), [])]
    known[id(source)] = [reading.series for reading in readings]
    return readings


_samplers: weakref.WeakSet[Sampler] = weakref.WeakSet()
_shared: Sampler | None = None


def shared() -> Sampler:
    """The sampler of this process."""
    global _shared
    if _shared is None:
        _shared = Sampler()
        atexit.register(_shared.close)
    return _shared


def _after_fork() -> None:
    for sampler in list(_samplers):
        sampler._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
