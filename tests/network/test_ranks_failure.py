"""A rank that fails: who, where, what the others were doing, how fast; and the notebook goes on."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

import pytest

import labkit
from labkit.errors import LabkitError
from labkit.network.errors import RankError
from labkit.network.launch import failure
from labkit.network.ranks import Ranks

World = Callable[..., Ranks]


@pytest.fixture
def failing(world: World) -> Callable[..., tuple[RankError, float]]:
    """``failing(n, function)``: the error it ends with, and seconds; afterwards ranks must still work."""

    def run(count: int, function: Callable[..., object], **options: object) -> tuple[RankError, float]:
        group = world(count)
        group.run(int)  # the server is up
        began = time.monotonic()
        with pytest.raises(RankError) as caught:
            group.run(function, **options)  # type: ignore[arg-type]
        seconds = time.monotonic() - began
        assert group.run(lambda: labkit.rank_context().rank) == list(range(count))
        return caught.value, seconds

    return run


def test_the_first_failure_is_told_from_the_learners_line_down(failing: Callable[..., tuple]) -> None:
    def step() -> None:
        import torch
        import torch.distributed as dist

        def deeper(x: int) -> float:
            return 1 / x

        dist.barrier()
        if dist.get_rank() == 1:
            deeper(0)
        dist.all_reduce(torch.ones(3))

    error, _ = failing(3, step)
    lines = str(error).splitlines()
    assert (error.rank, error.kind) == (1, "exception")
    assert lines[0] == "Rank 1 of 3 failed with ZeroDivisionError: division by zero"
    assert lines[1].endswith(", in step")
    assert lines[2].strip() == "deeper(0)"
    assert lines[4].strip() == "return 1 / x"
    assert "labkit" not in "".join(
        line for line in lines if line.startswith("  File") and "test_" not in line
    )
    assert set(error.others) == {0, 2}
    for doing in error.others.values():
        assert doing.startswith("was in all_reduce, called at ")
        assert "(dist.all_reduce(torch.ones(3)))" in doing


def test_the_cause_of_an_exception_is_told_too(failing: Callable[..., tuple]) -> None:
    def chained() -> None:
        try:
            {}["missing"]
        except KeyError as error:
            raise RuntimeError("no such thing") from error

    error, _ = failing(1, chained)
    assert "RuntimeError: no such thing" in str(error)
    assert "It was raised because of this: KeyError: 'missing'" in str(error)


def test_a_rank_that_ignores_signals_delays_the_report_less_than_two_seconds(
    failing: Callable[..., tuple],
) -> None:
    def stubborn() -> None:
        import torch.distributed as dist

        if dist.get_rank() == 1:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        dist.barrier()
        if dist.get_rank() == 0:
            raise ValueError("first")
        time.sleep(600)

    error, seconds = failing(3, stubborn)
    assert error.rank == 0
    assert seconds < 2.5  # the run itself included


def test_sys_exit(failing: Callable[..., tuple]) -> None:
    def leave() -> None:
        if labkit.rank_context().rank == 1:
            sys.exit(3)

    error, _ = failing(2, leave)
    assert (error.rank, error.kind) == (1, "exit")
    assert "called sys.exit(3): a rank ends by returning" in str(error)


def test_os_exit_is_the_cause_and_lost_connections_are_not(failing: Callable[..., tuple]) -> None:
    def vanish() -> None:
        import torch.distributed as dist

        dist.barrier()
        if dist.get_rank() == 2:
            os._exit(5)
        dist.barrier()

    error, _ = failing(3, vanish)
    assert (error.rank, error.kind) == (2, "exit")
    assert "exit status 5" in str(error)


def test_a_segmentation_fault_names_its_line(failing: Callable[..., tuple]) -> None:
    def crash() -> None:
        if labkit.rank_context().rank == 1:
            ctypes.string_at(0)
        time.sleep(600)

    error, seconds = failing(2, crash)
    assert (error.rank, error.kind) == (1, "crash")
    assert "ctypes.string_at(0)" in str(error)
    assert "segmentation fault (SIGSEGV)" in str(error)
    assert seconds < 2.5


def test_a_kill_from_outside_is_told_with_the_memory_it_had(failing: Callable[..., tuple]) -> None:
    def killed() -> None:
        if labkit.rank_context().rank == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(600)

    error, _ = failing(2, killed)
    assert (error.rank, error.kind) == (0, "killed")
    assert "memory ran out; it had grown to" in str(error)
    assert error.others[1].endswith("(time.sleep(600))")


def test_mismatched_calls_are_told_at_the_users_timeout(failing: Callable[..., tuple]) -> None:
    def deadlock() -> None:
        import torch
        import torch.distributed as dist

        x = torch.ones(4)
        if dist.get_rank() == 0:
            dist.recv(x, 1)
        elif dist.get_rank() == 1:
            dist.recv(x, 0)

    error, seconds = failing(3, deadlock, timeout="1s")
    assert (error.rank, error.kind) == (None, "timeout")
    assert "did not all return within 1 s" in str(error)
    assert "(dist.recv(x, 1))" in error.others[0]
    assert "(dist.recv(x, 0))" in error.others[1]
    assert error.others[2] == "had returned"
    assert seconds < 3.5


def test_a_group_of_its_own_and_a_child_in_another_session_are_ended_too(
    failing: Callable[..., tuple], tmp_path
) -> None:
    note = tmp_path / "pids"

    def escape(path: str) -> None:
        os.setpgrp()
        child = os.fork()
        if child == 0:
            os.setsid()
            time.sleep(600)
        with open(path, "a") as file:
            print(os.getpid(), child, file=file)
        raise ValueError("now")

    error, _ = failing(1, lambda: escape(str(note)))
    assert "ValueError: now" in str(error)
    for pid in note.read_text().split():
        assert not os.path.exists(f"/proc/{pid}")


def test_a_rank_that_sleeps_for_ever(failing: Callable[..., tuple]) -> None:
    error, _ = failing(2, lambda: time.sleep(1e6), timeout=0.6)
    assert "Ranks 0 and 1 were at" in str(error)


def test_a_result_that_cannot_travel(failing: Callable[..., tuple]) -> None:
    error, _ = failing(2, lambda: threading.Lock() if labkit.rank_context().rank else 0)
    assert error.rank == 1
    assert "returned something that cannot travel to the notebook" in str(error)
    assert "lock" in str(error)


def test_nested_use_is_refused(failing: Callable[..., tuple]) -> None:
    error, _ = failing(1, lambda: labkit.ranks(2))
    assert "ranks cannot start ranks" in str(error)


def test_a_deep_recursion_is_folded(failing: Callable[..., tuple]) -> None:
    def again(n: int) -> int:
        return again(n + 1)

    error, _ = failing(1, lambda: again(0))
    assert "RecursionError" in str(error)
    assert len(str(error).splitlines()) < 20


def test_a_fork_server_that_is_killed_is_told_and_replaced(world: World) -> None:
    def kill_parent() -> None:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)

    with pytest.raises(LabkitError, match="was ended from outside"):
        world(2).run(kill_parent)
    assert world(2).run(lambda: 1) == [1, 1]


def test_what_a_stack_says() -> None:
    stack = failure.parse_stack(
        "Stack (most recent call first):\n"
        f'  File "{failure._LABKIT}/network/launch/meter.py", line 5 in all_reduce\n'
        '  File "/nowhere/mine.py", line 7 in step\n'
    )
    assert stack[1] == ("/nowhere/mine.py", 7, "step")
    assert failure.whereabouts(stack) == "in all_reduce, called at File /nowhere/mine.py, line 7"
    assert failure.whereabouts(stack[:1]) == "joining the others"
