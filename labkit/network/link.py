"""An emulated link between ranks: so many bytes a second each way, and a delay.

Each rank has one link to a perfect switch. What it sends leaves one message after the other, at the link's
rate (a token bucket as deep as the message in hand); what reaches it queues the same way, so many senders to
one rank share its link (incast). It lives inside labkit's own send and receive: torch's own calls do not
pass here. The machine's real transfer happens underneath, so no emulated link is faster than loopback.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

_SPIN_S = 200e-6  # what the system's sleep may oversleep


class Bucket:
    """Bytes pass at ``rate`` bytes/s, in the order in which they ask."""

    def __init__(self, rate: float):
        self.rate = rate
        self.free = 0.0

    def reserve(self, count: int, now: float) -> float:
        """When the last of ``count`` bytes that are ready at ``now`` has passed."""
        self.free = max(self.free, now) + count / self.rate
        return self.free


@dataclass(frozen=True)
class Passage:
    """When a message leaves: its first byte at ``start``, its last at ``end`` (seconds, time.monotonic())."""

    start: float
    end: float


class Pace:
    """One rank's link. Without a rate and a latency it holds nothing back."""

    def __init__(self, rate: float | None, latency: float):
        self.latency = latency
        self._out = Bucket(rate or float("inf"))
        self._in = Bucket(rate or float("inf"))
        self.emulated = rate is not None or latency > 0

    def departs(self, count: int) -> Passage:
        """A message of ``count`` bytes queues behind what this rank has sent before."""
        end = self._out.reserve(count, time.monotonic())
        return Passage(end - count / self._out.rate, end)

    def arrives(self, count: int, start: float) -> float:
        """When a message whose first byte left at ``start`` is here whole."""
        return self._in.reserve(count, start + self.latency)


def sleep_until(moment: float) -> None:
    """Sleep most of the time, yield the rest: exact to some microseconds on an idle core."""
    while (left := moment - time.monotonic()) > 0:
        if left > _SPIN_S:
            time.sleep(left - _SPIN_S)
        else:
            os.sched_yield()
