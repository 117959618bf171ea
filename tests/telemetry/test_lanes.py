"""Jobs in lanes: quick ones are waited for, slow ones hold up nobody, and come back when they are quick again."""

from __future__ import annotations

import threading
import time

from labkit.telemetry.sources.lanes import PATIENCE, Lanes


def readers() -> int:
    return sum(thread.name == "labkit-reader" for thread in threading.enumerate())


def test_quick_jobs_are_done_in_order_in_one_thread() -> None:
    seen: list[int] = []
    before = readers()
    lanes = Lanes([lambda number=number: seen.append(number) or number for number in range(5)], [])  # type: ignore[misc]
    assert lanes.collect() == list(range(5))
    assert seen == list(range(5))
    assert readers() == before + 1
    assert lanes.close()


def test_a_job_that_hangs_hides_itself_alone() -> None:
    gate = threading.Event()
    lanes = Lanes([lambda: 0, lambda: gate.wait(20) and 1, lambda: 2], [])
    began = time.monotonic()
    assert lanes.collect() == [0, None, 2]
    assert time.monotonic() - began < 1
    began = time.monotonic()
    assert lanes.collect() == [0, None, 2]
    assert time.monotonic() - began < PATIENCE
    assert not lanes.close()
    gate.set()


def test_a_slow_job_that_is_quick_again_comes_back() -> None:
    slow = threading.Event()
    slow.set()
    lanes = Lanes([lambda: time.sleep(0.3 if slow.is_set() else 0) or 0, lambda: 1], [])  # type: ignore[func-returns-value]
    assert lanes.collect() == [None, 1]
    time.sleep(0.4)
    slow.clear()
    for _ in range(3):
        found = lanes.collect()
        time.sleep(0.05)
    assert found == [0, 1]
    assert len(lanes._lanes) == 1
    lanes.close()


def test_results_that_are_too_old_are_gaps() -> None:
    times = iter([0.0, 20.0])
    gate = threading.Event()
    lanes = Lanes([lambda: gate.wait(next(times)) or 7], [])
    assert lanes.collect() == [7]
    assert lanes.collect() == [7]  # it has not answered again, and the last answer is recent
    time.sleep(1.1)
    assert lanes.collect() == [None]
    gate.set()
    lanes.close()


def test_unhurried_jobs_are_never_waited_for() -> None:
    lanes = Lanes([lambda: 1], [lambda: time.sleep(0.4) or 2])  # type: ignore[func-returns-value]
    began = time.monotonic()
    assert lanes.collect() == [1, None]
    assert time.monotonic() - began < PATIENCE
    time.sleep(0.6)
    assert lanes.collect() == [1, 2]
    lanes.close()


def test_a_job_that_fails_has_no_result_and_the_thread_lives_on() -> None:
    lanes = Lanes([lambda: 1 / 0, lambda: 2.0], [])
    assert lanes.collect() == [None, 2.0]
    assert lanes.collect() == [None, 2.0]
    assert lanes.close()


def test_nothing_to_do_takes_no_thread() -> None:
    before = readers()
    lanes: Lanes[int] = Lanes([], [])
    assert lanes.collect() == []
    assert readers() == before
    assert lanes.close()
