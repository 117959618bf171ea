"""Ctrl-C during a run: noted, acted upon between two messages, never lost."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

import pytest

from labkit.network.launch.interrupts import Interrupts
from labkit.network.ranks import Ranks


def test_it_is_noted_and_raised_where_one_asks() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts:
        interrupts.raise_pending()
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupts.pending
        interrupts.heard()
        with pytest.raises(KeyboardInterrupt):
            interrupts.raise_pending()
        assert not interrupts.pending
    assert signal.getsignal(signal.SIGINT) is before


def test_one_that_nobody_took_is_raised_at_the_end() -> None:
    with pytest.raises(KeyboardInterrupt), Interrupts():
        os.kill(os.getpid(), signal.SIGINT)


def test_another_thread_may_use_it_and_changes_nothing() -> None:
    seen = []

    def elsewhere() -> None:
        with Interrupts() as interrupts:
            seen.append((interrupts.pending, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [(False, signal.getsignal(signal.SIGINT))]


def test_runs_survive_interrupts_at_any_moment(world: Callable[..., Ranks]) -> None:
    group = world(2)
    group.run(int)
    for delay in (0.0, 0.005, 0.02, 0.05, 0.1):
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            _run_interrupted(group, delay)
        assert time.monotonic() - began < 4
        assert group.run(lambda: 7) == [7, 7]


def _run_interrupted(group: Ranks, delay: float) -> None:
    threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
    group.run(time.sleep, 60)
    time.sleep(1)
